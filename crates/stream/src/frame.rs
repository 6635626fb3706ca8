//! Frames within one connection, as the documentation of the crate gives them.

use std::io;

/// Longest body of a frame, in octets.
pub(crate) const MAX_BODY: usize = 64 * 1024;

const HEAD: usize = 5;

/// A frame, or a part of one with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Data(Vec<u8>),
    Acknowledged(u64),
    Ping(u64),
    End,
    Ended(String),
}

/// The connection carries something else than frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}: the other side does not speak as tailbound {release} does", release = crate::RELEASE)]
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

/// Appends a frame.
pub(crate) fn encode(frame: &Frame, out: &mut Vec<u8>) {
    let count;
    let (kind, body): (u8, &[u8]) = match frame {
        Frame::Data(octets) => (0, octets),
        Frame::Acknowledged(n) | Frame::Ping(n) => {
            count = n.to_le_bytes();
            (if matches!(frame, Frame::Ping(_)) { 2 } else { 1 }, &count)
        }
        Frame::End => (3, &[]),
        Frame::Ended(text) => (4, text.as_bytes()),
    };
    head(kind, body.len(), out);
    out.extend_from_slice(body);
}

/// Takes octets as they come, gives frames. Data is given on as it comes: a connection that is cut within a frame has
/// carried what came before the cut.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffer: Vec<u8>,
    begin: usize,
    /// Octets of the present data frame that have not come yet.
    data_left: usize,
}

impl Frames {
    pub fn push(&mut self, octets: &[u8]) {
        self.buffer.drain(..self.begin);
        self.begin = 0;
        self.buffer.extend_from_slice(octets);
    }

    /// A line before the frames, without its end.
    pub fn line(&mut self) -> Result<Option<Vec<u8>>, NotFrames> {
        let Some(end) = self.buffer.iter().position(|b| *b == b'\n') else {
            let long = self.buffer.len() > MAX_BODY;
            return if long { Err(NotFrames("no line begins the connection".into())) } else { Ok(None) };
        };
        self.begin = end + 1;
        Ok(Some(self.buffer[..end].to_vec()))
    }

    /// The next frame, or `None` when more octets are needed.
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
            return Err(NotFrames(format!("a frame of {length} octets")));
        }
        if *kind == 0 {
            self.begin += HEAD;
            self.data_left = length;
            return self.next();
        }
        let Some(body) = rest.get(HEAD..HEAD + length) else { return Ok(None) };
        let count = || {
            let octets = body.try_into().map_err(|_| NotFrames(format!("a count of {length} octets")))?;
            Ok(u64::from_le_bytes(octets))
        };
        let frame = match kind {
            1 => Frame::Acknowledged(count()?),
            2 => Frame::Ping(count()?),
            3 if length == 0 => Frame::End,
            4 => Frame::Ended(String::from_utf8_lossy(body).into_owned()),
            _ => return Err(NotFrames(format!("a frame of kind {kind} with {length} octets"))),
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
            "[a-z ]{0,20}".prop_map(Frame::Ended),
        ]
    }

    /// Neighbouring data made one.
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
    fn a_ping_is_thirteen_octets() {
        let mut out = Vec::new();
        encode(&Frame::Ping(u64::MAX), &mut out);
        assert_eq!(out.len(), 13);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for (octets, reason) in [
            (&[0, 1, 0, 1, 0][..], "a frame of 65537 octets"),
            (&[9, 0, 0, 0, 0], "a frame of kind 9"),
            (&[1, 1, 0, 0, 0, 7], "a count of 1 octets"),
            (&[3, 1, 0, 0, 0, 7], "a frame of kind 3 with 1 octets"),
        ] {
            let mut frames = Frames::default();
            frames.push(octets);
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
        fn noise_is_refused_or_waits(octets in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut frames = Frames::default();
            frames.push(&octets);
            while let Ok(Some(_)) = frames.next() {}
        }
    }
}
