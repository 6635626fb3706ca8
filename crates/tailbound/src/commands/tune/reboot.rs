//! What must be the same after a reboot for a run to go on.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::FactValue;

/// Facts that must be the same after a reboot: the kernel, its command line, the CPUs, and settings that a boot resets.
const FACTS: [&str; 14] = [
    "kernel.release",
    "kernel.version",
    "kernel.cmdline",
    "kernel.preemption",
    "cpu.model",
    "cpu.count",
    "cpu.online",
    "cpu.smt_active",
    "cpu.governor",
    "cpu.idle_driver",
    "clock.source",
    "machine.hypervisor",
    "sched.rt_runtime_us",
    "net.core.rmem_max",
];

/// The host during a part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostOfRun {
    /// Boot id of its kernel.
    pub boot_id: String,
    /// Facts that must stay the same, by name.
    pub facts: BTreeMap<String, String>,
}

impl HostOfRun {
    /// This host now.
    pub fn now() -> HostOfRun {
        let boot_id = tailbound_host::boot_id().unwrap_or_default();
        HostOfRun { boot_id, facts: facts(&FACTS) }
    }

    /// What differs on the host `now`, each in words. Facts that one side lacks do not count.
    fn differences(&self, now: &HostOfRun) -> Vec<String> {
        let both = self.facts.iter().filter_map(|(name, was)| Some((name, was, now.facts.get(name)?)));
        both.filter(|(_, was, is)| was != is)
            .map(|(name, was, is)| format!("{name} was `{was}` and is `{is}`"))
            .collect()
    }
}

/// Facts of this host as text, by name; unknown ones are left out.
pub fn facts(names: &[&str]) -> BTreeMap<String, String> {
    let facts = tailbound_host::facts::collect();
    let text = |name: &str| match facts.get(name)? {
        FactValue::Text(text) => Some(text.clone()),
        FactValue::Number(number) => Some(number.to_string()),
        FactValue::Flag(flag) => Some(flag.to_string()),
        FactValue::Unknown(_) => None,
    };
    names.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?))).collect()
}

/// What differs on this host since `before`, and the host now; `None` without a reboot.
///
/// # Errors
/// Something differs, and `changed` does not permit it.
pub fn check(before: &HostOfRun, changed: bool) -> Result<Option<(HostOfRun, Vec<String>)>, Failure> {
    let now = HostOfRun::now();
    if now.boot_id == before.boot_id {
        return Ok(None);
    }
    let differences = before.differences(&now);
    if differences.is_empty() || changed {
        return Ok(Some((now, differences)));
    }
    let what = format!("the host was rebooted since this run began, and changed: {}", differences.join("; "));
    let help = "boot it as it was, begin a new run, or add --changed to go on and have the change in the receipt";
    Err(Failure::not_fit(what).help(help))
}
