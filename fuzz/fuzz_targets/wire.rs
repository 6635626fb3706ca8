//! Fuzzes an agent's stream with arbitrary bytes: the result is frames or a refusal; frames that were read can be
//! written again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tailbound_wire::{FrameReader, encode};

fuzz_target!(|bytes: &[u8]| {
    let mut reader = FrameReader::default();
    for piece in bytes.chunks(7) {
        reader.push(piece);
        while let Ok(Some(frame)) = reader.next_frame() {
            let mut again = FrameReader::default();
            again.push(&encode(&frame));
            assert!(again.next_frame().is_ok());
        }
    }
});
