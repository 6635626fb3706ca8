//! Host settings that a study asks for, and the result of applying each setting.

use crate::{CpuList, RoleScheduling};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// File that holds the time for which KVM polls when a virtual CPU has halted, in ns
/// (Documentation/virt/kvm/halt-polling.rst of the kernel).
pub const KVM_HALT_POLL: &str = "/sys/module/kvm/parameters/halt_poll_ns";

/// One host setting that is in force during the trials that ask for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnobSpec {
    /// Host setting: a kernel parameter, which is a file below /proc/sys.
    Sysctl {
        /// Name of the kernel parameter with dots, as in sysctl(8); if a part contains a dot, `/` is used in place of
        /// `.`.
        name: String,
        /// Value of the kernel parameter, as in sysctl(8).
        value: String,
    },
    /// Host setting: the frequency governor of CPUs.
    Governor {
        /// CPUs whose governor is set; `None` means all CPUs.
        cpus: Option<CpuList>,
        /// Name of the frequency governor, e.g. `performance`.
        governor: String,
    },
    /// Longest wake-up time that an idle CPU may have, requested through /dev/cpu_dma_latency.
    CpuDmaLatency {
        /// Largest allowed wake-up time of an idle CPU, us.
        us: u32,
    },
    /// Time for which KVM polls when a virtual CPU has halted, before KVM gives the CPU to other threads.
    KvmHaltPoll {
        /// Longest time for which KVM polls, ns; 0 means no polling.
        ns: u32,
    },
    /// CPU quota of the control groups in which Tailbound runs, and with it the ends outside of containers and guests: no quota.
    CpuQuota,
    /// Affinity of an interrupt: the CPUs that handle the interrupt.
    IrqAffinity {
        /// Number of the interrupt, or name of the interrupt in /proc/interrupts, in which `*` and `?` are wildcards.
        irq: String,
        /// CPUs that may handle the interrupt.
        cpus: CpuList,
    },
    /// Scheduling policy and CPUs of kernel threads, including interrupt threads.
    KernelThreads {
        /// Name of the kernel threads; `*` and `?` are wildcards.
        threads: String,
        /// Scheduling policy and CPUs to be set for the kernel threads.
        scheduling: RoleScheduling,
    },
    /// Host setting: the queues and the interrupt coalescing of a network interface.
    Nic {
        /// Name of the interface, at the places of the ends or, if it does not exist there, on Tailbound's host.
        interface: String,
        /// The setting of the network interface that is changed.
        setting: NicSetting,
        /// Value of the setting: a number of queues or frames, a delay in us, or 1 for on and 0 for off.
        value: u32,
    },
    /// Host setting: the queue discipline at the root of a network interface, for the packets that it sends.
    Queue {
        /// Name of the interface, at the places of the ends or, if it does not exist there, on Tailbound's host.
        interface: String,
        /// Kind of the queue discipline, with the kernel's own options, or [`DEFAULT_QUEUE`].
        kind: String,
    },
}

/// In place of the kind of a queue discipline: the one that the kernel gives an interface.
pub const DEFAULT_QUEUE: &str = "default";

/// Settings of a network interface, as in ethtool(8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NicSetting {
    /// Number of the interface's queues that both receive and send.
    Channels,
    /// Number of the interface's queues that only receive.
    ChannelsRx,
    /// Number of the interface's queues that only send.
    ChannelsTx,
    /// Whether the network interface chooses the delay of its receive interrupts.
    AdaptiveRx,
    /// Whether the network interface chooses the delay of its send interrupts.
    AdaptiveTx,
    /// Delay of the interface's receive interrupt after a received frame, us.
    CoalesceRx,
    /// Delay of the interface's send interrupt after a sent frame, us.
    CoalesceTx,
    /// Number of received frames after which the interface raises an interrupt.
    CoalesceRxFrames,
    /// Number of sent frames after which the interface raises an interrupt.
    CoalesceTxFrames,
}

impl NicSetting {
    /// Key of the interface setting in a study file, e.g. `coalesce_rx`.
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

    /// Text of a value of the interface setting as a study file writes the value, e.g. `50 us` or `on`.
    pub fn text(self, value: u32) -> String {
        match self {
            NicSetting::AdaptiveRx | NicSetting::AdaptiveTx => if value == 0 { "off" } else { "on" }.to_owned(),
            NicSetting::CoalesceRx | NicSetting::CoalesceTx => format!("{value} us"),
            _ => value.to_string(),
        }
    }
}

