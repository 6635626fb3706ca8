//! What a kernel does for ordinary threads beside a real-time thread that never sleeps.

use serde::{Deserialize, Serialize};

/// What the self-test saw on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescueSeen {
    /// The CPU.
    pub cpu: u32,
    /// How long the real-time thread ran before an ordinary one wanted its CPU.
    pub alone_ns: u64,
    /// What it was kept from the CPU meanwhile.
    pub alone_delay_ns: u64,
    /// What the CPU was idle meanwhile.
    pub alone_idle_ns: u64,
    /// How long an ordinary thread stood beside it.
    pub beside_ns: u64,
    /// What the ordinary thread ran.
    pub ordinary_cpu_ns: u64,
    /// Its longest time without the CPU.
    pub ordinary_gap_ns: u64,
}
