//! Checks a recorded capture against the limits of a budget.
//!
//! Input: a capture and a [`Budget`]. Output: a [`BudgetReport`] with one check for each limit and topic. A limit of a quantile holds if the
//! whole 95 % interval lies below it, is broken if the whole interval lies above it, and is undecided otherwise. Samples without a lateness
//! (first transmission not seen, not all fragments seen, without a source timestamp, numbers that were not seen) count as later than any
//! limit at the upper end of the interval, and not at all at the lower end.

use crate::topics::{CaptureRecord, Topic, topics};
use std::collections::BTreeMap;
use tailbound_document::number::{count, three_digits, time};
use tailbound_document::{BudgetCheck, BudgetOutcome, BudgetReport, WatchReport};
use tailbound_model::{AtMost, Budget, LimitSet, Nanos, ON_WIRE, WireLimit};
use tailbound_stats::{Exceedance, Quantile, interval_ranks_of_dependent, needs, share_interval};
use thiserror::Error;

/// Why a budget does not fit a capture.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BudgetMisfit {
    /// The budget limits what only a record of a study has.
    #[error("the budget limits `{0}`, which a capture does not have")]
    OfStudies(String),
    /// `where` names something else than the topic.
    #[error("`where` names `{0}`: the limits of a capture are selected by `topic` alone")]
    Level(String),
    /// No topic with samples has the name.
    #[error("the capture has no samples of the topic `{name}`")]
    NoTopic {
        /// The name in the budget.
        name: String,
        /// Names of the topics with samples.
        known: Vec<String>,
    },
}

impl BudgetMisfit {
    /// What to do.
    pub fn help(&self) -> String {
        match self {
            BudgetMisfit::OfStudies(_) => {
                format!("limit `{ON_WIRE}`, for example `{ON_WIRE}: {{ p99: 5 ms, lost: none }}`")
            }
            BudgetMisfit::Level(_) => "for example `where: { topic: /scan }`".to_owned(),
            BudgetMisfit::NoTopic { known, .. } if known.is_empty() => {
                "the capture has no topic with samples and a name".to_owned()
            }
            BudgetMisfit::NoTopic { known, .. } => format!("topics with samples: {}", known.join(", ")),
        }
    }
}

/// Checks a capture; `dir` is the name of its directory for the report.
///
/// # Errors
/// The budget limits something that a capture does not have, or names a topic that it does not have.
pub fn judge(record: &CaptureRecord, budget: &Budget, dir: &str) -> Result<BudgetReport, BudgetMisfit> {
    if budget.baseline.is_some() {
        return Err(BudgetMisfit::OfStudies("baseline".to_owned()));
    }
    let all = topics(record);
    let mut checks = Vec::new();
    for set in &budget.limits {
        for (name, topic) in selected(set, &all)? {
            checks.extend(set.on_wire.iter().map(|limit| check(&record.report, name, topic, limit)));
        }
    }
    Ok(BudgetReport { name: budget.name.clone(), record: dir.to_owned(), checks })
}

/// The topics to which limits apply.
fn selected<'a, 't>(
    set: &LimitSet,
    all: &'t BTreeMap<String, Topic<'a>>,
) -> Result<Vec<(&'t String, &'t Topic<'a>)>, BudgetMisfit> {
    let of_studies = |key: &str| Err(BudgetMisfit::OfStudies(key.to_owned()));
    match set {
        LimitSet { limits, .. } if !limits.is_empty() => return of_studies(limits[0].metric.key()),
        LimitSet { throughput, .. } if !throughput.is_empty() => return of_studies(tailbound_model::THROUGHPUT),
        LimitSet { misses: Some(_), .. } => return of_studies(tailbound_model::MISSES),
        _ => {}
    }
    if let Some(other) = set.levels.keys().find(|key| *key != "topic") {
        return Err(BudgetMisfit::Level(other.clone()));
    }
    let no_topic = |name: &str| BudgetMisfit::NoTopic { name: name.to_owned(), known: all.keys().cloned().collect() };
    match set.levels.get("topic") {
        Some(name) => Ok(vec![all.get_key_value(name).ok_or_else(|| no_topic(name))?]),
        None if all.is_empty() => Err(no_topic("")),
        None => Ok(all.iter().collect()),
    }
}

