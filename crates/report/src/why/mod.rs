//! Why the worst messages were late: the part of the way that took longest beyond its own median, and what the threads
//! that carried the message did meanwhile, from context switches.
//!
//! In: the worst messages of each condition, thread tables, context switches of the record. Out: a cause for each, as far
//! as one was seen. Nothing is taken from what the study asked for.

mod judge;
mod timeline;
mod walk;
mod words;

use crate::clocks;
use crate::condition::{ConditionReport, Message};
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use judge::{Judge, Leg};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{SwitchScope, Switches};
use tailbound_record::Record;

/// How many of the worst messages sentences are about; the document has more.
pub(crate) const TOLD: usize = 10;

/// Why one message was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// The part of the way that took longest beyond its own median: `send_lateness`, `out`, `turnaround` or `back`.
    pub leg: String,
    /// What that part took beyond its median.
    pub excess_ns: i64,
    /// How much of that the cause accounts for.
    pub explained_ns: i64,
    /// What it was.
    pub kind: CauseKind,
    /// The thread that was held up, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The end that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The CPU that it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What ran there instead, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// The same in a sentence.
    pub text: String,
}

/// Kinds of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// A thread was ready to run and did not get its CPU.
    Waited,
    /// The whole process was stopped.
    Stopped,
    /// A thread slept within a call into the driver.
    Blocked,
    /// Nothing that was seen accounts for it.
    Unexplained,
}

/// What the ten worst messages took beyond the medians.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// All of it.
    pub excess_ns: i64,
    /// As much as has a cause that was seen.
    pub explained_ns: i64,
}

/// Gives the worst messages of each condition their causes, where context switches were watched.
pub(crate) fn explain(record: &Record, report: &mut Report) {
    let mut conditions = std::mem::take(&mut report.conditions);
    for condition in &mut conditions {
        let mut trials: BTreeMap<usize, Option<Seen>> = BTreeMap::new();
        let mut worst = std::mem::take(&mut condition.worst);
        for message in &mut worst {
            let seen = trials.entry(message.trial).or_insert_with(|| seen(record, message.trial));
            // Threads of another kernel have other numbers, and their events are told in another clock.
            let only = clocks::apart_in(record, message.trial, "pong").then_some(clocks::OWN);
            if let (Some(seen), Some(leg)) = (seen, Leg::longest(condition, message)) {
                let seen = seen.as_deref().map_err(String::as_str);
                message.cause = Some(Judge::new(report, message, &leg, seen, only).cause());
            }
        }
        condition.explained = total(condition, &worst[..worst.len().min(TOLD)]);
        condition.worst = worst;
    }
    report.conditions = conditions;
}

/// What the agents of a trial saw, or why that cannot be used.
type Seen = Result<Vec<Switches>, String>;

/// `None` when context switches were not watched.
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
        SwitchScope::Nothing(why) => Some(format!("context switches could not be watched: {why}")),
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

/// The condition with the worst message of all, where causes were looked for.
pub(crate) fn told(report: &Report) -> Option<&ConditionReport> {
    let latest = |c: &&ConditionReport| c.worst.first().and_then(|m| m.from_intended_ns.or(m.round_trip_ns));
    report.conditions.iter().filter(|c| c.explained.is_some()).max_by_key(latest)
}

/// What the worst messages of that condition come to.
pub(crate) fn findings(report: &Report) -> Option<Finding> {
    let condition = told(report)?;
    let text = words::total(condition)?;
    Some(Finding { evidence: "legs".into(), ..finding(FindingLevel::Caution, "causes", text, &[condition.id]) })
}

/// The worst messages of that condition, one sentence each, the worst first.
pub(crate) fn sentences(report: &Report) -> impl Iterator<Item = &str> {
    told(report)
        .into_iter()
        .flat_map(|c| c.worst.iter().take(TOLD))
        .filter_map(|m| Some(m.cause.as_ref()?.text.as_str()))
}
