//! How a thread is scheduled.

use crate::CpuList;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A Linux scheduling policy with its parameters (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// SCHED_OTHER with a nice value.
    Other {
        /// -20 (favoured) to 19.
        nice: i32,
    },
    /// SCHED_BATCH with a nice value.
    Batch {
        /// -20 (favoured) to 19.
        nice: i32,
    },
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO with a priority.
    Fifo {
        /// 1 to 99.
        priority: u32,
    },
    /// SCHED_RR with a priority.
    Rr {
        /// 1 to 99.
        priority: u32,
    },
    /// SCHED_DEADLINE, all three in ns.
    Deadline {
        /// Run time per period.
        runtime_ns: u64,
        /// Relative deadline.
        deadline_ns: u64,
        /// Period.
        period_ns: u64,
    },
}

impl Default for Policy {
    fn default() -> Self {
        Policy::Other { nice: 0 }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Other { nice: 0 } => f.write_str("other"),
            Policy::Other { nice } => write!(f, "other nice {nice}"),
            Policy::Batch { nice: 0 } => f.write_str("batch"),
            Policy::Batch { nice } => write!(f, "batch nice {nice}"),
            Policy::Idle => f.write_str("idle"),
            Policy::Fifo { priority } => write!(f, "fifo {priority}"),
            Policy::Rr { priority } => write!(f, "rr {priority}"),
            Policy::Deadline { runtime_ns, deadline_ns, period_ns } => {
                write!(f, "deadline {runtime_ns}/{deadline_ns}/{period_ns} ns")
            }
        }
    }
}

/// What was asked for the threads of one end's process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scheduling {
    /// Policy of every thread; `None` leaves what the process inherited.
    pub policy: Option<Policy>,
    /// CPUs; `None` = unpinned, all CPUs that the process may use.
    pub cpus: Option<CpuList>,
}
