//! The form of a message: the sequence number in 8 bytes, little-endian, and the payload.

use std::borrow::Cow;

use tailbound_abi::tb_view;
use zenoh::bytes::ZBytes;

/// Largest payload of a message in bytes.
pub const MAX_PAYLOAD_BYTES: u64 = 100 << 20;
/// Number of bytes in front of the payload.
const HEAD: usize = 8;

/// Makes the bytes to put.
#[inline]
pub fn encode(seq: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    bytes.extend_from_slice(&seq.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A received message. Its bytes stay where zenoh has them, unless zenoh has them in several pieces.
pub struct Message {
    seq: u64,
    bytes: Bytes,
    writer: u64,
}

enum Bytes {
    OfZenoh(ZBytes),
    Joined(Vec<u8>),
}

impl Message {
    /// Reads a message; `None` if it is too short to be one.
    #[inline]
    pub fn decode(bytes: &ZBytes, writer: u64) -> Option<Message> {
        let (head, kept) = match bytes.to_bytes() {
            Cow::Borrowed(whole) => (whole.first_chunk().copied()?, Bytes::OfZenoh(bytes.clone())),
            Cow::Owned(joined) => (joined.first_chunk().copied()?, Bytes::Joined(joined)),
        };
        Some(Message { seq: u64::from_le_bytes(head), bytes: kept, writer })
    }

    /// Makes the view of the message, which is valid as long as the message exists.
    #[inline]
    pub fn view(&self, loan: u64) -> tb_view {
        let of_zenoh;
        let whole = match &self.bytes {
            Bytes::OfZenoh(bytes) => {
                of_zenoh = bytes.to_bytes();
                &*of_zenoh
            }
            Bytes::Joined(joined) => joined,
        };
        let payload = &whole[HEAD..];
        tb_view {
            seq: self.seq,
            data: payload.as_ptr(),
            len: payload.len() as u64,
            writer: self.writer,
            loan,
            ..tb_view::default()
        }
    }
}
