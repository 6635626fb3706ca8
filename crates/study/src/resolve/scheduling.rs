//! Resolves scheduling policies and checks their parameters against the limits of the kernel.

use super::duration::positive;
use crate::error::Fault;
use crate::format::{ApplyChoice, PolicyKeys, RoleKeys, SchedulingKeys};
use crate::read::At;
use crate::source::Pos;
use tailbound_model::{Policy, RoleScheduling, Scheduling};

/// Shortest run time of the policy `deadline` that sched_setattr(2) accepts, ns.
const SHORTEST_RUNTIME: i64 = 1024;

/// Resolves the scheduling keys of a process. `at` is the position of the whole map. The CPUs of the process are
/// resolved with its end.
pub(crate) fn scheduling(keys: &SchedulingKeys, at: Pos) -> Result<Scheduling, Fault> {
    let mut scheduling = Scheduling::of_all(policy(keys.into(), at)?, None);
    scheduling.by_vendor = keys.apply == Some(ApplyChoice::Vendor);
    for (word, keys) in keys.roles() {
        scheduling.roles.insert(word.into(), role(word, keys)?);
    }
    if scheduling.policy.is_none() && scheduling.roles.is_empty() {
        return Err(Fault::new(at, "no policy is given").help("write for example `policy: fifo, priority: 80`"));
    }
    Ok(scheduling)
}

/// Resolves the scheduling keys of the threads of one role.
pub(super) fn role(word: &str, role: &At<RoleKeys>) -> Result<RoleScheduling, Fault> {
    let policy = policy((&role.value).into(), role.at)?;
    let cpus = role.value.cpus.as_ref().map(|c| (c.at, c.value.0.clone()));
    if let (Some((at, Some(_))), Some(Policy::Deadline { .. })) = (&cpus, policy) {
        return Err(deadline_pinned(*at));
    }
    let cpus = match cpus {
        Some((at, None)) => {
            let reason = format!("`cpus: any` is not possible for the threads of role {word}");
            return Err(Fault::new(at, reason).help("leave `cpus` out: the threads then have the CPUs of their end"));
        }
        cpus => cpus.and_then(|(_, list)| list),
    };
    if policy.is_none() && cpus.is_none() {
        return Err(Fault::new(role.at, format!("neither policy nor CPUs are given for the role {word}"))
            .help("`policy` or `cpus`"));
    }
    Ok(RoleScheduling { policy, cpus })
}

pub(super) fn deadline_pinned(at: Pos) -> Fault {
    let reason = "a thread of the policy `deadline` cannot be pinned: the kernel refuses it with EPERM unless it may run \
                  on every CPU of its root domain";
    Fault::new(at, reason).help("write `cpus: any`, or make an exclusive cpuset and start Tailbound in it")
}

/// Resolves the scheduling policy, if the keys name a policy. `at` is the position of the whole map.
fn policy(keys: PolicyKeys<'_>, at: Pos) -> Result<Option<Policy>, Fault> {
    let Some(policy) = keys.policy.map(|p| p.value.0) else {
        let stray = [
            ("priority", keys.priority.map(|v| v.at)),
            ("nice", keys.nice.map(|v| v.at)),
            ("runtime", keys.runtime.map(|v| v.at)),
            ("deadline", keys.deadline.map(|v| v.at)),
            ("period", keys.period.map(|v| v.at)),
        ];
        return match stray.into_iter().find_map(|(key, at)| Some((key, at?))) {
            None => Ok(None),
            Some((key, at)) => {
                let help = "add `policy:`, one of other batch idle fifo rr deadline";
                Err(Fault::new(at, format!("`{key}` is given without a policy")).help(help))
            }
        };
    };
    with_parameters(keys, policy, at).map(Some)
}

