//! One side of a session, without input or output: what is to be said on the connection, and what follows from what is
//! heard there.
//!
//! Octets are counted from the beginning of the session. An octet is *kept* until the other side has handed it on, and
//! counts as *received* once it has been handed on here. So both counts say how far each direction has come, whatever was
//! on its way, and after a cut each side goes on from the other's.

use crate::frame::{Frame, MAX_BODY, NotFrames, encode, head};
use std::collections::VecDeque;

/// Most octets that are kept in each direction; beyond it nothing more is read.
pub(crate) const BOUND: usize = 4 << 20;

/// So many octets are received before that is said.
const ACKNOWLEDGE: u64 = 256 << 10;

/// Who asks whether the other is there, and who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Client,
    Holder,
}

#[derive(Debug)]
pub(crate) struct Side {
    part: Part,
    /// Octets from `kept_from` on that the other side has not yet received.
    kept: VecDeque<u8>,
    kept_from: u64,
    /// The next octet to be written on this connection.
    written: u64,
    /// Nothing follows what is kept.
    closed: bool,
    end_written: bool,
    /// How the held process ended, or, of the client, that it knows.
    last: Option<String>,
    last_written: bool,
    /// Octets that have come and were not yet handed on.
    inbox: VecDeque<u8>,
    received: u64,
    /// Of `received`, what the other side was told.
    told: u64,
    ping: bool,
    other_closed: bool,
    other_last: Option<String>,
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
            told: 0,
            ping: false,
            other_closed: false,
            other_last: None,
        }
    }

    /// How many octets [`Side::take`] takes.
    pub fn room(&self) -> usize {
        if self.closed { 0 } else { BOUND - self.kept.len() }
    }

    /// Takes octets for the other side.
    pub fn take(&mut self, octets: &[u8]) {
        assert!(octets.len() <= self.room(), "more than there is room for");
        self.kept.extend(octets);
    }

    /// No octets follow.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// The last word: of the holder how the process ended, behind all octets; of the client that it knows.
    pub fn conclude(&mut self, last: String) {
        self.last = Some(last);
    }

    /// Asks whether the other side is there.
    pub fn ping(&mut self) {
        self.ping = true;
    }

    /// Octets handed on so far: where the other side is to go on.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// What is to be handed on next; empty when there is nothing.
    pub fn inbox(&self) -> &[u8] {
        self.inbox.as_slices().0
    }

    /// So many octets of the inbox were handed on.
    pub fn handed_on(&mut self, octets: usize) {
        self.inbox.drain(..octets);
        self.received += octets as u64;
        if self.inbox.is_empty() {
            // A session that has been idle since a burst does not hold its memory.
            self.inbox.shrink_to(MAX_BODY);
        }
    }

    /// All that the other side had to say was handed on.
    pub fn is_through(&self) -> bool {
        self.other_closed && self.inbox.is_empty()
    }

    /// The other side's last word, once everything before it was handed on.
    pub fn other_last(&self) -> Option<&str> {
        self.other_last.as_deref().filter(|_| self.inbox.is_empty())
    }

    /// On a new connection: the other side has received so many octets. What came over the last one and was not handed on
    /// will come once more.
    pub fn resume(&mut self, received: u64) -> Result<(), NotFrames> {
        let sent = self.kept_from + self.kept.len() as u64;
        if received < self.kept_from || received > sent {
            let from = self.kept_from;
            return Err(NotFrames(format!(
                "it has received {received} octets, of {sent}, with those up to {from} gone"
            )));
        }
        self.written = sent;
        self.forget(received)?;
        self.written = received;
        (self.end_written, self.last_written, self.ping) = (false, false, false);
        self.inbox.clear();
        self.told = self.received;
        (self.other_closed, self.other_last) = (false, None);
        Ok(())
    }

    fn forget(&mut self, received: u64) -> Result<(), NotFrames> {
        if received < self.kept_from || received > self.written {
            return Err(NotFrames(format!("{received} octets acknowledged of {}", self.written)));
        }
        self.kept.drain(..(received - self.kept_from) as usize);
        self.kept_from = received;
        if self.kept.is_empty() {
            self.kept.shrink_to(MAX_BODY);
        }
        Ok(())
    }

    /// Takes what came over the connection.
    pub fn hear(&mut self, frame: Frame) -> Result<(), NotFrames> {
        match frame {
            Frame::Data(_) if self.other_closed => Err(NotFrames("octets behind the end".into())),
            Frame::Data(octets) if self.inbox.len() + octets.len() > BOUND => {
                Err(NotFrames("more octets than were acknowledged".into()))
            }
            Frame::Data(octets) => {
                self.inbox.extend(octets);
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

    /// Appends what is to be said now, at most one piece of data; nothing when there is nothing to say.
    pub fn say(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.ping) {
            self.told = self.received;
            encode(&Frame::Ping(self.received), out);
        } else if self.received - self.told >= ACKNOWLEDGE {
            self.told = self.received;
            encode(&Frame::Acknowledged(self.received), out);
        }
        let begin = (self.written - self.kept_from) as usize;
        let octets = (self.kept.len() - begin).min(MAX_BODY);
        if octets > 0 {
            head(0, octets, out);
            let (front, back) = self.kept.as_slices();
            let of_front = front.get(begin..).unwrap_or_default();
            let of_front = &of_front[..of_front.len().min(octets)];
            let of_back = begin.saturating_sub(front.len());
            out.extend_from_slice(of_front);
            out.extend_from_slice(&back[of_back..of_back + octets - of_front.len()]);
            self.written += octets as u64;
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
            encode(&Frame::Ended(last.clone()), out);
        }
    }
}

#[cfg(test)]
mod tests;
