//! Which launch times the gates of an interface refuse.

use crate::{ETHERNET_BYTES, Frame, IP_UDP_BYTES, Schedule, Speed, class_of_messages};
use tailbound_model::{PathEnd, TrialSpec};

/// Flag of taprio: the network card opens and closes the gates (TCA_TAPRIO_ATTR_FLAG_FULL_OFFLOAD). The kernel looks at no launch time then.
const BY_CARD: u32 = 2;
/// Number of the clock of launch times (clock_gettime(2)).
const TAI: i32 = 11;

/// The gates of an interface that the kernel opens and closes, and the class of the messages of its end.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchGate {
    schedule: Schedule,
    class: u32,
    wire_ns: u64,
    base_ns: i64,
}

impl LaunchGate {
    /// The gates of this end of a path; `None` if the end has none, if the kernel does not look at launch times, or if the speed of the
    /// interface is not known.
    pub fn of(end: &PathEnd, spec: &TrialSpec) -> Option<LaunchGate> {
        let fact = end.gates.as_ref().filter(|fact| fact.flags & BY_CARD == 0 && fact.clock == TAI)?;
        let mbit_s = end.speed_mbit_s.and_then(|speed| u64::try_from(speed).ok())?;
        let speed = Speed::of_bits_per_second(mbit_s.checked_mul(1_000_000)?)?;
        let bytes = (spec.payload.0 + IP_UDP_BYTES).min(end.mtu.into()) + ETHERNET_BYTES;
        Some(LaunchGate {
            schedule: Schedule::of_kernel(fact),
            class: class_of_messages(spec, &fact.class_of_priority),
            wire_ns: Frame { bytes, speed }.wire_ns(),
            base_ns: fact.base_ns,
        })
    }

    /// Whether the kernel takes a message with this launch time, ns of CLOCK_TAI. It drops all others.
    pub fn takes(&self, launch_ns: i64) -> bool {
        let cycle_ns = i64::try_from(self.schedule.cycle_ns).unwrap_or(i64::MAX);
        let phase_ns = launch_ns.saturating_sub(self.base_ns).checked_rem_euclid(cycle_ns);
        phase_ns.is_none_or(|ns| self.schedule.takes_launch(self.class, ns.unsigned_abs(), self.wire_ns))
    }
}
