//! Wake-ups of threads.

use tailbound_model::CpuLimit;

/// Longest time that an idle CPU takes to run a thread, ns. The deepest idle states of x86 and Arm CPUs take some hundred
/// microseconds to leave; what takes longer has another reason, for example a hypervisor.
pub(crate) const LONGEST_IDLE_EXIT_NS: i64 = 1_000_000;

/// A wake-up of a thread that an agent recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wake {
    pub at_ns: i64,
    /// Number of the CPU on which the wake-up was caused.
    pub cpu: u32,
    /// Id of the thread that caused the wake-up; `None` if an interrupt caused it.
    pub by: Option<i32>,
    /// Id of the thread that had the CPU when an interrupt caused the wake-up.
    pub within: Option<i32>,
    /// Whether the soft interrupt that receives packets caused the wake-up.
    pub packet: bool,
    /// Limit that kept the woken thread from running.
    pub limit: Option<CpuLimit>,
}

impl Wake {
    /// A wake-up that was caused while the thread `by` had `cpu`, by it or by an interrupt.
    pub fn of((at_ns, cpu): (i64, u32), (by, interrupt): (i32, bool), packet: bool, limit: Option<CpuLimit>) -> Wake {
        let (by, within) = if interrupt { (None, Some(by)) } else { (Some(by), None) };
        Wake { at_ns, cpu, by, within, packet, limit }
    }
}
