//! Writes settings of a study as arguments of `--set`.

use std::fmt::Write;
use tailbound_model::{CpuList, Policy, RoleScheduling, Scheduling};

/// The setting of the scheduling of an end, e.g. `ends.pong.scheduling={ policy: fifo, priority: 61 }`. The CPUs of the whole
/// end are a key of their own.
pub(crate) fn scheduling(end: &str, scheduling: &Scheduling) -> String {
    let mut keys: Vec<String> = Vec::new();
    if scheduling.by_vendor {
        keys.push("apply: vendor".into());
    }
    keys.extend(scheduling.policy.as_ref().map(policy));
    keys.extend(scheduling.roles.iter().map(|(name, of)| format!("{name}: {{ {} }}", role(of))));
    format!("ends.{end}.scheduling={{ {} }}", keys.join(", "))
}

/// The keys of the scheduling of a role, e.g. `policy: fifo, priority: 61, cpus: "1"`.
pub(crate) fn role(of: &RoleScheduling) -> String {
    let cpus = of.cpus.as_ref().map(|cpus| format!("cpus: \"{cpus}\""));
    of.policy.as_ref().map(policy).into_iter().chain(cpus).collect::<Vec<_>>().join(", ")
}

/// The keys of a policy, e.g. `policy: fifo, priority: 61`.
pub(crate) fn policy(policy: &Policy) -> String {
    let mut text = format!("policy: {}", policy.word());
    let _ = match policy {
        Policy::Other { nice: 0 } | Policy::Batch { nice: 0 } | Policy::Idle => Ok(()),
        Policy::Other { nice } | Policy::Batch { nice } => write!(text, ", nice: {nice}"),
        Policy::Fifo { priority } | Policy::Rr { priority } => write!(text, ", priority: {priority}"),
        Policy::Deadline { runtime_ns, deadline_ns, period_ns } => {
            write!(text, ", runtime: {runtime_ns} ns, deadline: {deadline_ns} ns, period: {period_ns} ns")
        }
    };
    text
}

/// The setting of the CPUs of an end, e.g. `ends.pong.cpus=2`.
pub(crate) fn cpus(end: &str, cpus: &CpuList) -> String {
    format!("ends.{end}.cpus={cpus}")
}
