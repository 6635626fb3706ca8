//! Frames of one connection. The documentation of the crate describes the kinds of frames.

use std::io;

/// Maximum number of bytes in the body of a frame.
pub(crate) const MAX_BODY: usize = 64 * 1024;

const HEAD: usize = 5;

/// A frame of the connection's protocol, or a part of a data frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Data(Vec<u8>),
    Acknowledged(u64),
    Ping(u64),
    End,
    /// Frame with the wait status of the held process, as the kernel gives it; `None` in the frame of a client, which
    /// already knows the status.
    Ended(Option<i32>),
}

/// Error: the bytes of the connection are not frames of this protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}: the other side does not speak the protocol of tailbound {release}", release = crate::RELEASE)]
pub(crate) struct NotFrames(pub String);

impl From<NotFrames> for io::Error {
    fn from(e: NotFrames) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, e)
    }
}

pub(crate) fn head(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(length as u32).to_le_bytes());
}

/// Appends a frame to `out` in its encoded form.
pub(crate) fn encode(frame: &Frame, out: &mut Vec<u8>) {
    let (count, status);
    let (kind, body): (u8, &[u8]) = match frame {
        Frame::Data(bytes) => (0, bytes),
        Frame::Acknowledged(n) | Frame::Ping(n) => {
            count = n.to_le_bytes();
            (if matches!(frame, Frame::Ping(_)) { 2 } else { 1 }, &count)
        }
        Frame::End => (3, &[]),
        Frame::Ended(None) => (4, &[]),
        Frame::Ended(Some(wait_status)) => {
            status = wait_status.to_le_bytes();
            (4, &status)
        }
    };
    head(kind, body.len(), out);
    out.extend_from_slice(body);
}

/// Splits a byte stream into frames. Data is passed on as soon as it is received: if a connection is cut within a data
/// frame, the data before the cut is not lost.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffer: Vec<u8>,
    begin: usize,
    /// Number of bytes of the present data frame that were not received yet.
    data_left: usize,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.begin);
        self.begin = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the line before the first frame, without its final newline; `None` if more bytes are needed.
    pub fn line(&mut self) -> Result<Option<Vec<u8>>, NotFrames> {
        let Some(end) = self.buffer.iter().position(|b| *b == b'\n') else {
            let long = self.buffer.len() > MAX_BODY;
            let no_line = || NotFrames("the connection does not begin with a line of text".into());
            return if long { Err(no_line()) } else { Ok(None) };
        };
        self.begin = end + 1;
        Ok(Some(self.buffer[..end].to_vec()))
    }

    /// Takes the next frame from the received bytes; `None` if more bytes are needed.
    pub fn next(&mut self) -> Result<Option<Frame>, NotFrames> {
        let rest = &self.buffer[self.begin..];
        if self.data_left > 0 {
            let here = rest.len().min(self.data_left);
            if here == 0 {
                return Ok(None);
            }
            let data = rest[..here].to_vec();
            self.data_left -= here;
            self.begin += here;
            return Ok(Some(Frame::Data(data)));
        }
        let Some([kind, length @ ..]) = rest.first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_BODY {
            return Err(NotFrames(format!("a frame of {length} bytes")));
        }
        if *kind == 0 {
            self.begin += HEAD;
            self.data_left = length;
            return self.next();
        }
        let Some(body) = rest.get(HEAD..HEAD + length) else { return Ok(None) };
        let count = || {
            let bytes = body.try_into().map_err(|_| NotFrames(format!("a count of {length} bytes")))?;
            Ok(u64::from_le_bytes(bytes))
        };
        let frame = match kind {
            1 => Frame::Acknowledged(count()?),
            2 => Frame::Ping(count()?),
            3 if length == 0 => Frame::End,
            4 if length == 0 => Frame::Ended(None),
            4 if length == 4 => Frame::Ended(body.try_into().ok().map(i32::from_le_bytes)),
            _ => return Err(NotFrames(format!("a frame of kind {kind} has {length} bytes"))),
        };
        self.begin += HEAD + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_frame() -> impl Strategy<Value = Frame> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 1..300).prop_map(Frame::Data),
            any::<u64>().prop_map(Frame::Acknowledged),
            any::<u64>().prop_map(Frame::Ping),
            Just(Frame::End),
            any::<Option<i32>>().prop_map(Frame::Ended),
        ]
    }

    /// Joins neighbouring frames with data into one frame.
    fn joined(frames: Vec<Frame>) -> Vec<Frame> {
        let mut all: Vec<Frame> = Vec::new();
        for frame in frames {
            match (all.last_mut(), frame) {
                (Some(Frame::Data(before)), Frame::Data(more)) => before.extend(more),
                (_, frame) => all.push(frame),
            }
        }
        all
    }

    #[test]
    fn a_ping_has_thirteen_bytes() {
        let mut out = Vec::new();
        encode(&Frame::Ping(u64::MAX), &mut out);
        assert_eq!(out.len(), 13);
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        for (bytes, reason) in [
            (&[0, 1, 0, 1, 0][..], "a frame of 65537 bytes"),
            (&[9, 0, 0, 0, 0], "a frame of kind 9"),
            (&[1, 1, 0, 0, 0, 7], "a count of 1 bytes"),
            (&[3, 1, 0, 0, 0, 7], "a frame of kind 3 has 1 bytes"),
        ] {
            let mut frames = Frames::default();
            frames.push(bytes);
            let refused = frames.next().unwrap_err().to_string();
            assert!(refused.starts_with(reason), "{refused}");
        }
    }

    #[test]
    fn frames_follow_a_line_in_the_same_piece() {
        let mut frames = Frames::default();
        frames.push(b"{\"a\":1}");
        assert_eq!(frames.line(), Ok(None));
        let mut rest = b"\n".to_vec();
        encode(&Frame::Data(b"x".to_vec()), &mut rest);
        frames.push(&rest);
        assert_eq!(frames.line(), Ok(Some(b"{\"a\":1}".to_vec())));
        assert_eq!(frames.next(), Ok(Some(Frame::Data(b"x".to_vec()))));
        frames.push(&vec![b'a'; MAX_BODY + 1]);
        assert!(frames.line().is_err());
    }

    proptest! {
        #[test]
        fn frames_survive_any_cutting(given in prop::collection::vec(any_frame(), 0..12), cut in 1usize..70) {
            let mut stream = Vec::new();
            given.iter().for_each(|f| encode(f, &mut stream));
            let (mut frames, mut got) = (Frames::default(), Vec::new());
            for piece in stream.chunks(cut) {
                frames.push(piece);
                while let Some(frame) = frames.next().unwrap() {
                    got.push(frame);
                }
            }
            prop_assert_eq!(joined(got), joined(given));
        }

        #[test]
        fn noise_is_refused_or_waits(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut frames = Frames::default();
            frames.push(&bytes);
            while let Ok(Some(_)) = frames.next() {}
        }
    }
}
