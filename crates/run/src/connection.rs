//! A connection between two processes that carries frames over blocking descriptors.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tailbound_wire::{Frame, FrameReader, Message, encode};

fn unexpected_memory() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "sample memory was received instead of a message")
}

/// Waits until bytes or the end of the stream can be read, but at most for `limit`. Returns whether a read is possible.
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

/// A connection that sends and receives frames of the protocol between controller and agent.
pub(crate) struct Connection {
    input: File,
    output: File,
    reader: FrameReader,
    /// Number of bytes sent over the connection so far.
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

    /// Writes bytes that are not a frame, for tests of the process that receives them.
    #[cfg(test)]
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)
    }

    /// Number of bytes received over the connection so far.
    pub fn received(&self) -> u64 {
        self.reader.received
    }

    /// Reads bytes from the connection once. Returns `false` at the end of the stream.
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

    /// Receives the next message that is not a heartbeat. Returns `None` if the stream has ended.
    ///
    /// # Errors
    /// No message arrived within `limit`, or the stream broke.
    pub fn receive_within(&mut self, limit: Duration) -> io::Result<Option<Message>> {
        let deadline = Instant::now() + limit;
        loop {
            while let Some(frame) = self.pending()? {
                match frame {
                    Frame::Message(message) if matches!(*message, Message::Heartbeat(_)) => {}
                    Frame::Message(message) => return Ok(Some(*message)),
                    Frame::Memory { .. } => return Err(unexpected_memory()),
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !readable(&self.input, left)? {
                let text = format!("nothing was received for {} s", limit.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Takes the next frame that was read completely already; `None` = there is no such frame.
    pub fn pending(&mut self) -> io::Result<Option<Frame>> {
        self.reader.next_frame().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    /// Receives the next message. Returns `None` if the stream has ended.
    pub fn receive(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(frame) = self.pending()? {
                match frame {
                    Frame::Message(message) => return Ok(Some(*message)),
                    Frame::Memory { .. } => return Err(unexpected_memory()),
                }
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }
}
