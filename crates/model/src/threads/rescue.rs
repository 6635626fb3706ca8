//! Result of a self-test: the CPU time that an ordinary thread gets on a CPU on which a real-time thread never sleeps.

use serde::{Deserialize, Serialize};

/// Measured values of the self-test with a real-time thread that never sleeps, on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescueSeen {
    /// Number of the CPU on which the self-test ran.
    pub cpu: u32,
    /// Length of the period in which the real-time thread was alone on the CPU, before an ordinary thread started, ns.
    pub alone_ns: u64,
    /// Time for which the real-time thread waited for the CPU while it was alone on the CPU, ns.
    pub alone_delay_ns: u64,
    /// Idle time of the CPU in the period in which only the real-time thread had been started there, ns.
    pub alone_idle_ns: u64,
    /// Length of the period in which an ordinary thread was ready to run on the CPU too, ns.
    pub beside_ns: u64,
    /// CPU time that the ordinary thread got beside the real-time thread, ns.
    pub ordinary_cpu_ns: u64,
    /// Longest time for which the ordinary thread did not get the CPU, ns.
    pub ordinary_gap_ns: u64,
}
