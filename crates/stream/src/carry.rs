//! A side at work: between a connection and two byte streams of its own.

use crate::frame::{Frames, MAX_BODY, NotFrames};
use crate::side::Side;
use std::future::pending;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// One connection, until it is cut.
pub(crate) struct Connection<R, W> {
    reader: R,
    pub writer: Outlet<W>,
    frames: Frames,
    buffer: Vec<u8>,
}

/// Where octets go, and what has not yet gone.
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

    /// Empty if everything has gone.
    fn free(&mut self) -> Option<&mut Vec<u8>> {
        if self.begin < self.out.len() {
            return None;
        }
        self.begin = 0;
        self.out.clear();
        Some(&mut self.out)
    }

    /// One step: writes some of what is there, or flushes when all is written. Never ready when there is nothing to do.
    /// Nothing is lost when it is dropped before it is ready.
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

    /// Writes and flushes all that is there.
    pub async fn all(&mut self) -> io::Result<()> {
        while self.begin < self.out.len() || self.unflushed {
            self.step().await?;
        }
        Ok(())
    }

    /// Adds octets that go before the side's.
    pub fn add(&mut self, octets: &[u8]) {
        self.out.extend_from_slice(octets);
    }

    /// Writes the side's last word and closes.
    pub async fn close(mut self, side: &mut Side) -> io::Result<()> {
        side.say(&mut self.out);
        self.all().await?;
        self.to.shutdown().await
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), octets: &[u8]) -> io::Result<usize> {
    match to.write(octets).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        n => Ok(n),
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Connection<R, W> {
    pub fn new(reader: R, writer: W) -> Connection<R, W> {
        Connection { reader, writer: Outlet::new(writer), frames: Frames::default(), buffer: vec![0; MAX_BODY] }
    }

    /// The line with which the other side begins; `None` when it ends before that.
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

    /// Takes what has come.
    fn hear(&mut self, octets: usize, side: &mut Side) -> Result<(), NotFrames> {
        self.frames.push(&self.buffer[..octets]);
        self.heard(side)
    }

    /// Takes what came behind the line.
    pub fn heard(&mut self, side: &mut Side) -> Result<(), NotFrames> {
        while let Some(frame) = self.frames.next()? {
            side.hear(frame)?;
        }
        Ok(())
    }
}

/// A side with the streams that it carries: octets come from the source and go into the sink.
pub(crate) struct Carrier<S, K> {
    pub side: Side,
    pub source: Option<S>,
    pub sink: Option<K>,
    unflushed: bool,
    buffer: Vec<u8>,
}

/// What a turn came to.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Octets moved here.
    Moved,
    /// Something was heard over the connection.
    Heard,
    /// The connection is no more.
    Cut(io::Error),
    /// The source ended (it is closed then), or failed.
    Source(io::Result<()>),
    /// The sink failed; it is closed, and what comes for it is dropped.
    Sink(io::Error),
}

impl<S: AsyncRead + Unpin, K: AsyncWrite + Unpin> Carrier<S, K> {
    pub fn new(side: Side, source: S, sink: K) -> Carrier<S, K> {
        Carrier { side, source: Some(source), sink: Some(sink), unflushed: false, buffer: vec![0; MAX_BODY] }
    }

    /// Everything that came was handed on and flushed.
    pub fn is_delivered(&self) -> bool {
        self.side.inbox().is_empty() && !self.unflushed
    }

    /// Waits for one thing and does it. Nothing is lost when it is dropped before it is ready.
    pub async fn turn<R, W>(&mut self, connection: Option<&mut Connection<R, W>>) -> Turn
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let Carrier { side, source, sink, unflushed, buffer } = self;
        if sink.is_none() {
            while !side.inbox().is_empty() {
                side.handed_on(side.inbox().len());
            }
            *unflushed = false;
        }
        let mut connection = connection;
        if let Some(out) = connection.as_mut().and_then(|c| c.writer.free()) {
            side.say(out);
        }
        let room = side.room().min(buffer.len());
        let taken = {
            let (reader, writer) = match &mut connection {
                Some(Connection { reader, writer, buffer, .. }) => (Some((reader, buffer)), Some(writer)),
                None => (None, None),
            };
            tokio::select! {
                read = read(source.as_mut(), &mut buffer[..room]), if room > 0 => Taken::Source(read),
                handed = hand_on(sink.as_mut(), side.inbox(), unflushed) => Taken::Sink(handed),
                read = async {
                    match reader {
                        Some((reader, buffer)) => reader.read(buffer).await,
                        None => pending().await,
                    }
                } => Taken::Heard(read),
                wrote = async {
                    match writer {
                        Some(writer) => writer.step().await,
                        None => pending().await,
                    }
                } => Taken::Wrote(wrote),
            }
        };
        match taken {
            Taken::Source(Ok(n)) if n > 0 => {
                side.take(&buffer[..n]);
                Turn::Moved
            }
            Taken::Source(ended) => {
                *source = None;
                side.close();
                Turn::Source(ended.map(drop))
            }
            Taken::Sink(Ok(n)) => {
                side.handed_on(n);
                Turn::Moved
            }
            Taken::Sink(Err(e)) => {
                *sink = None;
                Turn::Sink(e)
            }
            Taken::Heard(Ok(0)) => Turn::Cut(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended")),
            Taken::Heard(Ok(n)) => match connection.map(|c| c.hear(n, side)) {
                Some(Err(e)) => Turn::Cut(e.into()),
                _ => Turn::Heard,
            },
            Taken::Wrote(Ok(())) => Turn::Moved,
            Taken::Heard(Err(e)) | Taken::Wrote(Err(e)) => Turn::Cut(e),
        }
    }
}

enum Taken {
    Source(io::Result<usize>),
    Sink(io::Result<usize>),
    Heard(io::Result<usize>),
    Wrote(io::Result<()>),
}

async fn read(source: Option<&mut (impl AsyncRead + Unpin)>, buffer: &mut [u8]) -> io::Result<usize> {
    match source {
        Some(source) => source.read(buffer).await,
        None => pending().await,
    }
}

/// Octets that went, 0 after a flush.
async fn hand_on(
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
