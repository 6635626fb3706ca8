//! The message, or the part of a message, in a datagram.

use tailbound_model::NotFollowed;
use tailbound_rtps::{EntityId, GuidPrefix, Message};

/// First bytes of datagrams of the driver `udp` that contain no message (`MAGIC` of the driver).
const CONTROL: &[u8] = b"tb-hello";

/// What a datagram contains of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// A whole message, with its sequence number.
    Message(u64),
    /// A part of a message that the middleware divided among several datagrams.
    Part {
        of: Divided,
        /// Number of the first part of the message in the datagram, from 1.
        part: u32,
        /// Sequence number of the message, which only the first part contains.
        seq: Option<u64>,
    },
}

/// Participant, writer and the writer's number of an RTPS sample, which all of its parts have.
pub(super) type Divided = (GuidPrefix, EntityId, i64);

/// The message in these first bytes of a datagram: the payload after the UDP header. `Ok(None)` if the datagram contains no
/// message, e.g. a datagram of discovery.
///
/// # Errors
/// The datagram may contain a message, and its sequence number cannot be read.
pub(super) fn content(payload: &[u8]) -> Result<Option<Content>, NotFollowed> {
    if let Some(message) = Message::read(payload) {
        let Some(sample) = message.sample() else {
            return if message.is_protected() { Err(NotFollowed::Protected) } else { Ok(None) };
        };
        let seq = sample.first_u64();
        return match sample.fragment.filter(|_| !sample.is_whole) {
            // The first part of a sample of another type.
            Some(1) if seq.is_none() => Ok(None),
            Some(part) => {
                Ok(Some(Content::Part { of: (sample.participant, sample.writer, sample.sequence), part, seq }))
            }
            None => Ok(seq.map(Content::Message)),
        };
    }
    if payload.starts_with(CONTROL) {
        return Ok(None);
    }
    match payload.first_chunk() {
        Some(number) => Ok(Some(Content::Message(u64::from_le_bytes(*number)))),
        None => Err(NotFollowed::InPages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_of_the_driver_udp_begins_with_its_number() {
        let numbered = [7u64.to_le_bytes(), [0x55; 8]].concat();
        assert_eq!(content(&numbered), Ok(Some(Content::Message(7))));
        assert_eq!(content(b"tb-hello\x01\0\0\0\0\0\0\0"), Ok(None));
        assert_eq!(content(b""), Err(NotFollowed::InPages));
    }

    #[test]
    fn parts_of_a_message_have_its_writer_and_only_the_first_one_its_number() {
        let header = b"RTPS\x02\x05\x01\x0fabcdefghijkl";
        // One fragment of 1,344 bytes of a sample of `bytes` bytes.
        let numbers = |part: u8, bytes: u32| {
            let first = [0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 9, 0, 0, 0, part, 0, 0, 0, 1, 0, 0x40, 5];
            [&first[..], &bytes.to_le_bytes(), &[0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]].concat()
        };
        let datagram = |part, bytes| [&header[..], &[0x16, 1, 44, 0], &numbers(part, bytes)].concat();
        assert_eq!(content(&datagram(1, 1_300)), Ok(Some(Content::Message(7))));
        let of = (GuidPrefix(*b"abcdefghijkl"), EntityId([0, 0, 1, 3]), 9);
        assert_eq!(content(&datagram(1, 1_400)), Ok(Some(Content::Part { of, part: 1, seq: Some(7) })));
        assert_eq!(content(&datagram(2, 1_400)), Ok(Some(Content::Part { of, part: 2, seq: None })));
    }

    #[test]
    fn an_encrypted_message_is_counted_and_a_heartbeat_is_no_message() {
        let header = b"RTPS\x02\x05\x01\x0fabcdefghijkl";
        let heartbeat = [header.as_slice(), &[0x07, 1, 0, 0], &[0; 28]].concat();
        assert_eq!(content(&heartbeat), Ok(None));
        let encrypted = [header.as_slice(), &[0x33, 1, 4, 0], &[0; 4]].concat();
        assert_eq!(content(&encrypted), Err(NotFollowed::Protected));
    }
}
