//! What the CPUs of this host do while packets are captured.

use tailbound_host::{CpuTimes, cpu_times, realtime_ns};
use tailbound_watch::{HostTime, Watch as State};

/// Time between two readings: the kernel counts in hundredths of a second.
const BETWEEN_READINGS_NS: i64 = 100_000_000;

/// The last reading: when, and what the CPUs had done until then.
pub struct HostLook(Option<(i64, CpuTimes)>);

impl HostLook {
    pub fn new() -> HostLook {
        HostLook(cpu_times().map(|times| (realtime_ns(), times)))
    }

    /// Passes on what the CPUs did since the last reading, if the last reading is long enough ago.
    pub fn turn(&mut self, state: &mut State) {
        if self.0.is_none_or(|(last_ns, _)| realtime_ns() - last_ns >= BETWEEN_READINGS_NS) {
            self.end(state);
        }
    }

    /// Passes on what the CPUs did since the last reading.
    pub fn end(&mut self, state: &mut State) {
        let Some((to_ns, now)) = cpu_times().map(|times| (realtime_ns(), times)) else { return };
        if let Some((from_ns, before)) = self.0.replace((to_ns, now)) {
            let since = |of: fn(&CpuTimes) -> u64| of(&now).saturating_sub(of(&before)) as i64;
            state.host_did(HostTime {
                from_ns,
                to_ns,
                busy_ns: since(|times| times.busy_ns),
                stolen_ns: since(|times| times.stolen_ns),
                all_ns: since(|times| times.all_ns),
            });
        }
    }
}
