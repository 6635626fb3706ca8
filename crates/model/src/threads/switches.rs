//! Context switches around the worst messages of a trial: which threads had the CPUs, which threads waited, and which
//! thread woke which other thread.

use crate::Policy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Context switches of threads that one agent recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Switches {
    /// Names of the ends that the recording agent started.
    pub ends: Vec<String>,
    /// Threads and CPUs whose context switches could be recorded.
    pub scope: SwitchScope,
    /// True if wake-ups of the measured threads were recorded too.
    #[serde(default)]
    pub wakes: bool,
    /// Begin and end of each time span whose events were requested, monotonic ns, in rising order and without overlap.
    pub windows: Vec<(i64, i64)>,
    /// Begin and end of each time span in which the kernel dropped records, monotonic ns.
    #[serde(default)]
    pub gaps: Vec<(i64, i64)>,
    /// Context switches and wake-ups within the requested time spans, in the order of time.
    pub events: Vec<SwitchEvent>,
    /// Recorded threads that do not belong to the agent's ends, by thread id, as far as their names are known.
    #[serde(default)]
    pub tasks: BTreeMap<i32, Task>,
    /// Begin and end of each time span in which the measuring process was stopped (SIGSTOP, a debugger), monotonic ns,
    /// as noticed by its supervisor.
    #[serde(default)]
    pub stops: Vec<(i64, i64)>,
}

/// Threads and CPUs whose context switches an agent could record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchScope {
    /// Context switches of all threads on the CPUs of the ends could be recorded.
    Cpus(crate::CpuList),
    /// Only context switches of the ends' threads could be recorded; the threads that ran instead of them are not
    /// known.
    OwnThreads,
    /// No context switches could be recorded; the text is the reason.
    Nothing(String),
    /// The study did not ask for recording of context switches.
    #[default]
    Off,
}

/// A recorded event: a context switch or a wake-up of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchEvent {
    /// Monotonic time of the context switch or wake-up, ns.
    pub at_ns: i64,
    /// CPU of the event; for a wake-up, the CPU on which the waking code ran.
    pub cpu: u32,
    /// Kind of the recorded event, with the threads involved.
    #[serde(flatten)]
    pub what: SwitchKind,
}

/// Kinds of context switches and wake-ups. Threads are given by thread id: 0 is the idle thread; -1 is a thread that
/// has ended, or that is in a PID namespace that cannot be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// One thread left the CPU and another thread got it.
    Switch {
        /// Id of the thread that left the CPU.
        out: i32,
        /// Id of the thread that got the CPU.
        into: i32,
        /// True if the thread that left the CPU was still runnable.
        preempted: bool,
    },
    /// A measured thread got the CPU; the thread that left is not recorded.
    In(i32),
    /// A measured thread left the CPU; the thread that got the CPU is not recorded.
    Out {
        /// Id of the thread that left the CPU.
        thread: i32,
        /// True if the thread that left the CPU was still runnable.
        preempted: bool,
    },
    /// Kind of event: a measured thread became ready to run (wake-up).
    Wake {
        /// Id of the thread that became ready to run.
        thread: i32,
        /// Id of the thread that ran on the CPU where the wake-up happened. If an interrupt caused the wake-up, this
        /// thread may have nothing to do with the wake-up.
        by: i32,
    },
}

/// A thread that appears in context switches and does not belong to an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Name of the thread that appears in the recorded context switches.
    pub name: String,
    /// Scheduling policy of the thread; absent if the thread ended before the policy was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}
