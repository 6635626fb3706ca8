//! Frames over blocking descriptors.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tailbound_wire::{Frame, FrameReader, Message, encode};

fn misplaced() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "sample memory where a message belongs")
}

/// Whether there is something to read (or the end of the stream) within a time.
pub(crate) fn readable(stream: &impl AsFd, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).as_millis().min(i32::MAX as u128) as i32;
        let mut fds = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Ok(n) => return Ok(n > 0),
            Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Both directions of a stream of frames.
pub(crate) struct Connection {
    input: File,
    output: File,
    reader: FrameReader,
    /// Octets written so far.
    pub sent: u64,
}

impl Connection {
    pub fn new(input: File, output: File) -> Connection {
        Connection { input, output, reader: FrameReader::default(), sent: 0 }
    }

    pub fn input(&self) -> &File {
        &self.input
    }

    pub fn send_frame(&mut self, frame: &Frame) -> io::Result<()> {
        let bytes = encode(frame);
        self.sent += bytes.len() as u64;
        self.output.write_all(&bytes)
    }

    pub fn send(&mut self, message: Message) -> io::Result<()> {
        self.send_frame(&Frame::Message(Box::new(message)))
    }

    pub fn received(&self) -> u64 {
        self.reader.received
    }

    /// One read; false at the end of the stream.
    pub fn fill(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 64 * 1024];
        loop {
            match self.input.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    self.reader.push(&buffer[..n]);
                    return Ok(true);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The next message that is not a heartbeat; `None` at the end of the stream.
    ///
    /// # Errors
    /// None came within the time, or the stream broke.
    pub fn receive_within(&mut self, limit: Duration) -> io::Result<Option<Message>> {
        let deadline = Instant::now() + limit;
        loop {
            while let Some(frame) = self.pending()? {
                match frame {
                    Frame::Message(message) if matches!(*message, Message::Heartbeat(_)) => {}
                    Frame::Message(message) => return Ok(Some(*message)),
                    Frame::Memory { .. } => return Err(misplaced()),
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !readable(&self.input, left)? {
                let text = format!("nothing was heard for {} s", limit.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// A frame that is already here.
    pub fn pending(&mut self) -> io::Result<Option<Frame>> {
        self.reader.next_frame().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    /// The next message; `None` at the end of the stream.
    pub fn receive(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(frame) = self.pending()? {
                match frame {
                    Frame::Message(message) => return Ok(Some(*message)),
                    Frame::Memory { .. } => return Err(misplaced()),
                }
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }
}
