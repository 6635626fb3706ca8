//! What happened to a virtual machine in a trial, as the program that runs it tells it from outside.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One guest over one trial, from just before messages went until just after.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GuestSeen {
    /// Its name.
    pub guest: String,
    /// What KVM counted of each virtual CPU, in their order, by its names (`exits`, `halt_successful_poll` ...); those
    /// that end in `_ns` are times. Empty = not counted.
    pub vcpus: Vec<BTreeMap<String, i64>>,
    /// Why nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<String>,
    /// How long it stood still because somebody paused it, ns.
    #[serde(default)]
    pub paused_ns: i64,
    /// It still did when messages were over.
    #[serde(default)]
    pub still_paused: bool,
    /// What else QEMU told of it, by the names of its events, such as `WATCHDOG`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

impl GuestSeen {
    /// A statistic summed over its virtual CPUs; `None` = it was not counted.
    pub fn sum(&self, name: &str) -> Option<i64> {
        let counted: Vec<i64> = self.vcpus.iter().filter_map(|vcpu| vcpu.get(name).copied()).collect();
        (!counted.is_empty()).then(|| counted.iter().sum())
    }
}
