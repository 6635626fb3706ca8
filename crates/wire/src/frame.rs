//! Frames on the byte stream.

use crate::Message;

/// Longest body of a frame, in octets. A longer one is refused before memory is asked for.
pub const MAX_FRAME: usize = 16 << 20;

/// One frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// A message.
    Message(Box<Message>),
    /// A piece of the sample memory of end number `end`, from octet `offset` on.
    Memory {
        /// Index of the end within the agent's order.
        end: u8,
        /// Where it belongs.
        offset: u64,
        /// The octets.
        bytes: Vec<u8>,
    },
}

/// The stream does not hold frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A length beyond [`MAX_FRAME`], or zero.
    #[error(
        "a frame of {0} octets is outside 1..={MAX_FRAME}: the other side does not speak Tailbound's agent protocol"
    )]
    Length(usize),
    /// A kind that this version does not know.
    #[error("frame kind {0} is not known: the other side speaks a later agent protocol")]
    Kind(u8),
    /// A message that is not understood.
    #[error("an agent message is not understood: {0}")]
    Message(String),
}

/// The octets of a frame.
pub fn encode(frame: &Frame) -> Vec<u8> {
    let mut out = vec![0; 4];
    match frame {
        Frame::Message(message) => {
            out.push(0);
            serde_json::to_writer(&mut out, message).expect("messages hold no maps with other than text keys");
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

/// Takes octets as they come, gives frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    begin: usize,
    /// Octets taken since the beginning: with the session id, the place where a new stream would resume.
    pub received: u64,
}

impl FrameReader {
    /// Takes octets.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.begin > 0 {
            self.buffer.drain(..self.begin);
            self.begin = 0;
        }
        self.received += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
    }

    /// Octets that were given out as frames.
    pub fn consumed(&self) -> u64 {
        self.received - (self.buffer.len() - self.begin) as u64
    }

    /// The next whole frame, or `None` when more octets are needed.
    ///
    /// # Errors
    /// The stream holds something else; it cannot be read on.
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
                let offset = u64::from_le_bytes(offset.try_into().expect("eight octets"));
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
    use crate::Heartbeat;
    use proptest::prelude::*;

    #[test]
    fn a_heartbeat_fits_in_a_hundred_octets() {
        let message = Message::Heartbeat(Heartbeat { n: u64::MAX, received: u64::MAX });
        assert!(encode(&Frame::Message(Box::new(message))).len() <= 100);
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
        let expected = Message::Heartbeat(Heartbeat { n: 1, received: 2 });
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
