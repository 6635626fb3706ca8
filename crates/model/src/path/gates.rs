//! Gates of the interface of an end (IEEE 802.1Q, time-aware shaping): as the study asks for them, and as the kernel reports
//! them.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Largest number of traffic classes of an interface (`TC_QOPT_MAX_QUEUE` of linux/pkt_sched.h).
pub const MOST_CLASSES: usize = 16;
/// Number of priorities of sockets that a class can be chosen for (`TC_QOPT_BITMASK` of linux/pkt_sched.h, plus one).
pub const SOCKET_PRIORITIES: u8 = 16;

/// A gate schedule of the interface of an end, as the study asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GatesSpec {
    /// What opens and closes the gates.
    pub by: GatesBy,
    /// The traffic classes, in the order of their numbers, which begin at 0.
    pub classes: Vec<GateClass>,
    /// The gate control list.
    pub entries: Vec<GateEntry>,
    /// Time after which the list begins again; `None` = the sum of the entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<Nanos>,
    /// The schedule begins this time after a whole second of TAI, or of the hardware clock of the network card.
    #[serde(default)]
    pub base: Nanos,
    /// Whether a queue discipline of the interface that is not the kernel's default one is replaced for the trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// What opens and closes the gates of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatesBy {
    /// The queue discipline `taprio` of the kernel, by a timer.
    Software,
    /// The queue discipline `taprio` gives each frame a launch time within its window (txtime-assist), at which the queue discipline
    /// `etf` sends it.
    Assist {
        /// Time before the launch time at which a frame is given to the device.
        ahead: Nanos,
    },
    /// The network card opens and closes the gates by its hardware clock (full offload of `taprio`).
    Offload,
    /// What the user or another program has set up: the gates are only read.
    Existing,
}

impl GatesBy {
    /// Time from which on a frame can be launched, counted from its arrival in the queue; zero without launch times.
    pub fn delay(&self) -> Nanos {
        /// Time in which a frame gets from `taprio` to `etf`, with a late wake-up.
        const REACHES_THE_QUEUE: i64 = 200_000;
        match self {
            GatesBy::Software | GatesBy::Offload | GatesBy::Existing => Nanos(0),
            GatesBy::Assist { ahead } => Nanos(ahead.0 + REACHES_THE_QUEUE),
        }
    }
}

impl fmt::Display for GatesBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatesBy::Software => f.write_str("software"),
            GatesBy::Assist { ahead } => write!(f, "assist {ahead} ahead"),
            GatesBy::Offload => f.write_str("offload"),
            GatesBy::Existing => f.write_str("existing"),
        }
    }
}

/// A traffic class of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GateClass {
    /// Name of the class in the study.
    pub name: String,
    /// Priorities (SO_PRIORITY) of the sockets whose frames belong to the class, 0 to 15.
    pub priorities: BTreeSet<u8>,
    /// Number of transmit queues of the class.
    pub queues: u16,
    /// Whether frames of the other classes may interrupt a frame of the class while the network card sends it (frame preemption,
    /// IEEE 802.1Qbu).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preemptible: bool,
}

/// An entry of a gate control list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GateEntry {
    /// One bit for each class, the lowest for class 0: whether its gate is open.
    pub open: u32,
    /// Time for which the entry is in force.
    pub time: Nanos,
}

/// For each priority of a socket: the number of its class.
pub fn class_of_priority(classes: &[GateClass]) -> [u8; SOCKET_PRIORITIES as usize] {
    let class = |priority: usize| classes.iter().position(|c| c.priorities.contains(&(priority as u8)));
    std::array::from_fn(|priority| class(priority).unwrap_or_default() as u8)
}

impl GatesSpec {
    /// Number of transmit queues of all classes together.
    pub fn queues(&self) -> u16 {
        self.classes.iter().map(|class| class.queues).sum()
    }

    /// For each priority of a socket: the number of its class.
    pub fn class_of_priority(&self) -> [u8; SOCKET_PRIORITIES as usize] {
        class_of_priority(&self.classes)
    }

    /// One bit for each class, the lowest for class 0: whether its frames are preemptible.
    pub fn preemptible(&self) -> u32 {
        let all = self.classes.iter().enumerate();
        all.filter(|(_, class)| class.preemptible).fold(0, |bits, (number, _)| bits | 1 << number)
    }

