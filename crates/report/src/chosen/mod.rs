//! Figures over a chosen range of every trial, beside those over the whole, and how many messages are above a limit.
//!
//! In: the passes over the messages of the range, and over all. Out: their part of the document, and tables in which
//! nobody can take the one for the other.

mod table;

pub(crate) use table::tables;

use crate::condition::{ConditionReport, LegRange, MetricReport};
use crate::metrics;
use crate::passes::{Figures, First, FirstPass, place};
use crate::series::is_between_ends;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{Condition, Metric, Nanos, RangeSpec, Severity, Warning};

/// Figures over the messages that were due within a range of each trial (stop-and-wait: whose sending began in it).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChosenReport {
    /// Its begin, after slot 0 was due.
    pub from_ns: i64,
    /// Its end, not included.
    pub to_ns: i64,
    /// Measured slots in it, of all used trials.
    pub messages: u64,
    /// Measured slots of the whole.
    pub of: u64,
    /// By metric, as over the whole; without histograms.
    pub metrics: BTreeMap<String, MetricReport>,
    /// Legs between two clocks, by metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leg_ranges: BTreeMap<String, LegRange>,
    /// Messages of the range above the study's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<AboveReport>,
}

/// Messages above a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AboveReport {
    /// The limit.
    pub limit_ns: i64,
    /// By metric; of a leg between two clocks at least `out_low` and at most `out_high` are above it.
    pub metrics: BTreeMap<String, AboveCount>,
}

/// How many of the messages with a value are above the limit. What was lost or never sent has no value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AboveCount {
    /// Above it.
    pub messages: u64,
    /// With a value.
    pub of: u64,
    /// The one over the other.
    pub share: f64,
}

/// The figures of a condition over a range; `of` are its messages over the whole.
pub(crate) fn of(
    (condition, range): (&Condition, RangeSpec),
    firsts: &[FirstPass],
    figures: &[Figures],
    of: u64,
    limit: Option<Nanos>,
) -> ChosenReport {
    let plain = |report: MetricReport| MetricReport { tail: None, histogram: Vec::new(), ..report };
    let given = metrics::metrics(condition, firsts, figures);
    let above = limit.map(|limit| above(limit, firsts, &|m| given.contains_key(&m)));
    let leg = |metric: Metric| {
        let LegRange { low, high } = metrics::range(metric, firsts, figures)?;
        Some((metric.key().to_owned(), LegRange { low: plain(low), high: plain(high) }))
    };
    ChosenReport {
        from_ns: range.from.0,
        to_ns: range.to.0,
        messages: firsts[0].tally.outcomes.iter().sum(),
        of,
        leg_ranges: Metric::ALL.into_iter().filter_map(leg).collect(),
        metrics: given.into_iter().map(|(m, report)| (m.key().to_owned(), plain(report))).collect(),
        above,
    }
}

/// Counts of messages above the limit, of metrics that `exact` says are there, and of legs between two clocks.
pub(crate) fn above(Nanos(limit_ns): Nanos, firsts: &[FirstPass], exact: &dyn Fn(Metric) -> bool) -> AboveReport {
    let mut metrics = BTreeMap::new();
    let mut add = |key: String, first: &First| {
        let of = first.distribution.answered();
        if of > 0 {
            let share = first.above as f64 / of as f64;
            metrics.insert(key, AboveCount { messages: first.above, of, share });
        }
    };
    for metric in Metric::ALL.into_iter().filter(|m| *m != Metric::HalfRoundTrip) {
        let Some((group, at)) = place(metric) else { continue };
        let read = &firsts[group as usize].metrics;
        let high = group.legs().iter().position(|m| *m == metric).and_then(|i| read.get(group.metrics().len() + i));
        match high {
            Some(high) if is_between_ends(metric) && !exact(metric) => {
                add(format!("{}_low", metric.key()), &read[at]);
                add(format!("{}_high", metric.key()), high);
            }
            _ if exact(metric) => add(metric.key().to_owned(), &read[at]),
            _ => {}
        }
    }
    AboveReport { limit_ns, metrics }
}

/// Trials that end before the range does.
pub(crate) fn beyond(report: &ConditionReport, range: RangeSpec, ends_ns: &BTreeMap<usize, i64>) -> Option<Warning> {
    let shortest = ends_ns.values().copied().min()?;
    if shortest >= range.to.0 {
        return None;
    }
    let short = ends_ns.values().filter(|end| **end < range.to.0).count();
    let text = format!(
        "{}: the chosen range is {} to {}, and {short} of {} trials end before it does, the first after {}: its figures are \
         over what there is",
        report.name,
        range.from,
        range.to,
        ends_ns.len(),
        Nanos(shortest),
    );
    Some(Warning::new("range_beyond_end", Severity::Warning, text, "Choose a range that lies within every trial."))
}
