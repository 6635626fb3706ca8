//! Observations of a virtual machine during a trial, reported by QEMU and KVM on the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Observations of a guest (virtual machine) during one trial, reported by its hypervisor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GuestReport")]
pub struct GuestSeen {
    /// Name of the guest (the virtual machine).
    pub guest: String,
    /// True if no end runs in the guest: it ran beside the measured guests, and answered after the last message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub neighbour: bool,
    /// KVM's counters of each virtual CPU, in the order of the CPUs, by KVM's names (`exits`, `halt_successful_poll`
    /// ...). Counters that end in `_ns` are times. Empty if nothing was counted.
    pub vcpus: Vec<BTreeMap<String, i64>>,
    /// Reason why KVM's counters for the guest were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<String>,
    /// Time for which the guest was paused, ns.
    #[serde(default)]
    pub paused_ns: i64,
    /// Begin and end of each pause, monotonic ns of the host of the guest. Empty if its wall clock was set meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<(i64, i64)>,
    /// True if the guest was still paused after the last message.
    #[serde(default)]
    pub still_paused: bool,
    /// Names of events other than pauses that the hypervisor reported, such as `WATCHDOG` of QEMU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Threads on the host that run the guest. Empty if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<GuestThread>,
}

/// A thread on the host that runs a part of a guest (virtual machine).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GuestThread {
    /// Name of the thread: `vCPU 0`, `vhost`, or the name given by the hypervisor.
    pub name: String,
    /// Number of the virtual CPU that the thread runs; absent for other threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpu: Option<u32>,
    /// Id of the thread on the host.
    pub tid: i32,
    /// CPUs of the host on which the thread may run, as the kernel writes them.
    pub cpus: String,
}

impl GuestSeen {
    /// Value of the KVM counter with this name, summed over all virtual CPUs; `None` if KVM did not report the counter.
    pub fn sum(&self, name: &str) -> Option<i64> {
        let counted: Vec<i64> = self.vcpus.iter().filter_map(|vcpu| vcpu.get(name).copied()).collect();
        (!counted.is_empty()).then(|| counted.iter().sum())
    }
}
