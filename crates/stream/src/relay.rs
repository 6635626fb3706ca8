//! The short-lived end of a connection: two byte streams joined with the holder's socket, not looked into.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

/// Why nothing is relayed.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// No holder is there.
    #[error(
        "no holder answers at {}: {source}. `tailbound agent hold` has to run in this place, with the same --socket",
        socket.display()
    )]
    NoHolder {
        /// Where it was looked for.
        socket: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
    /// A stream broke.
    #[error("the relay ends: {0}")]
    Broken(#[from] io::Error),
}

/// Carries octets between `input`, `output` and the holder's socket, until either side ends. A thread may be left that
/// waits for `input`: the process is expected to end.
///
/// # Errors
/// No holder answers; a stream broke.
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

/// Hands on at once whatever there is, until `from` ends.
///
/// Not `io::copy`: it splices, and what a socket gave came out of the pipe only once the socket had ended (Linux 6.18).
///
/// # Errors
/// One of them cannot be read or written.
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
