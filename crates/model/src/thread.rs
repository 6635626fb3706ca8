//! Threads as the kernel shows them.

use crate::{CpuList, Policy, RoleScheduling};
use serde::{Deserialize, Serialize};

/// One thread at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// Thread id in the namespace of the agent.
    pub tid: i32,
    /// Name (comm).
    pub name: String,
    /// What it is for: main receive send event discovery processing other.
    pub role: String,
    /// What was asked for it; absent in old records.
    #[serde(default)]
    pub asked: RoleScheduling,
    /// Policy and priority as the kernel reports them.
    pub policy: Policy,
    /// SCHED_RESET_ON_FORK is set.
    pub reset_on_fork: bool,
    /// CPUs it may use.
    pub cpus: CpuList,
    /// CPU it ran on last.
    pub last_cpu: u32,
    /// CPU time used.
    pub cpu_ns: u64,
    /// Time spent runnable but waiting for a CPU, in waits that have ended: the kernel counts a wait when it ends.
    pub run_delay_ns: u64,
    /// It was runnable when this was read (state `R`): it ran, or waited for a CPU. Never of the thread that read it; absent
    /// in old records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runnable: bool,
    /// The same thread once the loads had ended, where it was runnable at the end of the trial: a wait that was going on then
    /// is counted here. Absent in old records, and of a thread that had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<ThreadLater>,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Moves between CPUs; `None` where the kernel does not tell.
    pub migrations: Option<u64>,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Object that holds the start routine, where the birth was seen.
    pub born_in: Option<String>,
    /// Place in the order of births within the process, from 0; `None` = birth not seen.
    pub birth: Option<u32>,
    /// Thread that made it.
    pub creator: Option<i32>,
    /// Timer slack in ns, where readable.
    pub timer_slack_ns: Option<u64>,
}

/// What the kernel had counted of a thread when it was read once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLater {
    /// When it was read, monotonic ns.
    pub at_ns: i64,
    /// CPU time used.
    pub cpu_ns: u64,
    /// Time spent waiting for a CPU, in waits that have ended.
    pub run_delay_ns: u64,
    /// It was runnable still, or again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runnable: bool,
}

/// The threads of one process before the first slot and after the last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadTable {
    /// Ends of the process, e.g. `ping`.
    pub ends: Vec<String>,
    /// Process id.
    pub pid: i32,
    /// Before the first slot.
    pub before: Vec<ThreadRow>,
    /// After the last.
    pub after: Vec<ThreadRow>,
    /// When `before` was read, monotonic ns; absent in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_ns: Option<i64>,
    /// When `after` was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<i64>,
}
