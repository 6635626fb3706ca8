//! Policy and its parameters, with the limits of the kernel.

use super::length::positive;
use crate::error::Fault;
use crate::format::{PolicyChoice, SchedulingKeys};
use crate::source::Pos;
use tailbound_model::Policy;

/// Shortest run time that sched_setattr(2) takes, ns.
const SHORTEST_RUNTIME: i64 = 1024;

/// The policy that the keys ask for; `at` is the place of the whole map.
pub(crate) fn policy(keys: &SchedulingKeys, at: Pos) -> Result<Policy, Fault> {
    let word = match keys.policy {
        PolicyChoice::Other => "other",
        PolicyChoice::Batch => "batch",
        PolicyChoice::Idle => "idle",
        PolicyChoice::Fifo => "fifo",
        PolicyChoice::Rr => "rr",
        PolicyChoice::Deadline => "deadline",
    };
    use PolicyChoice::{Batch, Deadline, Fifo, Idle, Other, Rr};
    let given = [
        ("priority", keys.priority.as_ref().map(|v| v.at), matches!(keys.policy, Fifo | Rr), "`fifo` and `rr`"),
        ("nice", keys.nice.as_ref().map(|v| v.at), matches!(keys.policy, Other | Batch), "`other` and `batch`"),
        ("runtime", keys.runtime.as_ref().map(|v| v.at), keys.policy == Deadline, "`deadline`"),
        ("deadline", keys.deadline.as_ref().map(|v| v.at), keys.policy == Deadline, "`deadline`"),
        ("period", keys.period.as_ref().map(|v| v.at), keys.policy == Deadline, "`deadline`"),
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
        None => Err(Fault::new(at, format!("the policy `{word}` needs a priority")).help("add `priority:`, 1 to 99")),
        Some(p) if !(1..=99).contains(&p.value) => {
            Err(Fault::new(p.at, format!("priority {} does not exist", p.value)).help("1 to 99; 99 is the highest"))
        }
        Some(p) => Ok(p.value),
    };
    match keys.policy {
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

fn deadline(keys: &SchedulingKeys, at: Pos) -> Result<Policy, Fault> {
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
