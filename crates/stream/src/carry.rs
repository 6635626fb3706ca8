//! Moves bytes between a connection and one side of a session (client or holder): bytes from the side's source go to
//! the connection, and bytes from the connection go to the side's sink.

use crate::frame::{Frames, MAX_BODY, NotFrames};
use crate::side::Side;
use std::future::pending;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// One connection of this side of a session (client or holder) to the other side.
pub(crate) struct Connection<R, W> {
    reader: R,
    pub writer: Outlet<W>,
    frames: Frames,
    buffer: Vec<u8>,
}

/// The writing part of a connection, and bytes that wait to be written.
pub(crate) struct Outlet<W> {
    to: W,
    out: Vec<u8>,
    begin: usize,
    unflushed: bool,
}

impl<W: AsyncWrite + Unpin> Outlet<W> {
    fn new(to: W) -> Outlet<W> {
        Outlet { to, out: Vec::new(), begin: 0, unflushed: false }
    }

    /// The empty buffer into which the next bytes for the connection are put; `None` if earlier bytes still wait to be
    /// written.
    fn free(&mut self) -> Option<&mut Vec<u8>> {
        if self.begin < self.out.len() {
            return None;
        }
        self.begin = 0;
        self.out.clear();
        Some(&mut self.out)
    }

    /// Writes some bytes to the connection, or flushes the connection if all bytes are written. The future is never
    /// ready if there is nothing to do. The future may be dropped at any time.
    async fn step(&mut self) -> io::Result<()> {
        let rest = &self.out[self.begin..];
        if !rest.is_empty() {
            self.begin += write(&mut self.to, rest).await?;
            self.unflushed = true;
        } else if self.unflushed {
            self.to.flush().await?;
            self.unflushed = false;
        } else {
            pending::<()>().await;
        }
        Ok(())
    }

    /// Writes all bytes that wait for the connection to the other side, and flushes it.
    pub async fn all(&mut self) -> io::Result<()> {
        while self.begin < self.out.len() || self.unflushed {
            self.step().await?;
        }
        Ok(())
    }

    /// Adds bytes that are sent over the connection before the frames of this side of the session.
    pub fn add(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Writes the last frames of this side of the session and closes the connection.
    pub async fn close(mut self, side: &mut Side) -> io::Result<()> {
        side.write_frames(&mut self.out);
        self.all().await?;
        self.to.shutdown().await
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<usize> {
    match to.write(bytes).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        n => Ok(n),
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Connection<R, W> {
    pub fn new(reader: R, writer: W) -> Connection<R, W> {
        Connection { reader, writer: Outlet::new(writer), frames: Frames::default(), buffer: vec![0; MAX_BODY] }
    }

    /// Reads the first line of the other side; `None` if the connection ended before the line was complete.
    pub async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(line) = self.frames.line()? {
                return Ok(Some(line));
            }
            match self.reader.read(&mut self.buffer).await? {
                0 => return Ok(None),
                n => self.frames.push(&self.buffer[..n]),
            }
        }
    }

    /// Handles bytes that were read from the connection to the other side.
    fn received(&mut self, bytes: usize, side: &mut Side) -> Result<(), NotFrames> {
        self.frames.push(&self.buffer[..bytes]);
        self.handle_frames(side)
    }

    /// Handles all complete frames that were read from the connection.
    pub fn handle_frames(&mut self, side: &mut Side) -> Result<(), NotFrames> {
        while let Some(frame) = self.frames.next()? {
            side.handle(frame)?;
        }
        Ok(())
    }
}

/// A side of a session (client or holder) with its source and its sink: bytes from the source are sent to the other
/// side, and bytes from the other side are written to the sink.
pub(crate) struct Carrier<S, K> {
    pub side: Side,
    pub source: Option<S>,
    pub sink: Option<K>,
    unflushed: bool,
    buffer: Vec<u8>,
}

/// The event of the connection that [`Carrier::turn`] handled.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Bytes were moved to the connection, or to the sink (the writer for received bytes).
    Moved,
    /// Event: bytes were received over the connection.
    Received,
    /// The connection to the other side was cut.
    Cut(io::Error),
    /// The source (the reader of bytes to be sent) has ended or failed. The source is closed now.
    Source(io::Result<()>),
    /// The sink (the writer for received bytes) failed. The sink is closed now, and further bytes for it are dropped.
    Sink(io::Error),
}

impl<S: AsyncRead + Unpin, K: AsyncWrite + Unpin> Carrier<S, K> {
    pub fn new(side: Side, source: S, sink: K) -> Carrier<S, K> {
        Carrier { side, source: Some(source), sink: Some(sink), unflushed: false, buffer: vec![0; MAX_BODY] }
    }

