//! The thread table of this process, and the check that every thread runs as asked.

use super::{beside, failed};
use crate::births::{self, births};
use crate::govern::{by_place, fits, own_role};
use std::time::Duration;
use tailbound_driver::{Description, ThreadRole};
use tailbound_host::read_threads;
use tailbound_model::*;
use tailbound_wire::{Failed, Order};

/// What a thread that was just made may take to its first lines, where it gets its policy; one that is kept from its CPU
/// for longer is shown as it then is.
const BIRTH: Duration = Duration::from_secs(2);

/// The threads now, in the `before` half.
pub(super) fn table(order: &Order, driver: &Description) -> Result<ThreadTable, Failed> {
    let named = |name: &str| {
        let fits = |r: &&ThreadRole| r.name_glob.as_deref().is_some_and(|glob| fits(glob, name));
        let of_driver = || driver.roles.iter().find(fits).map(|r| r.role.as_str());
        own_role(name).or_else(of_driver)
    };
    let role = |name: &str| named(name).unwrap_or("other").to_owned();
    let pid = std::process::id() as i32;
    births::settle(BIRTH);
    let mut rows = read_threads(pid, &role)
        .map_err(|e| failed("threads", ExitCode::RunFailed, format!("the thread table cannot be read: {e}"), ""))?
        .rows;
    let births = births();
    for row in &mut rows {
        let birth = births.iter().find(|b| b.tid == row.tid);
        let by_place = birth.and_then(|b| b.place).and_then(|place| by_place(&driver.roles, place));
        if row.tid == pid {
            row.role = "main".into();
        } else if let (None, Some(role)) = (named(&row.name), by_place) {
            row.role = role.into();
        }
        row.asked = order.ends[0].scheduling.of_role(&row.role, is_middleware(row));
        // Its own scheduling comes first, and what it does not name is that of the process.
        if let Some(load) = beside::load_of(order, &row.name) {
            let RoleScheduling { policy, cpus } = load.scheduling.clone();
            row.asked = RoleScheduling { policy: policy.or(row.asked.policy), cpus: cpus.or(row.asked.cpus.take()) };
        }
        if let (HandOff::Thread { cpus: Some(cpus) }, "processing") = (order.spec.measure.hand_off(), row.role.as_str())
        {
            row.asked.cpus = Some(cpus.clone());
        }
        if let Some(birth) = birth {
            row.birth = Some(birth.order);
            row.creator = Some(birth.creator);
            row.born_in.clone_from(&birth.object);
        }
    }
    let ends = order.ends.iter().map(|e| e.role.word().to_owned()).collect();
    let before_ns = Some(tailbound_host::monotonic_ns());
    Ok(ThreadTable { ends, pid, before: rows, after: Vec::new(), before_ns, after_ns: None })
}

/// The driver made it.
pub(super) fn is_middleware(row: &ThreadRow) -> bool {
    row.role != "main" && own_role(&row.name).is_none()
}

/// Threads that run otherwise than asked make the trial invalid; with the user's own vendor configuration, which may set
/// threads itself, it is only said.
pub(super) fn differences(order: &Order, driver: &str, rows: &[ThreadRow]) -> Vec<Warning> {
    let own_config = order.spec.driver.config.is_some();
    let severity = if own_config { Severity::Note } else { Severity::Invalid };
    let mut warnings = Vec::new();
    for row in rows {
        let mut say = |what: &str, asked: String, found: String| {
            let text =
                format!("thread {} ({}, role {}) has {what} {found}, asked was {asked}", row.name, driver, row.role);
            warnings.push(Warning::new("thread_not_as_asked", severity, text, "").at_end(order.ends[0].role.word()));
        };
        if let Some(policy) = row.asked.policy.filter(|p| *p != row.policy) {
            say("policy", policy.to_string(), row.policy.to_string());
        }
        if let Some(cpus) = row.asked.cpus.as_ref().filter(|c| **c != row.cpus) {
            say("CPUs", cpus.to_string(), row.cpus.to_string());
        }
    }
    warnings
}