impl KnobSpec {
    /// Path of the host setting's key in the study file, e.g. `host.governor`.
    pub fn key(&self) -> String {
        match self {
            KnobSpec::Sysctl { name, .. } => format!("host.sysctl.{name}"),
            KnobSpec::Governor { cpus: None, .. } => "host.governor".into(),
            KnobSpec::Governor { cpus: Some(cpus), .. } => format!("host.governor.{cpus}"),
            KnobSpec::CpuDmaLatency { .. } => "host.cpu_dma_latency".into(),
            KnobSpec::KvmHaltPoll { .. } => "host.kvm_halt_poll".into(),
            KnobSpec::CpuQuota => "host.cpu_quota".into(),
            KnobSpec::IrqAffinity { irq, .. } => format!("host.irq_affinity.{irq}"),
            KnobSpec::KernelThreads { threads, .. } => format!("host.kernel_threads.{threads}"),
            KnobSpec::Nic { interface, setting, .. } => format!("host.nic.{interface}.{}", setting.word()),
            KnobSpec::Queue { interface, .. } => format!("host.queue.{interface}"),
        }
    }

    /// The requested value of the host setting, as a study file writes the value.
    pub fn wanted(&self) -> String {
        match self {
            KnobSpec::Sysctl { value, .. } => value.clone(),
            KnobSpec::Governor { governor, .. } => governor.clone(),
            KnobSpec::CpuDmaLatency { us } => format!("{us} us"),
            // This value is written in the kernel's unit, ns.
            KnobSpec::KvmHaltPoll { ns } => ns.to_string(),
            KnobSpec::CpuQuota => "off".into(),
            KnobSpec::IrqAffinity { cpus, .. } => cpus.to_string(),
            KnobSpec::KernelThreads { scheduling, .. } => scheduling.to_string(),
            KnobSpec::Nic { setting, value, .. } => setting.text(*value),
            KnobSpec::Queue { kind, .. } => kind.clone(),
        }
    }

    /// The privilege that Tailbound needs to change the host setting.
    pub fn privilege(&self) -> &'static str {
        match self {
            KnobSpec::CpuDmaLatency { .. } => "write access to /dev/cpu_dma_latency",
            KnobSpec::KernelThreads { .. } => "CAP_SYS_NICE",
            KnobSpec::Nic { .. } => "CAP_NET_ADMIN",
            // The way back is tried out in a network namespace of its own.
            KnobSpec::Queue { .. } => "CAP_NET_ADMIN and CAP_SYS_ADMIN",
            KnobSpec::Sysctl { .. }
            | KnobSpec::Governor { .. }
            | KnobSpec::KvmHaltPoll { .. }
            | KnobSpec::CpuQuota
            | KnobSpec::IrqAffinity { .. } => "root",
        }
    }

    /// True if the host setting belongs to the host that runs guests (virtual machines), not to a guest.
    pub fn is_of_hypervisor(&self) -> bool {
        matches!(self, KnobSpec::KvmHaltPoll { .. })
    }

    /// True if the host setting belongs to a network namespace, so that Tailbound sets it in the network namespaces of
    /// the ends.
    pub fn is_of_network(&self) -> bool {
        match self {
            KnobSpec::Sysctl { name, .. } => name.starts_with("net."),
            KnobSpec::Nic { .. } | KnobSpec::Queue { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for KnobSpec {
    /// Writes the host setting's key and value, e.g. `host.sysctl.net.core.busy_poll: 50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key(), self.wanted())
    }
}

/// Host settings that were in force during the same trials of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HostSettingsReport")]
pub struct HostSettings {
    /// Ids of the trials that ran with these host settings.
    pub trials: Vec<usize>,
    /// The settings, in the order in which they were made.
    pub settings: Vec<KnobDone>,
}

/// One host setting and the result of applying it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HostSettingReport")]
pub struct KnobDone {
    /// Path of the setting's key in the study, e.g. `host.governor`.
    pub key: String,
    /// The file, interrupt or thread whose setting was changed.
    pub what: String,
    /// Name of the end in whose network namespace the setting is, or of another host; absent for a setting of
    /// Tailbound's whole host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// Value of the host setting that the study asks for.
    pub wanted: String,
    /// Value of the host setting before Tailbound changed it.
    pub before: String,
    /// Value of the host setting that was read back after the change.
    pub found: String,
    /// Result of restoring the setting after the trials; null if the run ended before the setting was restored.
    #[serde(rename = "put_back")]
    pub restored: Option<String>,
}
