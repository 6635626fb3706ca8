//! Frames over blocking descriptors.

use std::fs::File;
use std::io::{self, Read, Write};
use tailbound_wire::{Frame, FrameReader, Message, encode};

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
                    Frame::Memory { .. } => {
                        return Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            "sample memory where a message belongs",
                        ));
                    }
                }
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }
}
