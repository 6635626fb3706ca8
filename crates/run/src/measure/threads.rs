//! The thread table of this process, and the check that every thread runs as asked.

use super::failed;
use crate::births::births;
use tailbound_driver::Description;
use tailbound_host::read_threads;
use tailbound_model::*;
use tailbound_wire::{Failed, Order};

/// Thread-name patterns and their roles; the first that fits wins.
pub(super) type Roles = Vec<(String, String)>;

/// Our own threads, then the driver's.
pub(super) fn roles(description: &Description) -> Roles {
    let own = [
        ("tailbound", "main"),
        ("tb-ping", "main"),
        ("tb-pong", "main"),
        ("tb-receive", "receive"),
        ("tb-process", "processing"),
    ];
    let driver = description.roles.iter().filter_map(|r| Some((r.name_glob.clone()?, r.role.clone())));
    own.iter().map(|(n, r)| ((*n).to_owned(), (*r).to_owned())).chain(driver).collect()
}

/// `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|i| rest.is_char_boundary(*i)).any(|i| fits(after, &rest[i..]))
        }),
    }
}

/// The threads now, in the `before` half.
pub(super) fn table(order: &Order, roles: &Roles) -> Result<ThreadTable, Failed> {
    let role = |name: &str| {
        roles.iter().find(|(pattern, _)| fits(pattern, name)).map_or_else(|| "other".to_owned(), |(_, r)| r.clone())
    };
    let pid = std::process::id() as i32;
    let mut rows = read_threads(pid, &role)
        .map_err(|e| failed("threads", ExitCode::RunFailed, format!("the thread table cannot be read: {e}"), ""))?
        .rows;
    let births = births();
    for row in &mut rows {
        if row.tid == pid {
            row.role = "main".into();
        }
        if let Some(birth) = births.iter().find(|b| b.tid == row.tid) {
            row.birth = Some(birth.order);
            row.creator = Some(birth.creator);
            row.born_in.clone_from(&birth.object);
        }
    }
    let ends = order.ends.iter().map(|e| e.role.word().to_owned()).collect();
    Ok(ThreadTable { ends, pid, before: rows, after: Vec::new() })
}

/// Threads that run otherwise than asked make the trial invalid; with the user's own vendor configuration, which may set
/// threads itself, it is only said.
pub(super) fn differences(order: &Order, driver: &str, rows: &[ThreadRow]) -> Vec<Warning> {
    let Measure::PingPong(p) = &order.spec.measure;
    let wanted = &order.ends[0].scheduling;
    let second = match &p.hand_off {
        HandOff::Thread { cpus } => cpus.as_ref(),
        HandOff::None => None,
    };
    let own_config = order.spec.driver.config.is_some();
    let severity = if own_config { Severity::Note } else { Severity::Invalid };
    let mut warnings = Vec::new();
    for row in rows {
        let cpus = if row.role == "processing" { second.or(wanted.cpus.as_ref()) } else { wanted.cpus.as_ref() };
        let mut say = |what: &str, asked: String, found: String| {
            let text =
                format!("thread {} ({}, role {}) has {what} {found}, asked was {asked}", row.name, driver, row.role);
            warnings.push(Warning::new("thread_not_as_asked", severity, text, "").at_end(order.ends[0].role.word()));
        };
        if let Some(policy) = wanted.policy.filter(|p| *p != row.policy) {
            say("policy", policy.to_string(), row.policy.to_string());
        }
        if let Some(cpus) = cpus.filter(|c| **c != row.cpus) {
            say("CPUs", cpus.to_string(), row.cpus.to_string());
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("recv*", "recvUC", true),
            ("recv*", "dq.user", false),
            ("tev", "tev", true),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abd", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
