//! Fuzzes the reader of RTPS messages with arbitrary bytes: data lie within the datagram, and reading ends.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tailbound_rtps::Message;

fuzz_target!(|bytes: &[u8]| {
    let Some(message) = Message::read(bytes) else { return };
    assert!(message.count() <= bytes.len() / 4);
    for sample in message.filter_map(|submessage| submessage.sample()) {
        assert!(sample.data.is_empty() || bytes.as_ptr_range().contains(&sample.data.as_ptr()));
        let _ = sample.first_u64();
    }
    if let Some(sample) = message.sample() {
        assert!(sample.writer.is_of_application());
    }
    let _ = message.is_protected();
});
