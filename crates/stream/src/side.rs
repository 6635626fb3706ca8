//! The state of one side of a session (client or holder), without input or output: the frames that the side sends, and
//! its reaction to frames.
//!
//! Bytes are counted from the beginning of the session. A byte that this side sends is *kept* (stored) until the other
//! side has delivered it, and counts as *received* once it was delivered on this side. After a cut, each side continues
//! from the number of bytes that the other side has received, so bytes that were lost in the connection are sent again.

use crate::frame::{Frame, MAX_BODY, NotFrames, encode, head};
use std::collections::VecDeque;

/// Maximum number of bytes, in each direction, that are stored until the other side has received them. While this
/// number is stored, no further bytes are read from the source.
pub(crate) const BOUND: usize = 4 << 20;

/// Number of received bytes after which this side sends an acknowledgement.
const ACKNOWLEDGE: u64 = 256 << 10;

/// The role of a side in a session: the client, which sends pings, or the holder, which answers pings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Client,
    Holder,
}

#[derive(Debug)]
pub(crate) struct Side {
    part: Part,
    /// Bytes that are stored for the other side of the session. The first stored byte has the number `kept_from`, which
    /// the other side has not received yet.
    kept: VecDeque<u8>,
    kept_from: u64,
    /// Number of the next byte that this side must write on this connection.
    written: u64,
    /// Whether no more bytes for the other side of the session will follow.
    closed: bool,
    end_written: bool,
    /// Content of the last frame of this side: the wait status of the held process from the holder, `None` from a
    /// client.
    last: Option<Option<i32>>,
    last_written: bool,
    /// Bytes that were received over the connection and are not delivered yet.
    inbox: VecDeque<u8>,
    received: u64,
    /// Number of received bytes that were acknowledged to the other side of the session.
    acknowledged: u64,
    ping: bool,
    other_closed: bool,
    other_last: Option<Option<i32>>,
}

impl Side {
    pub fn new(part: Part) -> Side {
        Side {
            part,
            kept: VecDeque::new(),
            kept_from: 0,
            written: 0,
            closed: false,
            end_written: false,
            last: None,
            last_written: false,
            inbox: VecDeque::new(),
            received: 0,
            acknowledged: 0,
            ping: false,
            other_closed: false,
            other_last: None,
        }
    }

    /// Number of bytes for the other side of the session that [`Side::take`] can accept at present.
    pub fn room(&self) -> usize {
        if self.closed { 0 } else { BOUND - self.kept.len() }
    }

    /// Takes bytes that are to be sent to the other side of the session.
    pub fn take(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room(), "more bytes were given to this side of the session than it has room for");
        self.kept.extend(bytes);
    }

    /// Declares that no more bytes for the other side of the session will follow.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Sets the last frame of this side. The holder sends the wait status of the process after all bytes; the client
    /// sends `None` to confirm the status.
    pub fn conclude(&mut self, last: Option<i32>) {
        self.last = Some(last);
    }

    /// Requests that this side sends a ping to the other side.
    pub fn ping(&mut self) {
        self.ping = true;
    }

    /// Number of received bytes that were delivered so far. After a cut, the other side continues from this number.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that were received from the other side and are to be delivered next.
    pub fn inbox(&self) -> &[u8] {
        self.inbox.as_slices().0
    }

    /// Records that bytes received from the other side were delivered.
    pub fn delivered(&mut self, bytes: usize) {
        self.inbox.drain(..bytes);
        self.received += bytes as u64;
        if self.inbox.is_empty() {
            // The memory of a burst is released when the session is idle again.
            self.inbox.shrink_to(MAX_BODY);
        }
    }

    /// Whether the other side of the session sends no more bytes, and all its bytes were delivered.
    pub fn is_finished(&self) -> bool {
        self.other_closed && self.inbox.is_empty()
    }

    /// Content of the last frame of the session's other side; known once all bytes before this frame were delivered.
    pub fn other_last(&self) -> Option<Option<i32>> {
        self.other_last.filter(|_| self.inbox.is_empty())
    }

    /// Starts a new connection. `received` is the number of bytes that the other side has received. Bytes that were
    /// received over the previous connection and not delivered will be sent again.
    pub fn resume(&mut self, received: u64) -> Result<(), NotFrames> {
        let sent = self.kept_from + self.kept.len() as u64;
        if received < self.kept_from || received > sent {
            let from = self.kept_from;
            return Err(NotFrames(format!(
                "the other side has received {received} bytes of {sent}, but bytes before byte {from} are no longer \
                 stored"
            )));
        }
        self.written = sent;
        self.forget(received)?;
        self.written = received;
        (self.end_written, self.last_written, self.ping) = (false, false, false);
        self.inbox.clear();
        self.acknowledged = self.received;
        (self.other_closed, self.other_last) = (false, None);
        Ok(())
    }

    fn forget(&mut self, received: u64) -> Result<(), NotFrames> {
        if received < self.kept_from || received > self.written {
            return Err(NotFrames(format!("{received} bytes were acknowledged, but only {} were sent", self.written)));
        }
        self.kept.drain(..(received - self.kept_from) as usize);
        self.kept_from = received;
        if self.kept.is_empty() {
            self.kept.shrink_to(MAX_BODY);
        }
        Ok(())
    }

    /// Handles a frame that was received from the other side.
    pub fn handle(&mut self, frame: Frame) -> Result<(), NotFrames> {
        match frame {
            Frame::Data(_) if self.other_closed => Err(NotFrames("bytes after the end".into())),
            Frame::Data(bytes) if self.inbox.len() + bytes.len() > BOUND => {
                Err(NotFrames("the other side sent more bytes than may be unacknowledged".into()))
            }
            Frame::Data(bytes) => {
                self.inbox.extend(bytes);
                Ok(())
            }
            Frame::Acknowledged(received) => self.forget(received),
            Frame::Ping(received) => {
                self.ping |= self.part == Part::Holder;
                self.forget(received)
            }
            Frame::End => {
                self.other_closed = true;
                Ok(())
            }
            Frame::Ended(last) => {
                self.other_closed = true;
                self.other_last = Some(last);
                Ok(())
            }
        }
    }

    /// Appends to `out` the frames that this side must send now; at most one of these frames contains data.
    pub fn write_frames(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.ping) {
            self.acknowledged = self.received;
            encode(&Frame::Ping(self.received), out);
        } else if self.received - self.acknowledged >= ACKNOWLEDGE {
            self.acknowledged = self.received;
            encode(&Frame::Acknowledged(self.received), out);
        }
        let begin = (self.written - self.kept_from) as usize;
        let bytes = (self.kept.len() - begin).min(MAX_BODY);
        if bytes > 0 {
            head(0, bytes, out);
            let (front, back) = self.kept.as_slices();
            let of_front = front.get(begin..).unwrap_or_default();
            let of_front = &of_front[..of_front.len().min(bytes)];
            let of_back = begin.saturating_sub(front.len());
            out.extend_from_slice(of_front);
            out.extend_from_slice(&back[of_back..of_back + bytes - of_front.len()]);
            self.written += bytes as u64;
        }
        if self.closed && !self.end_written && self.written == self.kept_from + self.kept.len() as u64 {
            self.end_written = true;
            encode(&Frame::End, out);
        }
        if let Some(last) = &self.last
            && (self.end_written || self.part == Part::Client)
            && !self.last_written
        {
            self.last_written = true;
            encode(&Frame::Ended(*last), out);
        }
    }
}

#[cfg(test)]
mod tests;
