//! Reads the thread table of the measuring process, and checks that every thread has the scheduling that the study asks
//! for.

use super::topic_loads;
use crate::thread_creation::{self, creations};
use crate::thread_policy::{by_creation, own_role};
use std::time::Duration;
use tailbound_abi::name_matches;
use tailbound_driver::{Description, ThreadRole};
use tailbound_host::read_threads;
use tailbound_model::*;
use tailbound_wire::{Failed, Order};

/// Longest time for a new thread to set its scheduling. If a thread gets no CPU for longer, the table shows the
/// scheduling that the thread has then.
const CREATION: Duration = Duration::from_secs(2);

/// Reads the present threads of this process, into the part `before` of a thread table.
///
/// # Errors
/// /proc cannot be read.
pub(super) fn table(order: &Order, driver: &Description) -> Result<ThreadTable, Failed> {
    let named = |name: &str| {
        let fits = |r: &&ThreadRole| r.name_glob.as_deref().is_some_and(|pattern| name_matches(pattern, name));
        let of_driver = || driver.roles.iter().find(fits).map(|r| r.role.as_str());
        own_role(name).or_else(of_driver)
    };
    let role = |name: &str| named(name).unwrap_or("other").to_owned();
    let pid = std::process::id() as i32;
    thread_creation::await_all(CREATION);
    let mut rows = read_threads(pid, &role)
        .map_err(|e| Failed::new("threads", ExitCode::RunFailed, format!("the thread table cannot be read: {e}"), ""))?
        .rows;
    let creations = creations();
    for row in &mut rows {
        let creation = creations.iter().find(|c| c.tid == row.tid);
        let by_creation = creation.and_then(|c| c.position).and_then(|position| by_creation(&driver.roles, position));
        if row.tid == pid {
            row.role = "main".into();
        } else if let (None, Some(role)) = (named(&row.name), by_creation) {
            row.role = role.into();
        }
        row.asked = order.scheduling().of_role(&row.role, is_middleware(row));
        // A load has its own scheduling. If the load names no policy or no CPUs, it inherits them from the process.
        if let Some(load) = topic_loads::load_of(order, &row.name) {
            let RoleScheduling { policy, cpus } = load.scheduling.clone();
            row.asked = RoleScheduling { policy: policy.or(row.asked.policy), cpus: cpus.or(row.asked.cpus.take()) };
        }
        if let (HandOff::Thread { cpus: Some(cpus) }, "processing") = (order.spec.measure.hand_off(), row.role.as_str())
        {
            row.asked.cpus = Some(cpus.clone());
        }
        if let Some(creation) = creation {
            row.birth = Some(creation.order);
            row.creator = Some(creation.creator);
            row.born_in.clone_from(&creation.object);
        }
    }
    let ends = order.ends.iter().map(|e| e.role.word().to_owned()).collect();
    let before_ns = Some(tailbound_host::monotonic_ns());
    Ok(ThreadTable { ends, pid, before: rows, after: Vec::new(), before_ns, after_ns: None })
}

/// True if the driver created the thread of this row of the thread table.
pub(super) fn is_middleware(row: &ThreadRow) -> bool {
    row.role != "main" && own_role(&row.name).is_none()
}

/// Warns of threads whose scheduling differs from the scheduling that the study asks for. The trial is then invalid. If
/// the user provides a configuration of the middleware, which may set threads itself, the warning is only a note.
pub(super) fn differences(order: &Order, driver: &str, rows: &[ThreadRow]) -> Vec<Warning> {
    let own_config = order.spec.driver.config.is_some();
    let severity = if own_config { Severity::Note } else { Severity::Invalid };
    let mut warnings = Vec::new();
    for row in rows {
        let mut warn = |what: &str, asked: String, found: String| {
            let text = format!(
                "thread {} ({}, role {}) has {what} {found}, the study asks for {asked}",
                row.name, driver, row.role
            );
            warnings.push(Warning::new("thread_not_as_asked", severity, text, "").at_end(order.ends[0].role.word()));
        };
        if let Some(policy) = row.asked.policy.filter(|p| *p != row.policy) {
            warn("policy", policy.to_string(), row.policy.to_string());
        }
        if let Some(cpus) = row.asked.cpus.as_ref().filter(|c| **c != row.cpus) {
            warn("CPUs", cpus.to_string(), row.cpus.to_string());
        }
    }
    warnings
}
