//! The clock of a hot loop: the clock of the machine, or the scripted clock that the calibration driver provides.

use tailbound_abi::tb_clock;

/// A clock that can be read and on which a thread can sleep.
pub trait Clock: Copy + Send + Sync + 'static {
    /// True if the clock advances only within `sleep_until` and within calls of the driver.
    const SCRIPTED: bool;
    /// Present time of the monotonic clock, in ns.
    fn now(&self) -> i64;
    /// Sleeps until the monotonic time is `deadline_ns` or later.
    fn sleep_until(&self, deadline_ns: i64);
    /// Present time of CLOCK_REALTIME, in ns.
    fn realtime(&self) -> i64;
    /// Clock of a receiving end: the far clock (scripted clock of the receiving end) if the calibration driver provides
    /// one, otherwise this clock.
    fn of_far_end(self, _: Option<tb_clock>) -> Self {
        self
    }
}

/// The clock of the machine: reads CLOCK_MONOTONIC through the vDSO, and sleeps with clock_nanosleep until an absolute
/// deadline.
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
        // SAFETY: `t` is a valid timespec; the pointer to the remaining time may be null.
        while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &t, std::ptr::null_mut()) }
            == libc::EINTR
        {}
    }
    fn realtime(&self) -> i64 {
        read(libc::CLOCK_REALTIME)
    }
}

/// A clock that a driver provides in place of the clock of the machine.
#[derive(Clone, Copy)]
pub struct Scripted(tb_clock);

impl Scripted {
    /// Wraps the clock of a driver. Returns `None` if one of its functions is missing.
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
