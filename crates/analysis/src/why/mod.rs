//! Finds why the worst messages were late: the leg whose time exceeds its own median most, and what the threads that
//! carried the message did in this time, from context switches.
//!
//! Input: the worst messages of each condition, thread tables, and context switches of the record. Output: a cause for
//! each message whose cause the context switches show. The levels that the study requested are never used.

mod judge;
mod leg;
mod timeline;
mod walk;
mod words;

use crate::clocks;
use crate::why::judge::Judge;
use crate::why::leg::Leg;
use std::collections::BTreeMap;
use tailbound_document::{CAUSES_EXPLAINED, ConditionReport, Explained, Message, Report};
use tailbound_model::{SwitchScope, Switches};
use tailbound_record::Record;

/// Adds causes of the lateness to the worst messages of each condition, if context switches were recorded.
pub(crate) fn explain(record: &Record, report: &mut Report) {
    let mut conditions = std::mem::take(&mut report.conditions);
    for condition in &mut conditions {
        let mut trials: BTreeMap<usize, Option<Seen>> = BTreeMap::new();
        let mut worst = std::mem::take(&mut condition.worst);
        for message in &mut worst {
            let seen = trials.entry(message.trial).or_insert_with(|| seen(record, message.trial));
            // Threads of another kernel have other ids, and their events have times of another clock.
            let only = clocks::apart_in(record, message.trial, "pong").then_some(clocks::OWN);
            if let (Some(seen), Some(leg)) = (seen, Leg::longest(condition, message)) {
                let seen = seen.as_deref().map_err(String::as_str);
                message.cause = Some(Judge::new(report, message, &leg, seen, only).cause());
            }
        }
        condition.explained = total(condition, &worst[..worst.len().min(CAUSES_EXPLAINED)]);
        condition.worst = worst;
    }
    report.conditions = conditions;
}

/// Context switches that the agents of a trial recorded, or the reason why they cannot be used.
type Seen = Result<Vec<Switches>, String>;

/// Reads the context switches of a trial; `None` if no context switches were recorded.
fn seen(record: &Record, trial: usize) -> Option<Seen> {
    let mut seen: Vec<Switches> = match record.switches(trial).into_iter().collect() {
        Ok(seen) => seen,
        Err(e) => return Some(Err(e.to_string())),
    };
    if clocks::apart_in(record, trial, "pong") {
        seen.retain(|s| s.ends.iter().any(|end| end == clocks::OWN));
    }
    if seen.iter().all(|s| s.scope == SwitchScope::Off) {
        return None;
    }
    let refused = seen.iter().find_map(|s| match &s.scope {
        SwitchScope::Nothing(why) => Some(format!("context switches could not be recorded: {why}")),
        _ => None,
    });
    Some(refused.map_or(Ok(seen), Err))
}

fn total(condition: &ConditionReport, worst: &[Message]) -> Option<Explained> {
    let whole = condition.from_intended.as_ref().or(condition.round_trip.as_ref())?;
    let median = whole.quantile(0.5)?.value_ns()?;
    worst.iter().find(|m| m.cause.is_some())?;
    let mut total = Explained { excess_ns: 0, explained_ns: 0 };
    for message in worst {
        let excess = message.from_intended_ns.or(message.round_trip_ns)?.saturating_sub(median).max(0);
        total.excess_ns += excess;
        total.explained_ns += message.cause.as_ref().map_or(0, |c| c.explained_ns).min(excess);
    }
    (total.excess_ns > 0).then_some(total)
}
