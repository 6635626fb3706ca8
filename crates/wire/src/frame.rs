//! Frames of the protocol between controller and agent, and their form on the byte stream.

use crate::Message;

/// Largest number of bytes of kind and body of a frame. A longer frame is refused before memory is allocated.
pub const MAX_FRAME: usize = 32 << 20;

/// One frame of the protocol between controller and agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// A frame with a message between controller and agent.
    Message(Box<Message>),
    /// A frame with a piece of the sample memory of one end.
    Memory {
        /// Index of the end in the order that the controller sent to the agent.
        end: u8,
        /// Offset of the piece in the sample memory, in bytes.
        offset: u64,
        /// Bytes of this piece of the end's sample memory.
        bytes: Vec<u8>,
    },
}

/// Error: the received bytes are not frames of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The length of a frame is zero or above [`MAX_FRAME`], or the frame is shorter than its header.
    #[error(
        "a frame of {0} bytes is outside 1..={MAX_FRAME}: the other side does not speak Tailbound's agent protocol"
    )]
    Length(usize),
    /// Error: this release does not know the kind of the received frame.
    #[error("frame kind {0} is not known: the other side speaks a later agent protocol")]
    Kind(u8),
    /// Error: the message in a received frame cannot be parsed.
    #[error("an agent message is not understood: {0}")]
    Message(String),
}

/// Converts a frame into the bytes that are sent on the stream.
pub fn encode(frame: &Frame) -> Vec<u8> {
    let mut out = vec![0; 4];
    match frame {
        Frame::Message(message) => {
            out.push(0);
            serde_json::to_writer(&mut out, message).expect("a message could not be written as JSON");
        }
        Frame::Memory { end, offset, bytes } => {
            out.push(1);
            out.push(*end);
            out.extend_from_slice(&offset.to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

/// Splits a received byte stream into frames of the protocol between controller and agent.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    begin: usize,
    /// Number of bytes that were received since the beginning of the stream of frames.
    pub received: u64,
}

impl FrameReader {
    /// Adds received bytes to the stream that is split into frames.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.begin > 0 {
            self.buffer.drain(..self.begin);
            self.begin = 0;
        }
        self.received += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
    }

    /// Number of bytes of all frames that the reader has returned.
    pub fn consumed(&self) -> u64 {
        self.received - (self.buffer.len() - self.begin) as u64
    }

    /// Takes the next complete frame from the stream; `None` = more bytes are needed.
    ///
    /// # Errors
    /// The received bytes are not frames. The stream cannot be used any further.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let rest = &self.buffer[self.begin..];
        let Some(head) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length == 0 || length > MAX_FRAME {
            return Err(WireError::Length(length));
        }
        let Some(body) = rest.get(4..4 + length) else { return Ok(None) };
        let frame = match body[0] {
            0 => Frame::Message(Box::new(
                serde_json::from_slice(&body[1..]).map_err(|e| WireError::Message(e.to_string()))?,
            )),
            1 => {
                let (end, offset) = (body.get(1), body.get(2..10));
                let (Some(end), Some(offset)) = (end, offset) else { return Err(WireError::Length(length)) };
                let offset = u64::from_le_bytes(offset.try_into().expect("eight bytes"));
                Frame::Memory { end: *end, offset, bytes: body[10..].to_vec() }
            }
            kind => return Err(WireError::Kind(kind)),
        };
        self.begin += 4 + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Heartbeat, Spare};
    use proptest::prelude::*;

    #[test]
    fn a_heartbeat_has_at_most_a_hundred_bytes() {
        let has_at_most = |message| assert!(encode(&Frame::Message(Box::new(message))).len() <= 100);
        has_at_most(Message::Heartbeat(Heartbeat { n: u64::MAX, received: u64::MAX, spare: None }));
        // After a year, on a machine that has run for ten years, for a time span of an hour.
        let begin_ns = 315_360_000_000_000_000;
        let spare = Spare::of((begin_ns, begin_ns + 3_600_000_000_000), i64::MAX);
        has_at_most(Message::Heartbeat(Heartbeat { n: 31_536_000, received: 999_999_999_999, spare: Some(spare) }));
        has_at_most(Message::Spare(spare));
        // A year at 100,000 messages per second that are all late or lost, and all counters have moved.
        let moved = serde_json::from_str("65535").unwrap();
        let (late, lost) = (3_153_600_000_000, 3_153_600_000_000);
        let worst = (31_536_000_000, 31_536_000_000_000);
        has_at_most(Message::SoFar((999_999_999_999, late, lost, worst.0, worst.1, moved).into()));
        // Round trips of up to an hour.
        let hour_ns = 3_600_000_000_000;
        has_at_most(Message::Figures((late, lost, hour_ns, hour_ns, hour_ns).into()));
    }

    #[test]
    fn a_time_span_to_spare_contains_the_given_one() {
        let spare = Spare::of((1_234_567, 9_999_001), 5_000_000);
        assert_eq!((spare, spare.span()), (Spare(1_234, 8_766, 23), (1_234_000, 10_000_000)));
        assert_eq!(Spare::of((0, i64::MAX), 0), Spare(0, u32::MAX, 0));
    }

    #[test]
    fn a_monstrous_length_is_refused() {
        let mut reader = FrameReader::default();
        reader.push(&u32::MAX.to_le_bytes());
        assert_eq!(reader.next_frame(), Err(WireError::Length(u32::MAX as usize)));
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let mut reader = FrameReader::default();
        let body = br#"{"heartbeat":{"n":1,"received":2,"later":true}}"#;
        reader.push(&(body.len() as u32 + 1).to_le_bytes());
        reader.push(&[0]);
        reader.push(body);
        let expected = Message::Heartbeat(Heartbeat { n: 1, received: 2, spare: None });
        assert_eq!(reader.next_frame(), Ok(Some(Frame::Message(Box::new(expected)))));
    }

    proptest! {
        #[test]
        fn frames_survive_any_cutting(pieces in prop::collection::vec((0u8..4, any::<u64>(), prop::collection::vec(any::<u8>(), 0..200)), 0..8), cut in 1usize..50) {
            let frames: Vec<Frame> = pieces.into_iter().map(|(end, offset, bytes)| Frame::Memory { end, offset, bytes }).collect();
            let stream: Vec<u8> = frames.iter().flat_map(encode).collect();
            let (mut reader, mut got) = (FrameReader::default(), Vec::new());
            for piece in stream.chunks(cut) {
                reader.push(piece);
                while let Some(frame) = reader.next_frame().unwrap() {
                    got.push(frame);
                }
            }
            prop_assert_eq!(got, frames);
            prop_assert_eq!(reader.received, stream.len() as u64);
        }

        #[test]
        fn noise_is_refused_or_waits(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut reader = FrameReader::default();
            reader.push(&bytes);
            while let Ok(Some(_)) = reader.next_frame() {}
        }
    }
}
