//! The clock of a hot loop: the machine's, or the scripted one that the calibration driver brings.

use tailbound_abi::tb_clock;

/// Reads time and lets it pass.
pub trait Clock: Copy + Send + Sync + 'static {
    /// True when time passes only inside `sleep_until` and the driver's calls.
    const SCRIPTED: bool;
    /// Monotonic ns.
    fn now(&self) -> i64;
    /// Returns at `deadline_ns` or later.
    fn sleep_until(&self, deadline_ns: i64);
    /// CLOCK_REALTIME, ns.
    fn realtime(&self) -> i64;
    /// The clock of an end that receives; a calibration may give it one of its own.
    fn of_far_end(self, _: Option<tb_clock>) -> Self {
        self
    }
}

/// CLOCK_MONOTONIC through the vDSO, and clock_nanosleep with an absolute deadline.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

#[inline]
fn read(clock: libc::clockid_t) -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

impl Clock for Machine {
    const SCRIPTED: bool = false;
    #[inline]
    fn now(&self) -> i64 {
        read(libc::CLOCK_MONOTONIC)
    }
    #[inline]
    fn sleep_until(&self, deadline_ns: i64) {
        let t = libc::timespec { tv_sec: deadline_ns / 1_000_000_000, tv_nsec: deadline_ns % 1_000_000_000 };
        // SAFETY: `t` is a valid timespec; no remainder is asked for.
        while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &t, std::ptr::null_mut()) }
            == libc::EINTR
        {}
    }
    fn realtime(&self) -> i64 {
        read(libc::CLOCK_REALTIME)
    }
}

/// A driver's own clock.
#[derive(Clone, Copy)]
pub struct Scripted(tb_clock);

impl Scripted {
    /// `None` when the table lacks a function.
    pub fn new(clock: tb_clock) -> Option<Scripted> {
        (clock.now.is_some() && clock.sleep_until.is_some() && clock.realtime.is_some()).then_some(Scripted(clock))
    }
}

// SAFETY: the driver that hands out a clock says that it may be read from any thread.
unsafe impl Send for Scripted {}
// SAFETY: as above.
unsafe impl Sync for Scripted {}

impl Clock for Scripted {
    const SCRIPTED: bool = true;
    #[inline]
    fn now(&self) -> i64 {
        // SAFETY: `new` checked the pointer; `ctx` is the driver's own.
        unsafe { self.0.now.unwrap_unchecked()(self.0.ctx) }
    }
    #[inline]
    fn sleep_until(&self, deadline_ns: i64) {
        // SAFETY: as in `now`.
        unsafe { self.0.sleep_until.unwrap_unchecked()(self.0.ctx, deadline_ns) }
    }
    fn realtime(&self) -> i64 {
        // SAFETY: as in `now`.
        unsafe { self.0.realtime.unwrap_unchecked()(self.0.ctx) }
    }
    fn of_far_end(self, far: Option<tb_clock>) -> Self {
        far.and_then(Scripted::new).unwrap_or(self)
    }
}
