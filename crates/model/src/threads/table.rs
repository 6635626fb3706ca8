//! Threads of the measuring processes, as the kernel reports them.

use crate::{CpuList, Policy, RoleScheduling};
use serde::{Deserialize, Serialize};

/// One thread of a measuring process, read at one point in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// Thread id in the PID namespace of the agent.
    pub tid: i32,
    /// Name of the thread, as the kernel stores it (comm).
    pub name: String,
    /// Role of the thread: `main`, `receive`, `send`, `event`, `discovery`, `processing` or `other`.
    pub role: String,
    /// Scheduling policy and CPUs that the study asks for; absent in old records.
    #[serde(default)]
    pub asked: RoleScheduling,
    /// Scheduling policy and priority of the thread, as the kernel reports them.
    pub policy: Policy,
    /// True if SCHED_RESET_ON_FORK is set for the thread.
    pub reset_on_fork: bool,
    /// CPUs on which the thread may run.
    pub cpus: CpuList,
    /// Number of the CPU on which the thread ran last.
    pub last_cpu: u32,
    /// CPU time that the thread has used since it was created, ns.
    pub cpu_ns: u64,
    /// Time for which the thread was runnable and waited for a CPU, ns. The kernel counts a wait when the wait ends.
    pub run_delay_ns: u64,
    /// True if the thread was runnable (state `R`) when its state was read: the thread ran or waited for a CPU. Always
    /// false for the thread that read the table; absent in old records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runnable: bool,
    /// Monotonic time before which a wait that was going on at the reading cannot have begun, ns; only for a runnable thread, and
    /// absent in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since_ns: Option<i64>,
    /// Second reading of the thread's counters after the loads had ended, if the thread was runnable at the end of the
    /// trial: this reading includes a wait that had not ended at the end of the trial. Absent in old records and for a
    /// thread that had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<ThreadLater>,
    /// Number of voluntary context switches of the thread.
    pub voluntary_switches: u64,
    /// Number of involuntary context switches of the thread.
    pub involuntary_switches: u64,
    /// Number of moves of the thread from one CPU to another; `None` if the kernel does not report the number.
    pub migrations: Option<u64>,
    /// Number of minor page faults of the thread.
    pub minor_faults: u64,
    /// Number of major page faults of the thread.
    pub major_faults: u64,
    /// Object file that contains the start routine of the thread; `None` if the creation of the thread was not
    /// observed.
    pub born_in: Option<String>,
    /// Position of the thread in the order in which the process created its threads, from 0; `None` if the creation was
    /// not observed.
    pub birth: Option<u32>,
    /// Id of the thread that created this thread.
    pub creator: Option<i32>,
    /// Timer slack of the thread in ns, if it can be read.
    pub timer_slack_ns: Option<u64>,
}

/// Counters of a thread at a second reading, after the loads of the trial had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLater {
    /// Monotonic time at which the thread was read the second time, ns.
    pub at_ns: i64,
    /// CPU time that the thread has used since it was created, ns.
    pub cpu_ns: u64,
    /// Time for which the thread waited for a CPU, in waits that had ended, ns.
    pub run_delay_ns: u64,
    /// True if the thread was runnable at the second reading.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runnable: bool,
}

/// The threads of one process before the first slot and after the last slot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadTable {
    /// Names of the ends that ran in the measuring process, e.g. `ping`.
    pub ends: Vec<String>,
    /// Process id of the measuring process.
    pub pid: i32,
    /// Threads of the measuring process, read before the first slot.
    pub before: Vec<ThreadRow>,
    /// Threads of the measuring process, read after the last slot.
    pub after: Vec<ThreadRow>,
    /// Monotonic time at which `before` was read, ns; absent in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_ns: Option<i64>,
    /// Monotonic time at which `after` was read, ns; absent in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<i64>,
}
