//! Context switches about the worst messages of a trial: who had the CPUs, who waited, who woke whom.

use crate::Policy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one agent saw.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Switches {
    /// Ends of the agent.
    pub ends: Vec<String>,
    /// How much could be seen.
    pub scope: SwitchScope,
    /// Wake-ups of the measured threads were seen.
    #[serde(default)]
    pub wakes: bool,
    /// The times that were asked for, monotonic ns, rising and apart.
    pub windows: Vec<(i64, i64)>,
    /// Records that the kernel could not keep: times within which some are missing, monotonic ns.
    #[serde(default)]
    pub gaps: Vec<(i64, i64)>,
    /// What happened within the windows, in order of time.
    pub events: Vec<SwitchEvent>,
    /// Threads that are not of the agent's ends, by id, as far as they could be named.
    #[serde(default)]
    pub tasks: BTreeMap<i32, Task>,
    /// When the measuring process was stopped (SIGSTOP, a debugger) and went on, monotonic ns, as its supervisor noticed.
    #[serde(default)]
    pub stops: Vec<(i64, i64)>,
}

/// How much of the machine an agent could see.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchScope {
    /// Everything on the CPUs of the ends.
    Cpus(crate::CpuList),
    /// The threads of the ends only: what ran in their place is not seen.
    OwnThreads,
    /// Nothing: why.
    Nothing(String),
    /// Nothing was asked for.
    #[default]
    Off,
}

/// Something that happened to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchEvent {
    /// When, monotonic ns.
    pub at_ns: i64,
    /// CPU; of a wake-up, the one on which somebody woke the thread.
    pub cpu: u32,
    /// What.
    #[serde(flatten)]
    pub what: SwitchKind,
}

/// Kinds of events. Thread 0 is the idle one; -1 is one that is gone or in a PID namespace that cannot be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// A thread left the CPU to another.
    Switch {
        /// Who left.
        out: i32,
        /// Who came.
        into: i32,
        /// `out` would have run on.
        preempted: bool,
    },
    /// A measured thread came; who left is not seen.
    In(i32),
    /// A measured thread left; who came is not seen.
    Out {
        /// Who.
        thread: i32,
        /// It would have run on.
        preempted: bool,
    },
    /// A measured thread became ready to run.
    Wake {
        /// Who.
        thread: i32,
        /// Who ran where it was woken; an interrupt wakes from within whoever happens to run.
        by: i32,
    },
}

/// A thread that is not of an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its policy, where it lived long enough to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}
