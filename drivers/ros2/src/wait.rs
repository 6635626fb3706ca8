//! Waiting: for samples, for a wake, for the end.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tailbound_abi::side::{Fail, MAX_READERS, Outcome, Waited, fail};
use tailbound_abi::{TB_ETIMEDOUT, TB_FOREVER};

use crate::session::{Session, io};

/// Something that happened, which a `poll` can wait for.
pub struct Flag(OwnedFd);

impl Flag {
    pub fn new() -> Outcome<Flag> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io("cannot make an eventfd")(std::io::Error::last_os_error()));
        }
        // SAFETY: just made, and nobody else's.
        Ok(Flag(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn set(&self) {
        let one = 1_u64;
        // SAFETY: eight readable octets.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Whether it was set; it is no longer.
    pub fn take(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: eight writable octets.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }

    pub fn is_set(&self) -> bool {
        let mut fds = [self.watched()];
        poll(&mut fds, Some(Duration::ZERO));
        fds[0].revents != 0
    }

    pub fn watched(&self) -> libc::pollfd {
        readable(self.0.as_raw_fd())
    }
}

pub fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// Sleeps until one of `fds` has something, at most for `limit`.
pub fn poll(fds: &mut [libc::pollfd], limit: Option<Duration>) {
    let time = limit.map(|d| libc::timespec { tv_sec: d.as_secs() as i64, tv_nsec: i64::from(d.subsec_nanos()) });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `fds` and `time` live through the call; no signal mask.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, time, std::ptr::null()) };
}

/// Time left until a deadline; none when it has passed.
pub fn left(deadline_ns: i64) -> Option<Duration> {
    if deadline_ns == TB_FOREVER {
        return Some(Duration::from_secs(3600));
    }
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the struct given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    let left = deadline_ns.saturating_sub(t.tv_sec * 1_000_000_000 + t.tv_nsec);
    (left > 0).then(|| Duration::from_nanos(left as u64))
}

/// Blocks until one of the readers has a sample (bit i is `ids[i]`), or `wake`.
pub fn wait(session: &Session, ids: &[u32], deadline_ns: i64) -> Outcome<Waited> {
    let mut held = [const { None }; MAX_READERS];
    let mut fds = [readable(-1); MAX_READERS + 2];
    fds[0] = session.woken.watched();
    fds[1] = session.closing.watched();
    for (i, id) in ids.iter().enumerate() {
        let entity = session.endpoint(*id)?.entity()?;
        fds[i + 2] = readable(entity.reader()?.event_fd());
        held[i] = Some(entity);
    }
    loop {
        let mut ready = 0;
        for (i, (id, entity)) in ids.iter().zip(held.iter().flatten()).enumerate() {
            if session.endpoint(*id)?.closed.load(SeqCst) {
                return Err(Fail::closed(*id));
            }
            ready |= u64::from(entity.reader()?.has_sample()?) << i;
        }
        if ready != 0 {
            return Ok(Waited::Ready(ready));
        }
        let Some(left) = left(deadline_ns) else { return fail(TB_ETIMEDOUT, "no sample until the deadline") };
        poll(&mut fds[..ids.len() + 2], Some(left));
        if fds[0].revents != 0 && session.woken.take() {
            return Ok(Waited::Woken);
        }
    }
}
