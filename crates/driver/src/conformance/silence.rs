//! Captures standard output and standard error while a conformance check runs.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The file that receives captured output, and the original outputs.
pub struct Silence {
    caught: File,
    outputs: [OwnedFd; 2],
}

/// Guard that captures standard output and standard error while it exists.
pub struct Quiet<'a>(&'a Silence);

fn flush() {
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    // SAFETY: null means all streams of the C library, in whose buffers output of a driver's printf may still wait.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

impl Silence {
    /// Prepares the capture of output; `None` if the system refuses (no memory file, closed outputs).
    pub fn new() -> Option<Silence> {
        let own = |fd: i32| {
            // SAFETY: nobody else owns a descriptor that was just made.
            (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
        };
        // SAFETY: the name ends with a NUL byte; the other calls take no pointers.
        unsafe {
            let caught = own(libc::memfd_create(c"tailbound-check".as_ptr(), libc::MFD_CLOEXEC))?;
            let save = |fd| own(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3));
            Some(Silence { caught: File::from(caught), outputs: [save(1)?, save(2)?] })
        }
    }

    /// Captures standard output and standard error until the guard is dropped.
    pub fn begin(&mut self) -> Quiet<'_> {
        flush();
        for fd in [1, 2] {
            // SAFETY: both descriptors are open.
            unsafe { libc::dup2(self.caught.as_raw_fd(), fd) };
        }
        Quiet(self)
    }

    /// Returns all output that was captured while conformance checks ran.
    pub fn heard(mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.caught.seek(SeekFrom::Start(0)).and_then(|_| self.caught.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        flush();
        for (fd, saved) in [1, 2].into_iter().zip(&self.0.outputs) {
            // SAFETY: both descriptors are open.
            unsafe { libc::dup2(saved.as_raw_fd(), fd) };
        }
    }
}
