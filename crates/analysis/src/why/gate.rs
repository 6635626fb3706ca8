//! The gate of the class of the messages that an end sends (IEEE 802.1Q): by the schedule that the kernel reported, the time from
//! which a message may be sent.

use tailbound_gates::{ETHERNET_BYTES, Frame, IP_UDP_BYTES, Rule, Schedule, Speed, Windows, class_of_messages};
use tailbound_model::{PathEnd, TrialSpec};

/// The gate of the class of the messages that an end sends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gate {
    windows: Windows,
    /// Begin of a cycle, monotonic ns, which is wrong by at most `within_ns`.
    base_ns: i64,
    within_ns: i64,
    frame: Frame,
}

impl Gate {
    /// The gate of the messages that this end of the path sends; `None` if it has no gates, or if a message has several frames.
    /// Headers of the middleware are not known: with them, a message can wait longer.
    pub fn of(end: &PathEnd, spec: &TrialSpec) -> Option<Gate> {
        let (fact, payload) = (end.gates.as_ref()?, spec.payload.0 + IP_UDP_BYTES);
        let speed = u64::try_from(end.speed_mbit_s?).ok()?.checked_mul(1_000_000)?;
        let frame = Frame { bytes: payload + ETHERNET_BYTES, speed: Speed::of_bits_per_second(speed)? };
        let schedule = Schedule::of_kernel(fact);
        let windows = schedule.windows(class_of_messages(spec, &fact.class_of_priority), Rule::Kernel);
        let base_ns = fact.base_ns.checked_sub(fact.ahead_ns)?;
        (payload <= u64::from(end.mtu) && windows.cycle_ns > 0).then_some(Gate {
            windows,
            base_ns,
            within_ns: fact.within_ns,
            frame,
        })
    }

    /// The time from which a frame that is ready at `ready_ns` may be sent, at the earliest that is possible.
    pub fn permitted_ns(&self, ready_ns: i64) -> i64 {
        let cycle_ns = self.windows.cycle_ns as i64;
        let phase_ns = ready_ns.saturating_sub(self.base_ns).rem_euclid(cycle_ns) as u64;
        let wait_ns = self.windows.wait_ns(phase_ns, self.frame).unwrap_or(0) as i64;
        ready_ns + (wait_ns - self.within_ns).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_gates::Entry;

    /// Open for 5 of 20 ms.
    fn gate() -> Gate {
        let entry = |gates, ms: u64| Entry { gates, interval_ns: ms * 1_000_000 };
        let windows = Schedule { entries: vec![entry(1, 5), entry(2, 15)], cycle_ns: 0 }.windows(0, Rule::Kernel);
        let frame = Frame { bytes: 106, speed: "10Gbps".parse().unwrap() };
        Gate { windows, base_ns: 7_000, within_ns: 100, frame }
    }

    #[test]
    fn a_message_is_permitted_when_its_gate_opens_next() {
        let at = |after_base_ns: i64| gate().permitted_ns(7_000 + after_base_ns) - 7_000;
        assert_eq!(at(3_000_000), 3_000_000);
        // The clock of the schedule is known to within 100 ns.
        assert_eq!(at(6_000_000), 19_999_900);
        assert_eq!(at(-14_000_000), -100);
        assert_eq!(at(60_000_000_000 + 6_000_000), 60_000_000_000 + 19_999_900);
    }
}
