//! Estimates the tail that would remain without one of the causes.
//!
//! The time that the ledgers ascribe to the cause is subtracted from each message whose time from due to answered
//! overlaps with it. Messages of incidents without a ledger keep their time, and lost messages stay lost. The memory grows
//! with the number of messages in incidents, up to a limit for each trial.

use crate::why::sums::Sum;
use crate::why::{Explained, TrialFacts};
use std::collections::BTreeMap;
use std::ops::Range;
use tailbound_document::{CauseShare, ConditionReport, QuantileReport, RemainingQuantile, WithoutCause};
use tailbound_model::Metric;
use tailbound_record::TrialIncidents;
use tailbound_stats::{Histogram, Quantile, needs};

/// Quantiles that are estimated, if there are enough messages for them.
const QUANTILES: [Quantile; 2] = [Quantile::P99, Quantile::P99_9];
/// Smallest share of the excess that a cause must have, so that the tail without this cause is estimated.
const LEAST_SHARE: f64 = 0.01;
/// Largest number of causes of a condition whose removal is estimated.
const MOST_CAUSES: usize = 6;
/// Largest number of messages of a trial whose times are kept: 4 MB. The worst incidents come first.
const MOST_MESSAGES: u64 = 250_000;
/// Largest number of messages before and after an incident that are on time and can overlap with it.
const MOST_BESIDE: u64 = 10_000;

/// Rows of the messages that can overlap with the incidents of a trial, apart from each other and in rising order.
/// `period_ns` is the time from one slot to the next; without a schedule, messages do not overlap.
pub(crate) fn rows(found: &TrialIncidents, period_ns: Option<i64>) -> Vec<Range<u64>> {
    // A message that is on time takes at most as long as the limit for late messages.
    let beside = period_ns.map_or(0, |period| found.rule.limit_ns.max(0) as u64 / period.max(1) as u64 + 1);
    let beside = beside.min(MOST_BESIDE);
    let mut worst: Vec<_> = found.found.worst.iter().filter(|i| i.excess_ns > 0).collect();
    worst.sort_by_key(|incident| std::cmp::Reverse(incident.rank()));
    let mut left = MOST_MESSAGES;
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for incident in worst {
        let range = incident.rows.0.saturating_sub(beside)..incident.rows.1 + 1 + beside;
        if range.end - range.start <= left {
            left -= range.end - range.start;
            ranges.push(range);
        }
    }
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match apart.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push(range),
        }
    }
    apart
}

/// The tail of a condition without each of its causes that explain delays, the cause with the largest share first.
pub(crate) fn without(
    condition: &ConditionReport,
    trials: &[&TrialFacts],
    incidents: &[Explained],
) -> Vec<WithoutCause> {
    let named: Vec<&CauseShare> =
        condition.causes.iter().filter(|c| c.explains && c.share >= LEAST_SHARE).take(MOST_CAUSES).collect();
    if named.is_empty() {
        return Vec::new();
    }
    let measured = Measured::of(condition, trials);
    let facts = |id: usize| trials.iter().find(|t| t.trial == id).copied();
    let is_kept = |e: &&Explained| {
        let kept = |t: &TrialFacts| t.rows.iter().any(|r| r.start <= e.rows.0 && e.rows.1 < r.end);
        e.report.ledger.is_some() && facts(e.report.trial).is_some_and(kept)
    };
    let covered: Vec<&Explained> = incidents.iter().filter(is_kept).collect();
    let covered_late = covered.iter().map(|e| e.report.late).sum();
    let one = |cause: &&CauseShare| {
        let mut tail = measured.tail.clone();
        let mut shortened = 0;
        for trial in trials {
            let of_trial = covered.iter().filter(|e| e.report.trial == trial.trial);
            let removal = Removal::of(of_trial, cause);
            for (due_ns, received_ns) in &trial.read.times {
                // No message leaves before its launch time.
                let leaves_ns = (due_ns + trial.conduct.launch_ns).min(*received_ns);
                let (latency_ns, ns) = (received_ns - due_ns, removal.between(leaves_ns, *received_ns));
                if ns > 0 {
                    tail.replace(latency_ns, latency_ns - ns);
                    shortened += 1;
                }
            }
        }
        WithoutCause {
            cause: cause.cause,
            end: cause.end.clone(),
            by: cause.by.clone(),
            metric: measured.metric.key().to_owned(),
            quantiles: measured.quantiles(&tail),
            max_ns: measured.max_ns,
            max_without_ns: tail.max().map_or(measured.max_ns, |max| max.min(measured.max_ns)),
            shortened,
            covered_late,
            late: condition.incident_totals.map_or(0, |totals| totals.late),
        }
    };
    named.iter().map(one).collect()
}

/// The measured latencies of a condition.
struct Measured<'a> {
    metric: Metric,
    tail: Tail,
    /// Number of scheduled slots, including the slots without an answer.
    scheduled: u64,
    quantiles: &'a [QuantileReport],
    max_ns: i64,
}

