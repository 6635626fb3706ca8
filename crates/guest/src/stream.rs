//! A stream to an agent in a guest, carried between it and standard input and output. It is taken up again when it was cut.

use crate::error::GuestError;
use crate::machine::console;
use crate::ports::{Connected, NotConnected, connect};
use std::cell::{Cell, RefCell};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// How long an agent's guest whose processor is taken away may be silent; shorter than the lease of what runs there.
pub const PATIENCE: Duration = Duration::from_secs(25);
/// The same of a guest in which a whole run goes on: real-time loads of the study may keep the threads of its interrupts from
/// the CPU for as long as they last. Shorter than the lease of the holder there.
pub const PATIENCE_WITH_A_RUN: Duration = Duration::from_secs(9 * 60);
/// The guest says its greeting within this time.
const GREETED: Duration = Duration::from_secs(5);

type Reader = Box<dyn AsyncRead + Unpin>;
type Writer = Box<dyn AsyncWrite + Unpin>;

/// Starts Tailbound with these arguments in the guest whose directory this is, and carries `input` and `output` until it
/// ends, or the guest was silent for `patience`.
///
/// # Errors
/// The guest has ended, with the end of its console; it does not answer.
pub async fn stream(
    directory: &Path,
    words: &[String],
    input: impl AsyncRead,
    output: impl AsyncWrite,
    patience: Duration,
) -> Result<(), GuestError> {
    // Unique among all streams to this guest.
    let session = format!("{}-{}", std::process::id(), tailbound_host::monotonic_ns());
    let (tell, told) = tokio::sync::oneshot::channel();
    let (tell, lock) = (Cell::new(Some(tell)), RefCell::new(None));
    let open = async || {
        // The connection before this one is no more.
        lock.replace(None);
        let at = directory.to_owned();
        let connected = tokio::task::spawn_blocking(move || connect(&at, GREETED)).await.map_err(io::Error::other)?;
        match connected {
            Ok(connected) => {
                let (reader, writer, held) = halves(connected)?;
                lock.replace(held);
                Ok((reader, writer))
            }
            Err(NotConnected::Silent(e)) => Err(e),
            Err(NotConnected::Gone(e)) => match tell.take() {
                Some(tell) => {
                    let _ = tell.send(e);
                    std::future::pending().await
                }
                None => Err(e),
            },
        }
    };
    let join = tailbound_stream::join(&session, words, open, input, output, patience);
    tokio::select! {
        joined = join => match joined {
            Ok(_) => Ok(()),
            Err(e) => Err(GuestError::new(e.to_string(), "")),
        },
        Ok(gone) = told => {
            let said = console::said(directory);
            Err(GuestError::new(format!("the guest has ended ({gone}){said}"), ""))
        }
    }
}

fn halves(connected: Connected) -> io::Result<(Reader, Writer, Option<std::fs::File>)> {
    match connected {
        Connected::Port(stream, lock) => {
            stream.set_nonblocking(true)?;
            let (reader, writer) = tokio::net::UnixStream::from_std(stream)?.into_split();
            Ok((Box::new(reader), Box::new(writer), Some(lock)))
        }
        Connected::Tcp(stream) => {
            stream.set_nonblocking(true)?;
            let (reader, writer) = tokio::net::TcpStream::from_std(stream)?.into_split();
            Ok((Box::new(reader), Box::new(writer), None))
        }
    }
}