/// What a check found: the outcome, the figure in words, and why.
type Judged = (BudgetOutcome, String, String);

fn check(report: &WatchReport, name: &str, topic: &Topic<'_>, limit: &WireLimit) -> BudgetCheck {
    let (words, (outcome, found, why)) = match limit {
        WireLimit::AtMost(AtMost::Quantile(label, Nanos(most_ns))) => {
            (at_most(*most_ns), quantile(topic, label, *most_ns))
        }
        WireLimit::AtMost(AtMost::Max(Nanos(most_ns)) | AtMost::Mean(Nanos(most_ns))) => {
            (at_most(*most_ns), max(topic, *most_ns))
        }
        WireLimit::AtMost(AtMost::Lost(None)) => ("none".to_owned(), lost(topic, None)),
        WireLimit::AtMost(AtMost::Lost(Some(share))) => {
            (format!("at most {}", per_cent(*share)), lost(topic, Some(*share)))
        }
        WireLimit::SamplesPerSecond(least) => (format!("at least {}", three_digits(*least)), rate(topic, *least)),
    };
    let mut check = BudgetCheck {
        condition: name.to_owned(),
        what: format!("{ON_WIRE} {}", limit.key()),
        limit: words,
        found,
        outcome,
        why,
    };
    if let Some(why) = untrusted(report) {
        (check.outcome, check.why) = (BudgetOutcome::Undecided, why);
    }
    check
}

/// Why no figure of this capture decides anything.
fn untrusted(report: &WatchReport) -> Option<String> {
    let missed = (report.not_copied > 0).then(|| format!("the capture missed {} packets", count(report.not_copied)));
    let step = report.clock_step_ns.map(|ns| format!("the clock was set by up to {} meanwhile", time(ns as f64)));
    missed.or(step)
}

fn at_most(ns: i64) -> String {
    format!("at most {}", time(ns as f64))
}

fn per_cent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

fn undecided(found: String, why: impl Into<String>) -> Judged {
    (BudgetOutcome::Undecided, found, why.into())
}

/// Number of samples that have no lateness although they were written, as far as that is known.
fn without_lateness(topic: &Topic<'_>) -> u64 {
    topic.sum(|writer| {
        let protocol = &writer.protocol;
        writer.without_time + protocol.first_not_seen + protocol.unfinished + protocol.numbers_not_seen
    })
}

/// Why a time above the fastest sample does not show that a limit holds.
const ABOVE_FASTEST: &str =
    "the writer has another clock: times are above its fastest sample, and how late that one was is not known";

