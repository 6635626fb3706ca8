//! Waits for samples of one or several readers of the `udp` driver.

use std::sync::atomic::{AtomicU64, Ordering};

use tailbound_abi::side::{MAX_READERS, Outcome, Waited, fail};
use tailbound_abi::{TB_ECLOSED, TB_EINVAL, TB_ETIMEDOUT, TB_FOREVER};

use crate::error::os;
use crate::net;
use crate::reader::{Reader, Received, SLICE_MS};

const SLICE_NS: i64 = SLICE_MS * 1_000_000;

/// Time in ns to block before `wake` and `destroy` are checked again; `None` if the deadline has passed.
#[inline]
fn slice(deadline: i64) -> Option<i64> {
    if deadline == TB_FOREVER {
        return Some(SLICE_NS);
    }
    let left = deadline.saturating_sub(net::monotonic_ns());
    (left > 0).then_some(left.min(SLICE_NS))
}

fn poll(fds: &mut [libc::pollfd], ns: i64) {
    let time = libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
    // SAFETY: `fds` and `time` live until the call returns; there is no signal mask.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &raw const time, std::ptr::null()) };
}

fn pollfd(reader: &Reader) -> libc::pollfd {
    libc::pollfd { fd: reader.common.fd(), events: libc::POLLIN, revents: 0 }
}

#[cold]
fn broken<T>(received: Received) -> Outcome<T> {
    match received {
        Received::Failed(errno) => os("recvmsg", &std::io::Error::from_raw_os_error(errno)),
        _ => fail(TB_EINVAL, "all buffers of the reader are taken: release samples before waiting for more"),
    }
}

#[cold]
fn closed<T>() -> Outcome<T> {
    fail(TB_ECLOSED, "the end point was destroyed during the wait")
}

/// Waits until a reader has a datagram, but not longer than a slice. Returns whether the deadline has passed.
#[cold]
fn until(reader: &Reader, deadline: i64) -> bool {
    let left = slice(deadline);
    if let Some(left) = left {
        poll(&mut [pollfd(reader)], left);
    }
    left.is_none()
}

/// Waits for a sample of one reader. Normally this is one blocking system call that receives the sample.
#[inline]
pub fn one(reader: &Reader, wakes: &AtomicU64, deadline: i64) -> Outcome<Waited> {
    let mut places = reader.places.lock();
    let forever = deadline == TB_FOREVER;
    loop {
        if places.has_sample() {
            return Ok(Waited::Ready(1));
        }
        if reader.common.is_closed() {
            return closed();
        }
        reader.blocked.store(forever, Ordering::SeqCst);
        let now = wakes.load(Ordering::SeqCst);
        if reader.wakes_seen.load(Ordering::Relaxed) != now {
            reader.wakes_seen.store(now, Ordering::Relaxed);
            reader.blocked.store(false, Ordering::Relaxed);
            return Ok(Waited::Woken);
        }
        // A datagram of `wake` ends a call without a deadline, or the timeout of the socket does.
        let passed = !forever && until(reader, deadline);
        let received = reader.receive(&mut places, if forever { 0 } else { libc::MSG_DONTWAIT });
        reader.blocked.store(false, Ordering::Relaxed);
        match received {
            Received::Sample => return Ok(Waited::Ready(1)),
            Received::Nothing if passed => return fail(TB_ETIMEDOUT, "no sample arrived until the deadline"),
            Received::Other | Received::Nothing => {}
            failed => return broken(failed),
        }
    }
}

/// Waits for a sample of one of several readers.
#[inline(never)]
pub fn several(readers: &[Option<&Reader>], wakes: &AtomicU64, deadline: i64) -> Outcome<Waited> {
    let mut fds = [libc::pollfd { fd: -1, events: 0, revents: 0 }; MAX_READERS];
    loop {
        let now = wakes.load(Ordering::SeqCst);
        let (mut ready, mut woken) = (0u64, false);
        for (i, reader) in readers.iter().flatten().enumerate() {
            if reader.common.is_closed() {
                return closed();
            }
            ready |= u64::from(reader.places.lock().has_sample()) << i;
            woken |= reader.wakes_seen.swap(now, Ordering::SeqCst) != now;
            fds[i] = pollfd(reader);
        }
        if ready != 0 {
            return Ok(Waited::Ready(ready));
        }
        if woken {
            return Ok(Waited::Woken);
        }
        let left = slice(deadline);
        poll(&mut fds[..readers.len()], left.unwrap_or(0));
        let mut any = false;
        for (i, reader) in readers.iter().flatten().enumerate() {
            if fds[i].revents != 0 {
                any = true;
                match reader.receive_apart(&mut reader.places.lock(), libc::MSG_DONTWAIT) {
                    Received::Sample | Received::Other | Received::Nothing => {}
                    failed => return broken(failed),
                }
            }
        }
        if !any && left.is_none() {
            return fail(TB_ETIMEDOUT, "no sample arrived until the deadline");
        }
    }
}
