//! Settings of a host that a study asks for, and what became of each.

use crate::{CpuList, RoleScheduling};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where KVM has how long it polls for a virtual CPU that has halted, ns (Documentation/virt/kvm/halt-polling.rst of the
/// kernel).
pub const KVM_HALT_POLL: &str = "/sys/module/kvm/parameters/halt_poll_ns";

/// One setting of the host that is in force while the trials that ask for it run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnobSpec {
    /// A file below /proc/sys.
    Sysctl {
        /// Dotted name as sysctl(8) writes it; `/` in place of `.` where a part holds a dot.
        name: String,
        /// Value as sysctl(8) takes it.
        value: String,
    },
    /// Who chooses the frequency of CPUs.
    Governor {
        /// CPUs; `None` = all.
        cpus: Option<CpuList>,
        /// Name of the governor.
        governor: String,
    },
    /// The longest wake-up that an idle CPU may take, held open in /dev/cpu_dma_latency.
    CpuDmaLatency {
        /// Bound in us.
        us: u32,
    },
    /// How long KVM polls for work of a virtual CPU that has halted, before it gives the CPU away.
    KvmHaltPoll {
        /// At most so long, ns; 0 = not at all.
        ns: u32,
    },
    /// CPUs that take an interrupt.
    IrqAffinity {
        /// Its number, or its name in /proc/interrupts with `*` and `?`.
        irq: String,
        /// CPUs.
        cpus: CpuList,
    },
    /// Policy and CPUs of threads of the kernel, those of interrupts among them.
    KernelThreads {
        /// Name with `*` and `?`.
        threads: String,
        /// What they are to have.
        scheduling: RoleScheduling,
    },
    /// Queues and coalescing of a network interface.
    Nic {
        /// Its name, where the ends are or else where Tailbound is.
        interface: String,
        /// Which of its settings.
        setting: NicSetting,
        /// Value: a number, us, or 1 for on.
        value: u32,
    },
}

/// Settings of a network interface, as ethtool(8) has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NicSetting {
    /// Queues that both receive and send.
    Channels,
    /// Queues that only receive.
    ChannelsRx,
    /// Queues that only send.
    ChannelsTx,
    /// The interface chooses how long it waits before a receive interrupt.
    AdaptiveRx,
    /// The same of sending.
    AdaptiveTx,
    /// How long it waits before a receive interrupt, us.
    CoalesceRx,
    /// The same of sending, us.
    CoalesceTx,
    /// How many frames it waits for before a receive interrupt.
    CoalesceRxFrames,
    /// The same of sending.
    CoalesceTxFrames,
}

impl NicSetting {
    /// Its key in a study.
    pub fn word(self) -> &'static str {
        match self {
            NicSetting::Channels => "channels",
            NicSetting::ChannelsRx => "channels_rx",
            NicSetting::ChannelsTx => "channels_tx",
            NicSetting::AdaptiveRx => "adaptive_rx",
            NicSetting::AdaptiveTx => "adaptive_tx",
            NicSetting::CoalesceRx => "coalesce_rx",
            NicSetting::CoalesceTx => "coalesce_tx",
            NicSetting::CoalesceRxFrames => "coalesce_rx_frames",
            NicSetting::CoalesceTxFrames => "coalesce_tx_frames",
        }
    }

    /// A value as a study writes it.
    pub fn text(self, value: u32) -> String {
        match self {
            NicSetting::AdaptiveRx | NicSetting::AdaptiveTx => if value == 0 { "off" } else { "on" }.to_owned(),
            NicSetting::CoalesceRx | NicSetting::CoalesceTx => format!("{value} us"),
            _ => value.to_string(),
        }
    }
}

impl KnobSpec {
    /// Path of its key in the study.
    pub fn key(&self) -> String {
        match self {
            KnobSpec::Sysctl { name, .. } => format!("host.sysctl.{name}"),
            KnobSpec::Governor { cpus: None, .. } => "host.governor".into(),
            KnobSpec::Governor { cpus: Some(cpus), .. } => format!("host.governor.{cpus}"),
            KnobSpec::CpuDmaLatency { .. } => "host.cpu_dma_latency".into(),
            KnobSpec::KvmHaltPoll { .. } => "host.kvm_halt_poll".into(),
            KnobSpec::IrqAffinity { irq, .. } => format!("host.irq_affinity.{irq}"),
            KnobSpec::KernelThreads { threads, .. } => format!("host.kernel_threads.{threads}"),
            KnobSpec::Nic { interface, setting, .. } => format!("host.nic.{interface}.{}", setting.word()),
        }
    }

    /// The value asked for, as a study writes it.
    pub fn wanted(&self) -> String {
        match self {
            KnobSpec::Sysctl { value, .. } => value.clone(),
            KnobSpec::Governor { governor, .. } => governor.clone(),
            KnobSpec::CpuDmaLatency { us } => format!("{us} us"),
            // As the kernel has it.
            KnobSpec::KvmHaltPoll { ns } => ns.to_string(),
            KnobSpec::IrqAffinity { cpus, .. } => cpus.to_string(),
            KnobSpec::KernelThreads { scheduling, .. } => scheduling.to_string(),
            KnobSpec::Nic { setting, value, .. } => setting.text(*value),
        }
    }

    /// The privilege that it takes.
    pub fn privilege(&self) -> &'static str {
        match self {
            KnobSpec::CpuDmaLatency { .. } => "write access to /dev/cpu_dma_latency",
            KnobSpec::KernelThreads { .. } => "CAP_SYS_NICE",
            KnobSpec::Nic { .. } => "CAP_NET_ADMIN",
            KnobSpec::Sysctl { .. }
            | KnobSpec::Governor { .. }
            | KnobSpec::KvmHaltPoll { .. }
            | KnobSpec::IrqAffinity { .. } => "root",
        }
    }

    /// It is of the host that runs guests, and of none of the guests.
    pub fn is_of_hypervisor(&self) -> bool {
        matches!(self, KnobSpec::KvmHaltPoll { .. })
    }

    /// It belongs to a network namespace: it is set where the ends are.
    pub fn is_of_network(&self) -> bool {
        match self {
            KnobSpec::Sysctl { name, .. } => name.starts_with("net."),
            KnobSpec::Nic { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for KnobSpec {
    /// `host.sysctl.net.core.busy_poll: 50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key(), self.wanted())
    }
}

/// Settings of the host, and the trials that ran under them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostSettings {
    /// Trials, by id.
    pub trials: Vec<usize>,
    /// In the order in which they were set.
    pub settings: Vec<KnobDone>,
}

/// What became of one setting.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KnobDone {
    /// Path of its key in the study.
    pub key: String,
    /// Which of those that the key names: a file, an interrupt, a thread.
    pub what: String,
    /// The end (`ping`, `pong`) in whose network namespace it lies, or another host (`host guest-1`); empty = this host's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// Value asked for.
    pub wanted: String,
    /// Value found before it was set.
    pub before: String,
    /// Value read back when it was set.
    pub found: String,
    /// What became of it after the trials; `None` = the run was killed, or goes on.
    pub put_back: Option<String>,
}
