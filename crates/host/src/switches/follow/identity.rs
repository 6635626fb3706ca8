//! The sequence number of the message in a datagram.

use tailbound_model::NotFollowed;
use tailbound_rtps::Message;

/// First bytes of datagrams of the driver `udp` that contain no message (`MAGIC` of the driver).
const CONTROL: &[u8] = b"tb-hello";

/// The sequence number of the message that begins with these bytes of a datagram: the payload after the UDP header.
/// `Ok(None)` if the datagram contains no message, e.g. a datagram of discovery.
///
/// # Errors
/// The datagram may contain a message, and its sequence number cannot be read.
pub(super) fn sequence(payload: &[u8]) -> Result<Option<u64>, NotFollowed> {
    if let Some(message) = Message::read(payload) {
        return match message.sample() {
            Some(sample) if !sample.is_whole => Err(NotFollowed::Divided),
            Some(sample) => Ok(sample.first_u64()),
            None if message.is_protected() => Err(NotFollowed::Protected),
            None => Ok(None),
        };
    }
    if payload.starts_with(CONTROL) {
        return Ok(None);
    }
    match payload.first_chunk() {
        Some(number) => Ok(Some(u64::from_le_bytes(*number))),
        None => Err(NotFollowed::InPages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_of_the_driver_udp_begins_with_its_number() {
        let numbered = [7u64.to_le_bytes(), [0x55; 8]].concat();
        assert_eq!(sequence(&numbered), Ok(Some(7)));
        assert_eq!(sequence(b"tb-hello\x01\0\0\0\0\0\0\0"), Ok(None));
        assert_eq!(sequence(b""), Err(NotFollowed::InPages));
    }

    #[test]
    fn a_message_in_several_datagrams_is_counted() {
        let header = b"RTPS\x02\x05\x01\x0fabcdefghijkl";
        // One fragment of 1,344 bytes of a sample of `bytes` bytes.
        let numbers = |bytes: u32| {
            let parts = [&[0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0x40, 5][..]];
            [parts.concat(), bytes.to_le_bytes().to_vec(), vec![0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]].concat()
        };
        let datagram = |bytes| [&header[..], &[0x16, 1, 44, 0], &numbers(bytes)].concat();
        assert_eq!(sequence(&datagram(1_300)), Ok(Some(7)));
        assert_eq!(sequence(&datagram(1_400)), Err(NotFollowed::Divided));
    }

    #[test]
    fn an_encrypted_message_is_counted_and_a_heartbeat_is_no_message() {
        let header = b"RTPS\x02\x05\x01\x0fabcdefghijkl";
        let heartbeat = [header.as_slice(), &[0x07, 1, 0, 0], &[0; 28]].concat();
        assert_eq!(sequence(&heartbeat), Ok(None));
        let encrypted = [header.as_slice(), &[0x33, 1, 4, 0], &[0; 4]].concat();
        assert_eq!(sequence(&encrypted), Err(NotFollowed::Protected));
    }
}
