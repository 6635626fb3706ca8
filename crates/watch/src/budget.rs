//! Checks a recorded capture against the limits of a budget.
//!
//! Input: a capture and a [`Budget`]. Output: a [`BudgetReport`] with one check for each limit and topic. A limit of a quantile holds if the
//! whole 95 % interval lies below it, is broken if the whole interval lies above it, and is undecided otherwise. Samples without a lateness
//! (first transmission not seen, not all fragments seen, without a source timestamp, written before the capture, numbers that were not
//! seen) count as later than any limit at the upper end of the interval, and as earlier than any at the lower end. Whatever the capture
//! cannot have seen as a whole decides nothing.

use crate::topics::{CaptureRecord, Topic, topics, without_lateness};
use std::collections::BTreeMap;
use tailbound_document::number::{count, three_digits, time};
use tailbound_document::{BudgetCheck, BudgetOutcome, BudgetReport, WatchReport, WatchedWriter};
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
        Some(name) => {
            let is_it = |(shown, topic): &(&String, &Topic<'_>)| *shown == name || topic.on_wire == Some(name);
            Ok(vec![all.iter().find(is_it).ok_or_else(|| no_topic(name))?])
        }
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
        WireLimit::SamplesPerSecond(least) => {
            (format!("at least {}", three_digits(*least)), rate(report, topic, *least))
        }
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
    let unknown = report.topics.iter().filter(|topic| topic.shown().is_none()).flat_map(|topic| &topic.writers);
    let unknown = unknown.filter(|writer| writer.samples > 0 || without_lateness(writer) > 0).count() as u64;
    if check.outcome == BudgetOutcome::Holds && unknown > 0 {
        let writers = if unknown == 1 { "a writer".to_owned() } else { format!("{} writers", count(unknown)) };
        check.outcome = BudgetOutcome::Undecided;
        check.why = format!("{writers} without a known topic can be of this one: `watch --ask` learns the names");
    }
    check
}

