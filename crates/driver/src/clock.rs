//! The clock that a driver may provide in place of the machine's clock.

use tailbound_abi::tb_clock;

/// The clock that a driver provides. The clock stays valid until the process ends.
#[derive(Clone, Copy)]
pub struct DriverClock(tb_clock);

// SAFETY: the ABI requires that any thread may read the clock.
unsafe impl Send for DriverClock {}
// SAFETY: any thread may read the clock, see `Send`.
unsafe impl Sync for DriverClock {}

impl DriverClock {
    /// Wraps the clock of a driver; `None` if one of the clock's functions is missing.
    pub(crate) fn new(clock: tb_clock) -> Option<DriverClock> {
        (clock.now.is_some() && clock.sleep_until.is_some() && clock.realtime.is_some()).then_some(DriverClock(clock))
    }

    /// Reads the time of the driver's own clock that replaces `CLOCK_MONOTONIC`, in ns.
    #[inline]
    pub fn now(&self) -> i64 {
        // SAFETY: `new` checked that the function exists; `ctx` lives as long as the process.
        self.0.now.map_or(0, |f| unsafe { f(self.0.ctx) })
    }

    /// Lets the time of the driver's own clock pass until `deadline_ns`; callbacks may run during the call.
    #[inline]
    pub fn sleep_until(&self, deadline_ns: i64) {
        if let Some(f) = self.0.sleep_until {
            // SAFETY: `new` checked that the function exists; `ctx` lives as long as the process.
            unsafe { f(self.0.ctx, deadline_ns) }
        }
    }

    /// Reads the time of the driver's own clock that replaces `CLOCK_REALTIME`, in ns.
    #[inline]
    pub fn realtime(&self) -> i64 {
        // SAFETY: `new` checked that the function exists; `ctx` lives as long as the process.
        self.0.realtime.map_or(0, |f| unsafe { f(self.0.ctx) })
    }

    /// The clock of the driver as the C struct of the ABI.
    pub fn raw(&self) -> &tb_clock {
        &self.0
    }
}

impl std::fmt::Debug for DriverClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DriverClock")
    }
}