impl Measured<'_> {
    fn of<'a>(condition: &'a ConditionReport, trials: &[&TrialFacts]) -> Measured<'a> {
        let scheduled = condition.from_intended.as_ref();
        let metric = if scheduled.is_some() { Metric::FromIntended } else { Metric::RoundTrip };
        let report = scheduled.or(condition.round_trip.as_ref());
        let mut latencies = Histogram::new();
        trials.iter().filter_map(|t| t.found.as_ref()).for_each(|f| latencies.merge(&f.latencies));
        let tail = Tail::of(&latencies);
        Measured {
            metric,
            scheduled: condition.counts.scheduled,
            quantiles: report.map_or(&[], |r| r.quantiles.as_slice()),
            max_ns: report.and_then(|r| r.max_ns).or(tail.max()).unwrap_or(0),
            tail,
        }
    }

    fn quantiles(&self, tail: &Tail) -> Vec<RemainingQuantile> {
        let one = |q: Quantile| {
            let rank = q.rank(self.scheduled);
            let exact = self.quantiles.iter().find(|r| (r.q() - q.as_f64()).abs() < 5e-16);
            let value_ns = exact.and_then(QuantileReport::value_ns).or_else(|| self.tail.at(rank));
            // A bucket of the histogram may end above the exact value.
            let without_ns = tail.at(rank).map(|ns| value_ns.map_or(ns, |value_ns| ns.min(value_ns)));
            RemainingQuantile { q: q.as_f64(), value_ns, without_ns }
        };
        QUANTILES.into_iter().filter(|q| needs(*q) <= self.scheduled).map(one).collect()
    }
}

/// Numbers of latencies by the upper end of their histogram bucket, ns.
#[derive(Clone)]
struct Tail(BTreeMap<i64, i64>);

impl Tail {
    fn of(latencies: &Histogram) -> Tail {
        Tail(latencies.buckets().map(|bucket| (bucket.high, bucket.count as i64)).collect())
    }

    /// Replaces one latency by another.
    fn replace(&mut self, old_ns: i64, new_ns: i64) {
        for (ns, by) in [(old_ns, -1), (new_ns, 1)] {
            *self.0.entry(Histogram::bucket_high(ns)).or_default() += by;
        }
    }

    /// Upper end of the bucket of the latency with this rank; `None` if the rank is among the slots without an answer.
    fn at(&self, rank: u64) -> Option<i64> {
        let mut left = rank as i64;
        self.0.iter().find_map(|(high, count)| {
            left -= count;
            (left <= 0).then_some(*high)
        })
    }

    /// Upper end of the bucket of the largest latency.
    fn max(&self) -> Option<i64> {
        self.0.iter().rev().find(|(_, count)| **count > 0).map(|(high, _)| *high)
    }
}

/// The times of a trial that the ledgers ascribe to one cause.
#[derive(Default)]
struct Removal(Vec<Span>);

/// A time span of an entry of a ledger.
struct Span {
    from_ns: i64,
    to_ns: i64,
    /// Part of the span that remains after the usual was subtracted from the entry.
    part: f64,
    /// Time that is ascribed to the cause in all spans before, ns.
    before_ns: f64,
}

impl Removal {
    fn of<'a>(incidents: impl Iterator<Item = &'a &'a Explained>, cause: &CauseShare) -> Removal {
        let is_of = |sum: &Sum| sum.cause == cause.cause && Some(sum.end) == cause.end.as_deref() && sum.by == cause.by;
        let mut spans = Vec::new();
        for entry in incidents.flat_map(|e| &e.entries).filter(|e| e.low_ns > 0 && is_of(&Sum::of(&e.key))) {
            let whole: i64 = entry.spans.iter().map(|(from, to)| to - from).sum();
            let part = (entry.low_ns as f64 / whole.max(1) as f64).min(1.0);
            let span = |(from_ns, to_ns): &(i64, i64)| Span { from_ns: *from_ns, to_ns: *to_ns, part, before_ns: 0.0 };
            spans.extend(entry.spans.iter().map(span));
        }
        spans.sort_by_key(|span| span.from_ns);
        let mut before_ns = 0.0;
        for span in &mut spans {
            span.before_ns = before_ns;
            before_ns += span.ns_until(span.to_ns);
        }
        Removal(spans)
    }

    /// Time between two times that is ascribed to the cause, ns.
    fn between(&self, from_ns: i64, to_ns: i64) -> i64 {
        (self.until(to_ns) - self.until(from_ns)).round() as i64
    }

    fn until(&self, at_ns: i64) -> f64 {
        let last = self.0.partition_point(|span| span.from_ns < at_ns).checked_sub(1);
        last.map_or(0.0, |at| self.0[at].before_ns + self.0[at].ns_until(at_ns))
    }
}

impl Span {
    fn ns_until(&self, at_ns: i64) -> f64 {
        (at_ns.min(self.to_ns) - self.from_ns).max(0) as f64 * self.part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removal(spans: &[(i64, i64, f64)]) -> Removal {
        let mut before_ns = 0.0;
        let span = |(from_ns, to_ns, part): &(i64, i64, f64)| {
            let span = Span { from_ns: *from_ns, to_ns: *to_ns, part: *part, before_ns };
            before_ns += span.ns_until(*to_ns);
            span
        };
        Removal(spans.iter().map(span).collect())
    }

    #[test]
    fn a_message_loses_the_time_that_overlaps_with_the_cause() {
        let removal = removal(&[(100, 200, 1.0), (300, 400, 0.5)]);
        let of = |(from, to)| removal.between(from, to);
        let cases = [(0, 100), (0, 150), (120, 180), (150, 250), (150, 350), (0, 500), (350, 360), (400, 500)];
        assert_eq!(cases.map(of), [0, 50, 60, 50, 75, 150, 5, 0]);
    }

    #[test]
    fn ranks_among_slots_without_an_answer_have_no_value() {
        let mut latencies = Histogram::new();
        latencies.record_n(10, 98);
        latencies.record(100);
        let mut tail = Tail::of(&latencies);
        assert_eq!([98, 99, 100].map(|rank| tail.at(rank)), [Some(10), Some(100), None]);
        tail.replace(100, 12);
        assert_eq!((tail.at(99), tail.max(), tail.at(100)), (Some(12), Some(12), None));
    }
}
