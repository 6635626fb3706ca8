//! A stream between an agent in a guest and the standard input and output of this process. If the connection is cut,
//! the stream is resumed.

use crate::error::guest_error;
use crate::machine::console;
use crate::ports::{Connected, NotConnected, connect};
use std::cell::{Cell, RefCell};
use std::io;
use std::path::Path;
use std::time::Duration;
use tailbound_model::Problem;
use tokio::io::{AsyncRead, AsyncWrite};

/// Longest time for which a guest with an agent may be silent, for example while the guest gets no CPU. This time is
/// shorter than the leases of the processes in the guest.
pub const PATIENCE: Duration = Duration::from_secs(25);
/// Longest time for which a guest that runs a whole study may be silent, because real-time loads of the study can block
/// interrupt threads as long as the loads last. This time is shorter than the lease of the holder of agents in the
/// guest.
pub const PATIENCE_WITH_A_RUN: Duration = Duration::from_secs(9 * 60);
/// Longest wait for the greeting of a guest after connecting.
const GREETED: Duration = Duration::from_secs(5);

type Reader = Box<dyn AsyncRead + Unpin>;
type Writer = Box<dyn AsyncWrite + Unpin>;

/// Starts Tailbound with the arguments `words` in the guest whose virtual machine uses `directory`. Copies `input` to
/// the started program and its output to `output`, until the program ends or the guest has been silent for `patience`.
///
/// # Errors
/// The guest does not answer, or has ended; then the error contains the end of its console.
pub async fn stream(
    directory: &Path,
    words: &[String],
    input: impl AsyncRead,
    output: impl AsyncWrite,
    patience: Duration,
) -> Result<(), Problem> {
    // The session name is unique among all streams to this guest.
    let session = format!("{}-{}", std::process::id(), tailbound_host::monotonic_ns());
    let (send_gone, gone) = tokio::sync::oneshot::channel();
    let (send_gone, lock) = (Cell::new(Some(send_gone)), RefCell::new(None));
    let open = async || {
        // The previous connection has ended, so its port is free.
        lock.replace(None);
        let at = directory.to_owned();
        let connected = tokio::task::spawn_blocking(move || connect(&at, GREETED)).await.map_err(io::Error::other)?;
        match connected {
            Ok(connected) => {
                let (reader, writer, port_lock) = halves(connected)?;
                lock.replace(port_lock);
                Ok((reader, writer))
            }
            Err(NotConnected::Silent(e)) => Err(e),
            Err(NotConnected::Gone(e)) => match send_gone.take() {
                Some(send) => {
                    let _ = send.send(e);
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
            Err(e) => Err(guest_error(e.to_string(), "")),
        },
        Ok(reason) = gone => {
            let end = console::last_output(directory);
            Err(guest_error(format!("the guest has ended ({reason}){end}"), ""))
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
