//! Computes figures over a chosen time range of every trial, and counts the messages above the latency limit of the
//! study.
//!
//! Input: the results of the passes over the messages of the time range, and over all messages. Output: the parts of
//! the report document about the time range and the latency limit.

use crate::metrics;
use crate::passes::{Figures, First, FirstPass, place};
use crate::series::is_between_ends;
use std::collections::BTreeMap;
use tailbound_document::{AboveCount, AboveReport, ChosenReport, ConditionReport, LegRange, MetricReport};
use tailbound_model::{Condition, Metric, Nanos, RangeSpec, Severity, Warning};

/// Computes the figures of a condition over a time range of each trial; `of` is the number of messages in the whole
/// trials.
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

/// Counts the messages above the latency limit: for each metric for which the function `exact` returns true, and for
/// legs between two clocks.
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

/// Warning about trials that end before the chosen time range ends.
pub(crate) fn beyond(report: &ConditionReport, range: RangeSpec, ends_ns: &BTreeMap<usize, i64>) -> Option<Warning> {
    let shortest = ends_ns.values().copied().min()?;
    if shortest >= range.to.0 {
        return None;
    }
    let short = ends_ns.values().filter(|end| **end < range.to.0).count();
    let text = format!(
        "{}: the chosen range is {} to {}, and {short} of {} trials end before the range ends, the first after {}: \
         the figures of the range cover these trials only until they end",
        report.name,
        range.from,
        range.to,
        ends_ns.len(),
        Nanos(shortest),
    );
    let remedy = "Choose a time range that ends before the shortest trial ends.";
    Some(Warning::new("range_beyond_end", Severity::Warning, text, remedy))
}
