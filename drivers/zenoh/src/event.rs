//! Counts events of a session, so that a thread can sleep until one of them happens (futex(2)).

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// Number of events so far: messages that came to a queue, and reasons to look again.
#[derive(Default)]
pub struct Events {
    count: AtomicU32,
    sleepers: AtomicU32,
}

impl Events {
    /// The present number. Who reads it, then looks for what it waits for, and then sleeps with it, misses nothing.
    #[inline]
    pub fn now(&self) -> u32 {
        self.count.load(SeqCst)
    }

    /// Counts an event and wakes all threads that sleep.
    #[inline]
    pub fn add(&self) {
        self.count.fetch_add(1, SeqCst);
        if self.sleepers.load(SeqCst) > 0 {
            // SAFETY: the address is valid; no other pointer is used by FUTEX_WAKE.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.count.as_ptr(),
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    i32::MAX,
                )
            };
        }
    }

    /// Sleeps until the number is no longer `seen`, at most for `limit`.
    #[inline]
    pub fn sleep(&self, seen: u32, limit: Duration) {
        let time = libc::timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        self.sleepers.fetch_add(1, SeqCst);
        // SAFETY: both addresses are valid until the call returns.
        unsafe {
            let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, self.count.as_ptr(), wait, seen, &raw const time)
        };
        self.sleepers.fetch_sub(1, SeqCst);
    }
}
