//! Any octets as an agent's stream: frames, or a refusal; what was read can be written again.
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
