//! Policy and its parameters, with the limits of the kernel.

use super::length::positive;
use crate::error::Fault;
use crate::format::{ApplyChoice, PolicyChoice, RoleKeys, SchedulingKeys};
use crate::read::At;
use crate::source::Pos;
use tailbound_model::{Policy, RoleScheduling, Scheduling};

/// Shortest run time that sched_setattr(2) takes, ns.
const SHORTEST_RUNTIME: i64 = 1024;

/// What the keys ask for, all threads first; `at` is the place of the whole map. CPUs of all threads are given elsewhere.
pub(crate) fn scheduling(keys: &SchedulingKeys, at: Pos) -> Result<Scheduling, Fault> {
    let mut scheduling = Scheduling::of_all(policy(&keys.all(), at)?, None);
    scheduling.by_vendor = keys.apply == Some(ApplyChoice::Vendor);
    for (word, keys) in keys.roles() {
        scheduling.roles.insert(word.into(), role(word, keys)?);
    }
    if scheduling.policy.is_none() && scheduling.roles.is_empty() {
        return Err(Fault::new(at, "no policy is given").help("for example `policy: fifo, priority: 80`"));
    }
    Ok(scheduling)
}

/// What is asked for threads of one kind.
pub(super) fn role(word: &str, role: &At<RoleKeys>) -> Result<RoleScheduling, Fault> {
    let policy = policy(&role.value, role.at)?;
    let cpus = role.value.cpus.as_ref().map(|c| (c.at, c.value.0.clone()));
    if let (Some((at, Some(_))), Some(Policy::Deadline { .. })) = (&cpus, policy) {
        return Err(deadline_pinned(*at));
    }
    let cpus = match cpus {
        Some((at, None)) => {
            let reason = format!("`any` is not possible for the threads of role {word}");
            return Err(Fault::new(at, reason).help("leave `cpus` out: they then have the CPUs of their end"));
        }
        cpus => cpus.and_then(|(_, list)| list),
    };
    if policy.is_none() && cpus.is_none() {
        return Err(Fault::new(role.at, format!("nothing is given for the role {word}")).help("`policy` or `cpus`"));
    }
    Ok(RoleScheduling { policy, cpus })
}

pub(super) fn deadline_pinned(at: Pos) -> Fault {
    let reason = "a thread of the policy `deadline` cannot be pinned: the kernel refuses it with EPERM unless it may run \
                  on every CPU of its root domain";
    Fault::new(at, reason).help("write `cpus: any`, or make an exclusive cpuset and start Tailbound in it")
}

/// The policy that the keys ask for, if any; `at` is the place of the whole map.
fn policy(keys: &RoleKeys, at: Pos) -> Result<Option<Policy>, Fault> {
    let Some(choice) = keys.policy.as_ref().map(|p| p.value) else {
        let stray = [
            ("priority", keys.priority.as_ref().map(|v| v.at)),
            ("nice", keys.nice.as_ref().map(|v| v.at)),
            ("runtime", keys.runtime.as_ref().map(|v| v.at)),
            ("deadline", keys.deadline.as_ref().map(|v| v.at)),
            ("period", keys.period.as_ref().map(|v| v.at)),
        ];
        return match stray.into_iter().find_map(|(key, at)| Some((key, at?))) {
            None => Ok(None),
            Some((key, at)) => {
                let help = "add `policy:`, one of other batch idle fifo rr deadline";
                Err(Fault::new(at, format!("`{key}` is given without a policy")).help(help))
            }
        };
    };
    given(keys, choice, at).map(Some)
}