/// Resolves the given scheduling policy with the parameters that the keys give.
fn with_parameters(keys: PolicyKeys<'_>, policy: Policy, at: Pos) -> Result<Policy, Fault> {
    use Policy::{Batch, Deadline, Fifo, Idle, Other, Rr};
    let word = policy.word();
    let is_deadline = matches!(policy, Deadline { .. });
    let given = [
        ("priority", keys.priority.map(|v| v.at), matches!(policy, Fifo { .. } | Rr { .. }), "`fifo` and `rr` have"),
        ("nice", keys.nice.map(|v| v.at), matches!(policy, Other { .. } | Batch { .. }), "`other` and `batch` have"),
        ("runtime", keys.runtime.map(|v| v.at), is_deadline, "`deadline` has"),
        ("deadline", keys.deadline.map(|v| v.at), is_deadline, "`deadline` has"),
        ("period", keys.period.map(|v| v.at), is_deadline, "`deadline` has"),
    ];
    for (key, given_at, belongs, owners) in given {
        if let (Some(given_at), false) = (given_at, belongs) {
            let reason = format!("the policy `{word}` has no {key}");
            return Err(Fault::new(given_at, reason).help(format!("remove it; only {owners} one")));
        }
    }
    let nice = || match keys.nice {
        Some(nice) if !(-20..=19).contains(&nice.value) => {
            let reason = format!("a nice value of {} does not exist", nice.value);
            Err(Fault::new(nice.at, reason).help("-20 (favoured) to 19"))
        }
        nice => Ok(nice.map_or(0, |n| n.value)),
    };
    let priority = || match keys.priority {
        None => Err(Fault::new(at, format!("the policy `{word}` needs a priority")).help("add `priority:`, 1 to 98")),
        Some(p) if !(1..=99).contains(&p.value) => {
            Err(Fault::new(p.at, format!("priority {} does not exist", p.value))
                .help("write 1 to 98; 98 is the highest allowed priority"))
        }
        Some(p) if p.value == 99 => {
            let reason = "priority 99 is reserved for Tailbound's guard, which ends processes that run too long";
            Err(Fault::new(p.at, reason).help("write 1 to 98; 98 is the highest allowed priority"))
        }
        Some(p) => Ok(p.value),
    };
    match policy {
        Other { .. } => Ok(Other { nice: nice()? }),
        Batch { .. } => Ok(Batch { nice: nice()? }),
        Idle => Ok(Idle),
        Fifo { .. } => Ok(Fifo { priority: priority()? }),
        Rr { .. } => Ok(Rr { priority: priority()? }),
        Deadline { .. } => deadline(keys, at),
    }
}

fn deadline(keys: PolicyKeys<'_>, at: Pos) -> Result<Policy, Fault> {
    let missing = |key: &str| {
        let help = "write for example `runtime: 100 us, deadline: 500 us, period: 1 ms`";
        Fault::new(at, format!("the policy `deadline` needs a {key}")).help(help)
    };
    let runtime = positive(keys.runtime, "a run time")?.ok_or_else(|| missing("runtime"))?;
    let deadline = positive(keys.deadline, "a deadline")?.ok_or_else(|| missing("deadline"))?;
    let period = positive(keys.period, "a period")?.ok_or_else(|| missing("period"))?;
    let kernel = "the kernel requires 1024 ns <= runtime <= deadline <= period (sched(7))";
    if runtime.0 < SHORTEST_RUNTIME {
        let place = keys.runtime.map_or(at, |r| r.at);
        return Err(Fault::new(place, format!("a run time of {runtime} is too short")).help(kernel));
    }
    if runtime > deadline {
        let place = keys.runtime.map_or(at, |r| r.at);
        return Err(Fault::new(place, format!("the run time {runtime} is longer than the deadline")).help(kernel));
    }
    if deadline > period {
        let place = keys.deadline.map_or(at, |d| d.at);
        return Err(Fault::new(place, format!("the deadline {deadline} lies after the period")).help(kernel));
    }
    Ok(Policy::Deadline { runtime_ns: runtime.0 as u64, deadline_ns: deadline.0 as u64, period_ns: period.0 as u64 })
}