/// Checks a quantile of the lateness.
fn quantile(topic: &Topic<'_>, label: &str, most_ns: i64) -> Judged {
    let Ok(q) = label.parse::<Quantile>() else { return undecided(String::new(), format!("`{label}` is no quantile")) };
    let seen = topic.late_ns.len() as u64;
    if seen == 0 {
        return undecided(String::new(), "no sample has a source timestamp");
    }
    let mut sorted = topic.late_ns.clone();
    sorted.sort_unstable();
    let at = |rank: u64| usize::try_from(rank).ok().and_then(|rank| sorted.get(rank.max(1) - 1)).copied();
    let value_ns = at(q.rank(seen)).unwrap_or(i64::MAX);
    let mut exceeded = Exceedance::new();
    let mut from = 0;
    for end in &topic.ends {
        exceeded.push_all(&topic.late_ns[from..*end], value_ns);
        exceeded.end_sequence();
        from = *end;
    }
    let effective = exceeded.effective().slots.clamp(1, seen);
    let missing = without_lateness(topic);
    // The same dependence is assumed for samples without a lateness.
    let effective_of_all = (u128::from(effective) * u128::from(seen + missing) / u128::from(seen)) as u64;
    let ranks = interval_ranks_of_dependent(seen, effective, q);
    let (Ok(low), Ok(high)) = (ranks, interval_ranks_of_dependent(seen + missing, effective_of_all, q)) else {
        let found = time(value_ns as f64);
        return undecided(
            found,
            format!(
                "{label} needs {} independent samples, and {} are worth {}",
                count(needs(q)),
                count(seen),
                count(effective)
            ),
        );
    };
    let (low_ns, high_ns) = (at(low.lower).unwrap_or(i64::MAX), at(high.upper));
    let to = high_ns.map_or_else(|| "later than any sample seen".to_owned(), |ns| time(ns as f64));
    let found = format!("{} (95 %: {} to {to})", time(value_ns as f64), time(low_ns as f64));
    if low_ns > most_ns {
        return (BudgetOutcome::Broken, found, String::new());
    }
    if topic.is_above_fastest {
        return undecided(found, ABOVE_FASTEST);
    }
    match high_ns {
        Some(high_ns) if high_ns <= most_ns => (BudgetOutcome::Holds, found, String::new()),
        None => undecided(found, format!("{} samples have no lateness", count(missing))),
        Some(_) => undecided(found, "the limit lies inside the 95 % interval: a decision needs more samples"),
    }
}

/// Checks the largest lateness of the samples of this capture.
fn max(topic: &Topic<'_>, most_ns: i64) -> Judged {
    let Some(max_ns) = topic.late_ns.iter().copied().max() else {
        return undecided(String::new(), "no sample has a source timestamp");
    };
    let found = time(max_ns as f64);
    match without_lateness(topic) {
        _ if max_ns > most_ns => (BudgetOutcome::Broken, found, String::new()),
        _ if topic.is_above_fastest => undecided(found, ABOVE_FASTEST),
        0 => (BudgetOutcome::Holds, found, "for these samples".to_owned()),
        missing => undecided(found, format!("{} samples have no lateness", count(missing))),
    }
}

/// Checks the samples that a reader asked for and never got. Without a limit, there may be none.
fn lost(topic: &Topic<'_>, limit: Option<f64>) -> Judged {
    let samples = topic.sum(|writer| writer.samples + writer.protocol.first_not_seen);
    let lost = topic.sum(|writer| writer.protocol.lost + writer.protocol.given_up).min(samples);
    let (low, high) = share_interval(lost, samples);
    let found = format!("{} of {} (95 %: {} to {})", count(lost), count(samples), per_cent(low), per_cent(high));
    if limit.map_or(lost > 0, |most| low > most) {
        return (BudgetOutcome::Broken, found, String::new());
    }
    let is_reliable = |writer: &&tailbound_document::WatchedWriter| {
        writer.qos.as_ref().is_some_and(|qos| qos.reliability == "reliable") && writer.protocol.acknowledgements > 0
    };
    if !topic.writers.iter().all(is_reliable) {
        return undecided(found, "losses are known only of reliable writers whose readers' acknowledgements pass here");
    }
    match limit {
        None => (BudgetOutcome::Holds, found, "for these samples".to_owned()),
        Some(most) if high <= most => (BudgetOutcome::Holds, found, String::new()),
        Some(_) => undecided(found, "the limit lies inside the 95 % interval: a decision needs more samples"),
    }
}

/// Checks the samples per second in this capture.
fn rate(topic: &Topic<'_>, least: f64) -> Judged {
    match topic.rate_hz() {
        None => undecided(String::new(), "the rate is not known: a writer sent a single sample"),
        Some(rate) if rate >= least => (BudgetOutcome::Holds, three_digits(rate), "for these samples".to_owned()),
        Some(rate) => (BudgetOutcome::Broken, three_digits(rate), String::new()),
    }
}