fn given(keys: &RoleKeys, choice: PolicyChoice, at: Pos) -> Result<Policy, Fault> {
    let word = match choice {
        PolicyChoice::Other => "other",
        PolicyChoice::Batch => "batch",
        PolicyChoice::Idle => "idle",
        PolicyChoice::Fifo => "fifo",
        PolicyChoice::Rr => "rr",
        PolicyChoice::Deadline => "deadline",
    };
    use PolicyChoice::{Batch, Deadline, Fifo, Idle, Other, Rr};
    let given = [
        ("priority", keys.priority.as_ref().map(|v| v.at), matches!(choice, Fifo | Rr), "`fifo` and `rr`"),
        ("nice", keys.nice.as_ref().map(|v| v.at), matches!(choice, Other | Batch), "`other` and `batch`"),
        ("runtime", keys.runtime.as_ref().map(|v| v.at), choice == Deadline, "`deadline`"),
        ("deadline", keys.deadline.as_ref().map(|v| v.at), choice == Deadline, "`deadline`"),
        ("period", keys.period.as_ref().map(|v| v.at), choice == Deadline, "`deadline`"),
    ];
    for (key, given_at, belongs, owners) in given {
        if let (Some(given_at), false) = (given_at, belongs) {
            let reason = format!("the policy `{word}` has no {key}");
            return Err(Fault::new(given_at, reason).help(format!("remove it; only {owners} {} one", have(owners))));
        }
    }
    let nice = || match &keys.nice {
        Some(nice) if !(-20..=19).contains(&nice.value) => {
            let reason = format!("a nice value of {} does not exist", nice.value);
            Err(Fault::new(nice.at, reason).help("-20 (favoured) to 19"))
        }
        nice => Ok(nice.as_ref().map_or(0, |n| n.value)),
    };
    let priority = || match &keys.priority {
        None => Err(Fault::new(at, format!("the policy `{word}` needs a priority")).help("add `priority:`, 1 to 98")),
        Some(p) if !(1..=99).contains(&p.value) => {
            Err(Fault::new(p.at, format!("priority {} does not exist", p.value))
                .help("1 to 98; 98 is the highest here"))
        }
        Some(p) if p.value == 99 => {
            let reason = "priority 99 is kept for the guard that ends what overstays";
            Err(Fault::new(p.at, reason).help("1 to 98; 98 is the highest here"))
        }
        Some(p) => Ok(p.value),
    };
    match choice {
        Other => Ok(Policy::Other { nice: nice()? }),
        Batch => Ok(Policy::Batch { nice: nice()? }),
        Idle => Ok(Policy::Idle),
        Fifo => Ok(Policy::Fifo { priority: priority()? }),
        Rr => Ok(Policy::Rr { priority: priority()? }),
        Deadline => deadline(keys, at),
    }
}

fn have(owners: &str) -> &'static str {
    if owners.contains(" and ") { "have" } else { "has" }
}

fn deadline(keys: &RoleKeys, at: Pos) -> Result<Policy, Fault> {
    let missing = |key: &str| {
        let help = "for example `runtime: 100 us, deadline: 500 us, period: 1 ms`";
        Fault::new(at, format!("the policy `deadline` needs a {key}")).help(help)
    };
    let runtime = positive(keys.runtime.as_ref(), "a run time")?.ok_or_else(|| missing("runtime"))?;
    let deadline = positive(keys.deadline.as_ref(), "a deadline")?.ok_or_else(|| missing("deadline"))?;
    let period = positive(keys.period.as_ref(), "a period")?.ok_or_else(|| missing("period"))?;
    let kernel = "the kernel wants 1024 ns <= runtime <= deadline <= period (sched(7))";
    if runtime.0 < SHORTEST_RUNTIME {
        let place = keys.runtime.as_ref().map_or(at, |r| r.at);
        return Err(Fault::new(place, format!("a run time of {runtime} is too short")).help(kernel));
    }
    if runtime > deadline {
        let place = keys.runtime.as_ref().map_or(at, |r| r.at);
        return Err(Fault::new(place, format!("the run time {runtime} is longer than the deadline")).help(kernel));
    }
    if deadline > period {
        let place = keys.deadline.as_ref().map_or(at, |d| d.at);
        return Err(Fault::new(place, format!("the deadline {deadline} lies after the period")).help(kernel));
    }
    Ok(Policy::Deadline { runtime_ns: runtime.0 as u64, deadline_ns: deadline.0 as u64, period_ns: period.0 as u64 })
}
