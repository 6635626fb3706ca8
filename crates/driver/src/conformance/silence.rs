//! Standard output and error, caught while a check runs.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Where what is printed goes, and the outputs as they were.
pub struct Silence {
    caught: File,
    outputs: [OwnedFd; 2],
}

/// While this lives, output is caught.
pub struct Quiet<'a>(&'a Silence);

fn flush() {
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    // SAFETY: null means all streams of the C library, where a driver's printf may still be waiting.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

impl Silence {
    /// `None` when the system refuses (no memory file, outputs closed).
    pub fn new() -> Option<Silence> {
        let own = |fd: i32| {
            // SAFETY: a descriptor that was just made belongs to nobody else.
            (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
        };
        // SAFETY: the name is NUL-terminated; the other calls take no pointers.
        unsafe {
            let caught = own(libc::memfd_create(c"tailbound-check".as_ptr(), libc::MFD_CLOEXEC))?;
            let save = |fd| own(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3));
            Some(Silence { caught: File::from(caught), outputs: [save(1)?, save(2)?] })
        }
    }

    /// Catches until the guard goes.
    pub fn begin(&mut self) -> Quiet<'_> {
        flush();
        for fd in [1, 2] {
            // SAFETY: both descriptors are open.
            unsafe { libc::dup2(self.caught.as_raw_fd(), fd) };
        }
        Quiet(self)
    }

    /// All that was caught.
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
