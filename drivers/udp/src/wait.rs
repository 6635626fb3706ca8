//! Waiting for samples.

use std::sync::atomic::{AtomicU64, Ordering};

use tailbound_abi::side::{MAX_READERS, Outcome, Waited, fail};
use tailbound_abi::{TB_ECLOSED, TB_EINVAL, TB_ETIMEDOUT, TB_FOREVER};

use crate::endpoint::lock;
use crate::error::os;
use crate::net;
use crate::reader::{Reader, SLICE_MS};
use crate::receive::Received;

const SLICE_NS: i64 = SLICE_MS * 1_000_000;

/// Time that may be spent blocking before wake and destroy are looked at again; `None`: the deadline has passed.
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
    // SAFETY: `fds` and `time` live through the call; no signal mask.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &raw const time, std::ptr::null()) };
}

fn pollfd(reader: &Reader) -> libc::pollfd {
    libc::pollfd { fd: reader.common.fd(), events: libc::POLLIN, revents: 0 }
}

fn broken<T>(received: Received) -> Outcome<T> {
    match received {
        Received::Failed(errno) => os("recvmsg", &std::io::Error::from_raw_os_error(errno)),
        _ => fail(TB_EINVAL, "every place of the reader is taken: release samples before waiting for more"),
    }
}

fn closed<T>() -> Outcome<T> {
    fail(TB_ECLOSED, "the end point was destroyed while it was waited for")
}

/// Waits on one reader. In the steady state one `recvmsg` that blocks and brings the sample.
#[inline]
pub fn one(reader: &Reader, wakes: &AtomicU64, deadline: i64) -> Outcome<Waited> {
    let mut places = lock(&reader.places);
    loop {
        if places.has_sample() {
            return Ok(Waited::Ready(1));
        }
        if reader.common.is_closed() {
            return closed();
        }
        let now = wakes.load(Ordering::SeqCst);
        if reader.wakes_seen.swap(now, Ordering::SeqCst) != now {
            return Ok(Waited::Woken);
        }
        let left = slice(deadline);
        let flags = match left {
            Some(SLICE_NS) => 0, // the socket's own time-out is one slice
            Some(left) => {
                poll(&mut [pollfd(reader)], left);
                libc::MSG_DONTWAIT
            }
            None => libc::MSG_DONTWAIT,
        };
        match places.receive(reader, flags) {
            Received::Nothing if left.is_none() => return fail(TB_ETIMEDOUT, "no sample until the deadline"),
            Received::Sample | Received::Other | Received::Nothing => {}
            failed => return broken(failed),
        }
    }
}

/// Waits on several readers.
pub fn several(readers: &[Option<&Reader>], wakes: &AtomicU64, deadline: i64) -> Outcome<Waited> {
    let mut fds = [libc::pollfd { fd: -1, events: 0, revents: 0 }; MAX_READERS];
    loop {
        let now = wakes.load(Ordering::SeqCst);
        let (mut ready, mut woken) = (0u64, false);
        for (i, reader) in readers.iter().flatten().enumerate() {
            if reader.common.is_closed() {
                return closed();
            }
            ready |= u64::from(lock(&reader.places).has_sample()) << i;
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
                match lock(&reader.places).receive(reader, libc::MSG_DONTWAIT) {
                    Received::Sample | Received::Other | Received::Nothing => {}
                    failed => return broken(failed),
                }
            }
        }
        if !any && left.is_none() {
            return fail(TB_ETIMEDOUT, "no sample until the deadline");
        }
    }
}
