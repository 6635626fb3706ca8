//! Reads datagrams that Cyclone DDS 11.0.1 and Fast DDS 2.9 sent over the loopback interface: the type of the samples is a
//! number of 8 bytes, which counts the samples, and a sequence of bytes. Files have at most the first 256 bytes.

use tailbound_rtps::{EntityId, Message, Sample};

const CYCLONE: &[u8] = include_bytes!("captured/cyclonedds-data.bin");
const CYCLONE_FIRST: &[u8] = include_bytes!("captured/cyclonedds-first-fragment.bin");
const CYCLONE_LATER: &[u8] = include_bytes!("captured/cyclonedds-later-fragment.bin");
const FAST: &[u8] = include_bytes!("captured/fastdds-data.bin");
const FAST_FIRST: &[u8] = include_bytes!("captured/fastdds-first-fragment.bin");

fn sample(bytes: &[u8]) -> Sample<'_> {
    Message::read(bytes).expect("an RTPS message").sample().expect("a sample")
}

#[test]
fn samples_of_both_vendors_have_their_numbers() {
    let cyclone = sample(CYCLONE);
    assert_eq!((cyclone.sequence, cyclone.fragment, cyclone.is_whole), (17, None, true));
    assert_eq!((cyclone.writer, cyclone.first_u64()), (EntityId([0, 0, 1, 3]), Some(16)));
    let fast = sample(FAST);
    assert_eq!((fast.sequence, fast.fragment, fast.is_whole), (2, None, true));
    assert_eq!((fast.writer, fast.first_u64()), (EntityId([0, 0, 1, 3]), Some(1)));
    assert_ne!(fast.participant, cyclone.participant);
}

#[test]
fn fragments_have_numbers_and_only_the_first_one_has_the_begin_of_the_sample() {
    let first = sample(CYCLONE_FIRST);
    assert_eq!((first.sequence, first.fragment, first.is_whole, first.first_u64()), (22, Some(1), false, Some(21)));
    let later = sample(CYCLONE_LATER);
    assert_eq!((later.sequence, later.fragment, later.is_whole, later.first_u64()), (6, Some(31), false, None));
    let fast = sample(FAST_FIRST);
    assert_eq!((fast.sequence, fast.fragment, fast.is_whole, fast.first_u64()), (2, Some(1), false, Some(1)));
}

/// Cuts a datagram off at each byte: what is found does not change, once it is there.
#[test]
fn the_first_bytes_are_enough() {
    for (bytes, number) in [(CYCLONE, 16), (CYCLONE_FIRST, 21), (FAST, 1), (FAST_FIRST, 1)] {
        let found = |cut: usize| Message::read(&bytes[..cut]).and_then(Message::sample).and_then(|s| s.first_u64());
        let first = (0..bytes.len()).find(|cut| found(*cut).is_some()).expect("a number");
        assert!(first <= 112, "the kernel's records have 112 bytes, and the number ends at byte {first}");
        assert!((first..bytes.len()).all(|cut| found(cut) == Some(number)));
    }
}

/// A byte order that no vendor uses on this machine: the same message with the other order of bytes.
#[test]
fn big_endian_numbers_are_read() {
    let mut bytes = CYCLONE.to_vec();
    // INFO_TS and DATA: flag, and length of the submessage; distance to the data; sequence number; representation, and
    // the counting number.
    for (at, len) in [(22, 2), (34, 2), (38, 2), (48, 4), (52, 4), (60, 8)] {
        bytes[at..at + len].reverse();
    }
    (bytes[21], bytes[33], bytes[57]) = (bytes[21] & !1, bytes[33] & !1, 0);
    let sample = sample(&bytes);
    assert_eq!((sample.sequence, sample.first_u64()), (17, Some(16)));
}

#[test]
fn discovery_and_other_datagrams_have_no_sample() {
    let mut discovery = CYCLONE.to_vec();
    // The kind of the writer: built in.
    discovery[47] |= 0xc0;
    assert!(Message::read(&discovery).expect("a message").sample().is_none());
    assert!(Message::read(b"tb-hello and more than twenty bytes").is_none());
    assert!(Message::read(&CYCLONE[..19]).is_none());
}