/// Why no figure of this capture decides anything.
fn untrusted(report: &WatchReport) -> Option<String> {
    if report.from_file {
        return Some("it is not known how many packets the program missed that captured them".to_owned());
    }
    if report.is_partial {
        return Some("the capture did not read all samples: see its warnings".to_owned());
    }
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

/// Why a time above the fastest sample does not show that a limit holds.
const ABOVE_FASTEST: &str =
    "the writer has another clock: times are above its fastest sample, and how late that one was is not known";

/// Mark of an outcome whose interval is too narrow, as in budgets of records.
const TOO_NARROW: &str = "samples depend on each other, so the interval is too narrow";

/// Why the lateness of a topic decides nothing.
fn undecidable(topic: &Topic<'_>) -> Option<&'static str> {
    match topic.late_ns.iter().min() {
        None => Some("no sample has a lateness"),
        _ if topic.is_above_fastest => Some(ABOVE_FASTEST),
        Some(..0) => Some("samples were captured before the time at which their writer says that it wrote them"),
        Some(_) => None,
    }
}

/// The number of independent samples that those of a topic are worth for its quantile `value_ns`, and whether it can be smaller because they
/// depend on each other over too long a time. Writers of one topic can be late for one reason, so that together they are worth no more
/// than the one that is worth most.
fn worth(topic: &Topic<'_>, value_ns: i64) -> (u64, bool) {
    let (mut most, mut can_be_less) = (1, false);
    let mut from = 0;
    for end in &topic.ends {
        let mut exceeded = Exceedance::new();
        exceeded.push_all(&topic.late_ns[from..*end], value_ns);
        exceeded.end_sequence();
        from = *end;
        let effective = exceeded.effective();
        (most, can_be_less) = (most.max(effective.slots), can_be_less || effective.unresolved);
    }
    (most, can_be_less)
}

/// Checks a quantile of the lateness.
fn quantile(topic: &Topic<'_>, label: &str, most_ns: i64) -> Judged {
    let Ok(q) = label.parse::<Quantile>() else { return undecided(String::new(), format!("`{label}` is no quantile")) };
    let seen = topic.late_ns.len() as u64;
    let mut sorted = topic.late_ns.clone();
    sorted.sort_unstable();
    let at = |rank: u64| usize::try_from(rank).ok().and_then(|rank| sorted.get(rank.checked_sub(1)?)).copied();
    let Some(value_ns) = at(q.rank(seen.max(1))) else { return undecided(String::new(), "no sample has a lateness") };
    let value = time(value_ns as f64);
    if let Some(why) = undecidable(topic) {
        return undecided(value, why);
    }
    let needed = needs(q);
    if seen < needed {
        return undecided(value, format!("{label} needs {} samples; there are {}", count(needed), count(seen)));
    }
    let (effective, is_narrow) = worth(topic, value_ns);
    if effective < needed {
        let (seen, worth) = (count(seen), count(effective));
        return undecided(
            value,
            format!(
                "{label} needs {} independent samples; {seen} that depend on each other are worth {worth}",
                count(needed)
            ),
        );
    }
    let missing = topic.sum(without_lateness);
    let all = seen.saturating_add(missing);
    // The same dependence is assumed for samples without a lateness.
    let effective_of_all = (u128::from(effective) * u128::from(all) / u128::from(seen)) as u64;
    let Ok(ranks) = interval_ranks_of_dependent(all, effective_of_all.clamp(1, all), q) else {
        return undecided(value, format!("{label} needs more samples"));
    };
    // At the lower end, samples without a lateness are taken to be the earliest ones, at the upper end the latest.
    let (low_ns, high_ns) = (ranks.lower.checked_sub(missing).and_then(at), at(ranks.upper));
    let from = low_ns.map_or_else(|| "earlier than any sample seen".to_owned(), |ns| time(ns as f64));
    let to = high_ns.map_or_else(|| "later than any sample seen".to_owned(), |ns| time(ns as f64));
    let found = format!("{value} (95 %: {from} to {to})");
    let narrow = if is_narrow { TOO_NARROW.to_owned() } else { String::new() };
    match (low_ns, high_ns) {
        (Some(low_ns), _) if low_ns > most_ns => (BudgetOutcome::Broken, found, narrow),
        (_, Some(high_ns)) if high_ns <= most_ns => (BudgetOutcome::Holds, found, narrow),
        _ if missing > 0 => undecided(found, format!("{} samples have no lateness", count(missing))),
        _ => undecided(found, "the limit lies inside the 95 % interval: a decision needs more samples"),
    }
}

/// Checks the largest lateness of the samples of this capture.
fn max(topic: &Topic<'_>, most_ns: i64) -> Judged {
    let found = topic.late_ns.iter().max().map_or_else(String::new, |ns| time(*ns as f64));
    if let Some(why) = undecidable(topic) {
        return undecided(found, why);
    }
    match topic.sum(without_lateness) {
        _ if topic.late_ns.iter().any(|ns| *ns > most_ns) => (BudgetOutcome::Broken, found, String::new()),
        0 => (BudgetOutcome::Holds, found, "for these samples".to_owned()),
        missing => undecided(found, format!("{} samples have no lateness", count(missing))),
    }
}

/// Checks the samples that a reader asked for and never got. Without a limit, there may be none.
fn lost(topic: &Topic<'_>, limit: Option<f64>) -> Judged {
    let samples = topic.sum(|writer| writer.samples.saturating_add(writer.protocol.first_not_seen));
    let lost = topic.sum(|writer| writer.protocol.lost.saturating_add(writer.protocol.given_up)).min(samples);
    let (low, high) = share_interval(lost, samples);
    let found = format!("{} of {} (95 %: {} to {})", count(lost), count(samples), per_cent(low), per_cent(high));
    if limit.map_or(lost > 0, |most| low > most) {
        return (BudgetOutcome::Broken, found, String::new());
    }
    let is_reliable = |writer: &&WatchedWriter| {
        writer.qos.as_ref().is_some_and(|qos| qos.reliability == "reliable") && writer.protocol.acknowledgements > 0
    };
    if !topic.writers.iter().all(is_reliable) {
        return undecided(found, "losses are known only of reliable writers whose readers' acknowledgements pass here");
    }
    let open = topic.sum(|writer| writer.protocol.open);
    if open > 0 {
        return undecided(
            found,
            format!("{} were asked for within the last second and not acknowledged yet", count(open)),
        );
    }
    let of = "for readers whose acknowledgements pass here";
    match limit {
        None => (BudgetOutcome::Holds, found, of.to_owned()),
        Some(most) if high <= most => (BudgetOutcome::Holds, found, of.to_owned()),
        Some(_) => undecided(found, "the limit lies inside the 95 % interval: a decision needs more samples"),
    }
}

/// Checks the samples per second over the whole capture. A writer has sent up to one more than the capture shows: before its begin, or
/// after its end.
fn rate(report: &WatchReport, topic: &Topic<'_>, least: f64) -> Judged {
    if report.duration_ns <= 0 {
        return undecided(String::new(), "the length of the capture is not known");
    }
    let per_second = |samples: u64| samples as f64 / (report.duration_ns as f64 / 1e9);
    let samples = topic.sum(|writer| writer.samples.saturating_add(writer.protocol.first_not_seen));
    let (rate, most) = (per_second(samples), per_second(samples.saturating_add(topic.writers.len() as u64)));
    match rate >= least {
        true => (BudgetOutcome::Holds, three_digits(rate), "for these samples".to_owned()),
        false if most < least => (BudgetOutcome::Broken, three_digits(rate), String::new()),
        false => undecided(three_digits(rate), "a sample more would keep the limit: a decision needs a longer capture"),
    }
}