    /// Whether all received bytes were written to the sink (the writer for received bytes) and flushed.
    pub fn is_delivered(&self) -> bool {
        self.side.inbox().is_empty() && !self.unflushed
    }

    /// Waits for one event and handles the event. The future may be dropped at any time.
    pub async fn turn<R, W>(&mut self, connection: Option<&mut Connection<R, W>>) -> Turn
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let Carrier { side, source, sink, unflushed, buffer } = self;
        if sink.is_none() {
            while !side.inbox().is_empty() {
                side.delivered(side.inbox().len());
            }
            *unflushed = false;
        }
        let mut connection = connection;
        if let Some(out) = connection.as_mut().and_then(|c| c.writer.free()) {
            side.write_frames(out);
        }
        let room = side.room().min(buffer.len());
        let event = {
            let (reader, writer) = match &mut connection {
                Some(Connection { reader, writer, buffer, .. }) => (Some((reader, buffer)), Some(writer)),
                None => (None, None),
            };
            tokio::select! {
                read = read(source.as_mut(), &mut buffer[..room]), if room > 0 => Event::Source(read),
                delivered = deliver(sink.as_mut(), side.inbox(), unflushed) => Event::Sink(delivered),
                read = async {
                    match reader {
                        Some((reader, buffer)) => reader.read(buffer).await,
                        None => pending().await,
                    }
                } => Event::Received(read),
                wrote = async {
                    match writer {
                        Some(writer) => writer.step().await,
                        None => pending().await,
                    }
                } => Event::Wrote(wrote),
            }
        };
        match event {
            Event::Source(Ok(n)) if n > 0 => {
                side.take(&buffer[..n]);
                Turn::Moved
            }
            Event::Source(ended) => {
                *source = None;
                side.close();
                Turn::Source(ended.map(drop))
            }
            Event::Sink(Ok(n)) => {
                side.delivered(n);
                Turn::Moved
            }
            Event::Sink(Err(e)) => {
                *sink = None;
                Turn::Sink(e)
            }
            Event::Received(Ok(0)) => Turn::Cut(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended")),
            Event::Received(Ok(n)) => match connection.map(|c| c.received(n, side)) {
                Some(Err(e)) => Turn::Cut(e.into()),
                _ => Turn::Received,
            },
            Event::Wrote(Ok(())) => Turn::Moved,
            Event::Received(Err(e)) | Event::Wrote(Err(e)) => Turn::Cut(e),
        }
    }
}

enum Event {
    Source(io::Result<usize>),
    Sink(io::Result<usize>),
    Received(io::Result<usize>),
    Wrote(io::Result<()>),
}

async fn read(source: Option<&mut (impl AsyncRead + Unpin)>, buffer: &mut [u8]) -> io::Result<usize> {
    match source {
        Some(source) => source.read(buffer).await,
        None => pending().await,
    }
}

/// Writes received bytes to the sink, or flushes the sink if there are no received bytes. Returns the number of written
/// bytes, 0 after a flush.
async fn deliver(
    sink: Option<&mut (impl AsyncWrite + Unpin)>,
    inbox: &[u8],
    unflushed: &mut bool,
) -> io::Result<usize> {
    match sink {
        Some(sink) if !inbox.is_empty() => {
            let n = write(sink, inbox).await?;
            *unflushed = true;
            Ok(n)
        }
        Some(sink) if *unflushed => {
            sink.flush().await?;
            *unflushed = false;
            Ok(0)
        }
        _ => pending().await,
    }
}
