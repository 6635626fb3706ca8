//! The clock and the time limits of the conformance checks.

/// One second, in ns.
pub const SECOND_NS: i64 = 1_000_000_000;
/// Time limit in ns for events that a correct driver completes immediately.
pub const SOON_NS: i64 = 10 * SECOND_NS;

/// Reads the time of `CLOCK_MONOTONIC`, in ns.
pub fn now() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * SECOND_NS + now.tv_nsec
}
