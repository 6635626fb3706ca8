//! The relay: a short-lived process at one end of a connection, which passes bytes unchanged between two streams and
//! the holder's socket.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

/// The reason why a relay (which joins its own streams to a holder's socket) ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// Error: no holder listens at the socket.
    #[error(
        "no holder answers at {}: {source}. `tailbound agent hold` must run on the same host or in the same container, \
         with the same --socket",
        socket.display()
    )]
    NoHolder {
        /// Path of the socket at which a holder should listen.
        socket: PathBuf,
        /// The error that the kernel returned when the relay connected to the socket.
        source: io::Error,
    },
    /// Error: one of the streams between which the relay copies bytes failed.
    #[error("the relay ends: {0}")]
    Broken(#[from] io::Error),
}

/// Passes bytes from `input` to the holder's socket, and from the socket to `output`, until `input` or the socket ends.
/// A thread may still wait for `input` afterwards, so the caller should end the process.
///
/// # Errors
/// No holder answers at the socket, or a stream failed.
pub fn relay(socket: &Path, mut input: File, mut output: File) -> Result<(), RelayError> {
    let joined = UnixStream::connect(socket)
        .and_then(|stream| Ok((stream.try_clone()?, stream)))
        .map_err(|source| RelayError::NoHolder { socket: socket.to_owned(), source });
    let (mut from_holder, mut to_holder) = joined?;
    let (over, ended) = mpsc::channel();
    let also = over.clone();
    std::thread::spawn(move || also.send(carry(&mut input, &mut to_holder)));
    std::thread::spawn(move || over.send(carry(&mut from_holder, &mut output)));
    Ok(ended.recv().map_err(io::Error::other)??)
}

/// Copies bytes from `from` to `to` as soon as they are received, until `from` ends.
///
/// `io::copy` cannot be used: it splices, and the bytes of a socket are then passed on only after the socket has ended
/// (Linux 6.18).
///
/// # Errors
/// `from` cannot be read, or `to` cannot be written.
pub fn carry(from: &mut (impl Read + ?Sized), to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => to.write_all(&buffer[..n])?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
