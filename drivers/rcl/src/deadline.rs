//! Time that remains until a deadline of the loading program.

use std::time::Duration;

use tailbound_abi::TB_FOREVER;

/// Time from now until a deadline; `None` if the deadline has passed.
#[inline]
pub fn left(deadline_ns: i64) -> Option<Duration> {
    if deadline_ns == TB_FOREVER {
        return Some(Duration::from_secs(3600));
    }
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the given struct.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    let left = deadline_ns.saturating_sub(t.tv_sec * 1_000_000_000 + t.tv_nsec);
    (left > 0).then(|| Duration::from_nanos(left as u64))
}
