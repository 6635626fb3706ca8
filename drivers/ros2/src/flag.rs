//! Flags on which a thread can sleep, and the sleep until one of several descriptors has an event.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use tailbound_abi::side::Outcome;

use crate::error::io;

/// A flag for an event, on which `poll` can wait (an eventfd).
pub struct Flag(OwnedFd);

impl Flag {
    pub fn new() -> Outcome<Flag> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io("cannot make an eventfd")(std::io::Error::last_os_error()));
        }
        // SAFETY: nobody else owns a descriptor that was just made.
        Ok(Flag(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    #[inline]
    pub fn set(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes are readable.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Returns whether the flag was set, and clears the flag.
    #[inline]
    pub fn take(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: eight bytes are writable.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }

    #[inline]
    pub fn watched(&self) -> libc::pollfd {
        readable(self.0.as_raw_fd())
    }
}

#[inline]
pub fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// Sleeps until one of the descriptors `fds` has an event, at most for `limit`.
#[inline]
pub fn poll(fds: &mut [libc::pollfd], limit: Option<Duration>) {
    let time = limit.map(|d| libc::timespec { tv_sec: d.as_secs() as i64, tv_nsec: i64::from(d.subsec_nanos()) });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `fds` and `time` live until the call returns; there is no signal mask.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, time, std::ptr::null()) };
}