    /// Names of the classes whose gates an entry opens.
    pub fn open_in(&self, entry: GateEntry) -> Vec<&str> {
        let open = self.classes.iter().enumerate().filter(|(class, _)| entry.open >> class & 1 == 1);
        open.map(|(_, class)| class.name.as_str()).collect()
    }
}

impl fmt::Display for GatesSpec {
    /// For example `software: stream+ptp 101 us, ptp 103 us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by == GatesBy::Existing {
            return write!(f, "{}", self.by);
        }
        write!(f, "{}: ", self.by)?;
        for (number, entry) in self.entries.iter().enumerate() {
            let open = self.open_in(*entry);
            let open = if open.is_empty() { "none".to_owned() } else { open.join("+") };
            write!(f, "{}{open} {}", if number > 0 { ", " } else { "" }, entry.time)?;
        }
        self.cycle.map_or(Ok(()), |cycle| write!(f, ", cycle {cycle}"))
    }
}

/// A gate schedule as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GatesFact {
    /// For each priority of a socket (SO_PRIORITY) from 0 on: the number of its traffic class.
    pub class_of_priority: Vec<u8>,
    /// The gate control list.
    pub entries: Vec<GateEntry>,
    /// Time after which the list begins again, ns.
    pub cycle_ns: i64,
    /// Time at which the schedule began or begins, ns since 1970 of `clock`.
    pub base_ns: i64,
    /// Number of the clock of the schedule: 11 = CLOCK_TAI (clock_gettime(2)); -1 = the hardware clock of the network card.
    pub clock: i32,
    /// Number of the hardware clock of the schedule: N of /dev/ptpN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_clock: Option<u32>,
    /// Monotonic time at which the clock of the schedule was read, ns.
    #[serde(default)]
    pub read_at_ns: i64,
    /// Time by which CLOCK_TAI was ahead of CLOCK_REALTIME when the schedule was set, s; 0 if nobody has set it since the
    /// machine started, or if the kernel does not report it.
    pub tai_offset_s: i32,
    /// Time by which the clock of the schedule was ahead of CLOCK_MONOTONIC, on the machine with the interface, when the
    /// gates were read, ns.
    pub ahead_ns: i64,
    /// The time in `ahead_ns` is wrong by at most this much, ns.
    pub within_ns: i64,
    /// Number of bytes that the kernel adds to each frame when it computes how long the wire is used (size table).
    pub overhead_bytes: i32,
    /// Flags of `taprio` (TCA_TAPRIO_ATTR_FLAGS): 0 = a timer opens and closes the gates, 1 = frames have launch times
    /// (txtime-assist), 2 = the network card opens and closes the gates (offload).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flags: u32,
    /// Time after its arrival in the queue at which a frame is launched at the earliest, ns; 0 without launch times.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_ns: u32,
    /// Time before its launch time at which a frame is given to the device, ns; 0 without launch times.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub launch_ahead_ns: u32,
    /// One bit for each class, the lowest for class 0: whether its frames are preemptible (TCA_TAPRIO_TC_ENTRY_FP).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub preemptible: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gates() -> GatesSpec {
        let class = |name: &str, priorities: &[u8]| GateClass {
            name: name.into(),
            priorities: priorities.iter().copied().collect(),
            queues: 2,
            preemptible: false,
        };
        let entry = |open, us: i64| GateEntry { open, time: Nanos(us * 1_000) };
        GatesSpec {
            by: GatesBy::Software,
            classes: vec![class("stream", &[7]), class("rest", &[0, 1, 2])],
            entries: vec![entry(1, 101), entry(3, 103), entry(0, 5)],
            cycle: Some(Nanos(503_000)),
            base: Nanos(0),
            replace: false,
        }
    }

    #[test]
    fn classes_are_found_by_priority_and_named_in_texts() {
        let gates = gates();
        assert_eq!(gates.class_of_priority()[..8], [1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(gates.queues(), 4);
        assert_eq!(gates.to_string(), "software: stream 101 us, stream+rest 103 us, none 5 us, cycle 503 us");
    }

    #[test]
    fn it_is_stored_and_read_again() {
        let text = serde_json::to_string(&gates()).unwrap();
        assert_eq!(serde_json::from_str::<GatesSpec>(&text).unwrap(), gates());
    }
}
