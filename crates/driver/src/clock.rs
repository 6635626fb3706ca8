//! The clock that a driver may bring along in place of the machine's.

use tailbound_abi::tb_clock;

/// A driver's own clock. It stays valid until the process ends.
#[derive(Clone, Copy)]
pub struct DriverClock(tb_clock);

// SAFETY: the ABI asks that a clock may be read from any thread.
unsafe impl Send for DriverClock {}
// SAFETY: as above.
unsafe impl Sync for DriverClock {}

impl DriverClock {
    /// `None` when a function is missing.
    pub(crate) fn new(clock: tb_clock) -> Option<DriverClock> {
        (clock.now.is_some() && clock.sleep_until.is_some() && clock.realtime.is_some()).then_some(DriverClock(clock))
    }

    /// Stands for `CLOCK_MONOTONIC`, ns.
    #[inline]
    pub fn now(&self) -> i64 {
        // SAFETY: `new` saw that the function is there; `ctx` lives as long as the process.
        self.0.now.map_or(0, |f| unsafe { f(self.0.ctx) })
    }

    /// Lets time pass until `deadline_ns`; callbacks may run in it.
    #[inline]
    pub fn sleep_until(&self, deadline_ns: i64) {
        if let Some(f) = self.0.sleep_until {
            // SAFETY: as in `now`.
            unsafe { f(self.0.ctx, deadline_ns) }
        }
    }

    /// Stands for `CLOCK_REALTIME`, ns.
    #[inline]
    pub fn realtime(&self) -> i64 {
        // SAFETY: as in `now`.
        self.0.realtime.map_or(0, |f| unsafe { f(self.0.ctx) })
    }

    /// The C form.
    pub fn raw(&self) -> &tb_clock {
        &self.0
    }
}

impl std::fmt::Debug for DriverClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DriverClock")
    }
}
