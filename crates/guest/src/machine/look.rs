//! State and statistics of a running machine as reported by QEMU; the guest is not involved.

use std::collections::BTreeMap;
use tailbound_model::{GuestSeen, grown};

/// Names of the KVM statistics that only grow (QEMU's `query-stats`, linux/kvm_host.h), so that their increase during a
/// trial is meaningful. Names that end in `_ns` are times.
pub(super) const COUNTS: [&str; 18] = [
    "exits",
    "halt_exits",
    "halt_attempted_poll",
    "halt_successful_poll",
    "halt_poll_invalid",
    "halt_poll_success_ns",
    "halt_poll_fail_ns",
    "halt_wait_ns",
    "halt_wakeup",
    "io_exits",
    "mmio_exits",
    "irq_exits",
    "irq_window_exits",
    "irq_injections",
    "signal_exits",
    "request_irq_exits",
    "hypercalls",
    "preemption_other",
];

/// Names of QEMU's events when the vCPUs stop and when they run again.
const STOP: &str = "STOP";
const RESUME: &str = "RESUME";

/// If the wall clock and the monotonic clock are further apart than this at one reading compared with another one, ns, the wall clock
/// was set: a reading takes a fraction of this time.
const MOST_APART_NS: i64 = 20_000;

/// State and statistics of a virtual machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// KVM statistics of each vCPU by name, or the reason why there are no statistics.
    pub(super) vcpus: Result<Vec<BTreeMap<String, i64>>, String>,
    /// Whether the vCPUs of the virtual machine run, that is, are not paused.
    pub(super) runs: bool,
    /// Wall-clock time of this host at the moment of the reading, in ns since 1970.
    pub(super) at_ns: i64,
    /// The same moment in ns of the host's monotonic clock.
    pub(super) monotonic_ns: i64,
    /// Events of QEMU since the previous reading: wall-clock time of this host in ns, and name of the event.
    pub(super) events: Vec<(i64, String)>,
}

impl Look {
    /// Whether the vCPUs of the virtual machine run, that is, are not paused.
    pub fn runs(&self) -> bool {
        self.runs
    }

    /// Changes of the virtual machine's state and statistics since `earlier`, which must be the previous reading.
    pub fn since(self, earlier: &Look, guest: &str) -> GuestSeen {
        let pauses = self.paused(earlier);
        let paused_ns = pauses.iter().map(|(begin, end)| end - begin).sum();
        let of_pause = |name: &str| matches!(name, STOP | RESUME);
        let events = self.events.iter().map(|(_, name)| name.clone()).filter(|name| !of_pause(name)).collect();
        let counted = match (&earlier.vcpus, &self.vcpus) {
            (Ok(before), Ok(after)) => {
                Ok(after.iter().zip(before).map(|(after, before)| grown(before, after)).collect())
            }
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
        };
        let (vcpus, not_counted) = match counted {
            Ok(vcpus) => (vcpus, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        GuestSeen {
            guest: guest.to_owned(),
            vcpus,
            not_counted,
            paused_ns,
            pauses: self.on_monotonic(earlier, pauses),
            still_paused: !self.runs,
            events,
            ..GuestSeen::default()
        }
    }

    /// Times of the wall clock on the monotonic clock; empty if the wall clock was set since the reading `earlier`.
    fn on_monotonic(&self, earlier: &Look, times_ns: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
        let ahead_ns = self.at_ns - self.monotonic_ns;
        // NTP slews both clocks alike.
        let was_set = (ahead_ns - (earlier.at_ns - earlier.monotonic_ns)).abs() > MOST_APART_NS;
        let converted = times_ns.into_iter().filter(|_| !was_set);
        converted.map(|(begin, end)| (begin - ahead_ns, end - ahead_ns)).collect()
    }

    /// Begin and end of each time since the reading `earlier` in which the vCPUs were stopped, wall-clock time in ns. A stop that
    /// has not ended lasts until this reading.
    fn paused(&self, earlier: &Look) -> Vec<(i64, i64)> {
        let (mut since, mut pauses) = ((!earlier.runs).then_some(earlier.at_ns), Vec::new());
        for (at_ns, name) in &self.events {
            match (name.as_str(), since) {
                (STOP, None) => since = Some(*at_ns),
                (RESUME, Some(begin)) => {
                    pauses.push((begin, *at_ns));
                    since = None;
                }
                _ => {}
            }
        }
        // If events and state disagree, the state is right.
        let begin = if self.runs { None } else { Some(since.unwrap_or(earlier.at_ns)) };
        pauses.extend(begin.map(|begin| (begin, self.at_ns)));
        pauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vcpu(exits: i64) -> BTreeMap<String, i64> {
        BTreeMap::from([("exits".to_owned(), exits)])
    }

    fn look(vcpus: Vec<BTreeMap<String, i64>>, runs: bool, at_ns: i64, events: &[(i64, &str)]) -> Look {
        let events = events.iter().map(|(at_ns, name)| (*at_ns, (*name).to_owned())).collect();
        // The host was started at 40.
        Look { vcpus: Ok(vcpus), runs, at_ns, monotonic_ns: at_ns - 40, events }
    }

    #[test]
    fn increases_are_reported_for_each_vcpu() {
        let look = |one, other| look(vec![vcpu(one), vcpu(other)], true, 0, &[]);
        let seen = look(130, 70).since(&look(100, 50), "pong");
        let sums = (seen.sum("exits"), seen.sum("no such"));
        assert_eq!((seen.vcpus, sums), (vec![vcpu(30), vcpu(20)], (Some(50), None)));
        let emulated = Look { vcpus: Err("emulated".into()), ..look(0, 0) };
        let seen = emulated.clone().since(&emulated, "pong");
        assert_eq!((seen.vcpus.len(), seen.not_counted.as_deref()), (0, Some("emulated")));
    }

    #[test]
    fn a_pause_lasts_until_its_end_event_or_until_now() {
        let pauses = |runs_before, runs, events: &[(i64, &str)]| {
            let seen = look(vec![], runs, 900, events).since(&look(vec![], runs_before, 100, &[]), "pong");
            assert_eq!(seen.paused_ns, seen.pauses.iter().map(|(begin, end)| end - begin).sum::<i64>());
            (seen.pauses, seen.still_paused, seen.events)
        };
        assert_eq!(pauses(true, true, &[]), (vec![], false, vec![]));
        assert_eq!(
            pauses(true, true, &[(200, "STOP"), (500, "RESUME"), (600, "WATCHDOG")]),
            (vec![(160, 460)], false, vec!["WATCHDOG".into()])
        );
        assert_eq!(
            pauses(true, true, &[(200, "STOP"), (210, "RESUME"), (300, "STOP"), (350, "RESUME")]),
            (vec![(160, 170), (260, 310)], false, vec![])
        );
        assert_eq!(pauses(true, false, &[(200, "STOP")]), (vec![(160, 860)], true, vec![]));
        assert_eq!(pauses(false, true, &[(150, "RESUME")]), (vec![(60, 110)], false, vec![]));
        assert_eq!(pauses(false, false, &[]), (vec![(60, 860)], true, vec![]));
        // The wall clock was set by 30 us in ten minutes: when the pause was is not known.
        let at_ns = 600_000_000_000;
        let later =
            Look { monotonic_ns: at_ns - 40 - 30_000, ..look(vec![], true, at_ns, &[(200, "STOP"), (500, "RESUME")]) };
        let seen = later.since(&look(vec![], true, 100, &[]), "pong");
        assert_eq!((seen.paused_ns, seen.pauses), (300, vec![]));
    }
}
