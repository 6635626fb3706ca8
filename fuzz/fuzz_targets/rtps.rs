//! Fuzzes the reader of RTPS messages with arbitrary bytes: data lie within the datagram, and reading ends.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tailbound_rtps::{Content, Message};

fuzz_target!(|bytes: &[u8]| {
    let Some(message) = Message::read(bytes) else { return };
    assert!(message.count() <= bytes.len() / 4);
    for submessage in message {
        match submessage.content() {
            Content::Sample(sample) => {
                assert!(sample.data.is_empty() || bytes.as_ptr_range().contains(&sample.data.as_ptr()));
                assert!(sample.sequence >= 1 && u32::from(sample.fragments) <= sample.of_fragments);
                let _ = (sample.first_u64(), sample.announcement());
            }
            Content::AckNack(acknowledgement) => assert!(acknowledgement.missing.iter().count() <= 256),
            Content::Gap(gap) => assert!(gap.more.iter().count() <= 256),
            _ => {}
        }
    }
    if let Some(sample) = message.sample() {
        assert!(sample.writer.is_of_application());
    }
    let _ = message.is_protected();
    // The first bytes of the same datagram.
    if let Some(cut) = Message::read_cut(&bytes[..bytes.len().min(64)], bytes.len()) {
        assert!(cut.filter(|submessage| submessage.content() == Content::Protected).count() <= 16);
    }
});
