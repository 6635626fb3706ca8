//! Puts the figures of the metrics into the form of the document.

use crate::coarse_buckets::coarse;
use crate::passes::{DependentEstimate, Figures, First, FirstPass, Tally, place};
use crate::series::{BETWEEN_ENDS, Group, is_between_ends};
use crate::tail_estimate;
use crate::worst::{MessageKey, MessagePart};
use std::collections::BTreeMap;
use tailbound_document::{Beyond, LegRange, Message, MetricReport, QuantileReport};
use tailbound_model::{Condition, Metric, Rate};
use tailbound_stats::{Bound, Estimate, Quantile, needs, rule_of_three};

/// The dependence of the latest messages is taken from this quantile and all higher quantiles.
const TAIL: f64 = 0.9;

/// Computes the figures of all metrics that a condition has.
pub(crate) fn metrics(
    condition: &Condition,
    firsts: &[FirstPass],
    figures: &[Figures],
) -> BTreeMap<Metric, MetricReport> {
    let open_loop = condition.spec.rate != Rate::Max;
    let mut all = BTreeMap::new();
    for metric in Metric::ALL {
        let Some((group, at)) = place(metric) else { continue };
        let group = group as usize;
        if is_between_ends(metric) && clocks_differ(firsts) {
            continue;
        }
        let scheduled_only = matches!(metric, Metric::FromIntended | Metric::SendLateness | Metric::WakePeriod);
        if scheduled_only && !open_loop {
            continue;
        }
        let first = &firsts[group].metrics[at];
        // A leg without any value is left out, because it could not be measured; a round trip without any value is
        // reported.
        let always = matches!(metric, Metric::RoundTrip | Metric::FromIntended);
        let seen = if always { first.distribution.scheduled() } else { first.distribution.answered() };
        if seen > 0 {
            let tail = figures[group].tail.as_ref().filter(|_| always).map(tail_estimate::of);
            let beyond = beyond(metric, &firsts[0].tally);
            all.insert(metric, MetricReport { tail, ..metric_report(beyond, first, &figures[group].estimates[at]) });
        }
    }
    if let Some(round_trip) = all.get(&Metric::RoundTrip) {
        all.insert(Metric::HalfRoundTrip, half(round_trip));
    }
    all
}

/// True if the ends have different clocks, so that the passes have read the minimum and the maximum of each leg.
fn clocks_differ(firsts: &[FirstPass]) -> bool {
    firsts[Group::Answer as usize].metrics.len() > Group::Answer.metrics().len()
}

/// The range of a leg between two clocks; `None` if both ends have the same clock, or if the leg is unknown.
pub(crate) fn range(metric: Metric, firsts: &[FirstPass], figures: &[Figures]) -> Option<LegRange> {
    let (group, low) = place(metric).filter(|_| clocks_differ(firsts))?;
    let high = group.metrics().len() + group.legs().iter().position(|m| *m == metric)?;
    let group = group as usize;
    let report = |at: usize| {
        let first = firsts[group].metrics.get(at)?;
        let seen = first.distribution.answered() > 0;
        seen.then(|| metric_report(beyond(metric, &firsts[0].tally), first, &figures[group].estimates[at]))
    };
    Some(LegRange { low: report(low)?, high: report(high)? })
}

/// Number of answered messages for which the record has no row of samples of the pong end.
pub(crate) fn without_pong_row(answer: &FirstPass) -> u64 {
    answer.metrics[1..].iter().map(|m| m.without).max().unwrap_or(0)
}

/// Outcomes of the slots that count as later than every value of a metric.
fn beyond(metric: Metric, tally: &Tally) -> Beyond {
    let [.., lost, not_sent] = tally.outcomes;
    match metric {
        Metric::SendLateness | Metric::SendDuration | Metric::WakeToSent | Metric::WakePeriod => Beyond::NotSent,
        _ if not_sent == 0 => Beyond::Lost,
        _ if lost == 0 => Beyond::NotSent,
        _ => Beyond::LostOrNotSent,
    }
}

pub(crate) fn metric_report(beyond: Beyond, first: &First, estimates: &[DependentEstimate]) -> MetricReport {
    let distribution = &first.distribution;
    let moments = distribution.moments();
    let complete = distribution.beyond_count() == 0 && distribution.answered() > 0;
    let independent_n = complete.then(|| independent_n(estimates)).flatten();
    MetricReport {
        n: distribution.answered(),
        scheduled: distribution.scheduled(),
        mean_ns: moments.mean().map(|v| rounded(v, 1e3)),
        stddev_ns: moments.standard_deviation().map(|v| rounded(v, 1e3)),
        min_ns: moments.min(),
        max_ns: moments.max(),
        independent_n,
        rule_of_three: independent_n.map(rule_of_three),
        quantiles: estimates.iter().map(|e| quantile(e, beyond)).collect(),
        tail: None,
        histogram: coarse(distribution.histogram()),
    }
}

/// Number of independent messages that say as much about the maximum as the measured messages: the smallest effective
/// sample size of the quantiles in the tail. `None` if messages depend on each other over longer times than the trials
/// show, so that the number is not known.
fn independent_n(estimates: &[DependentEstimate]) -> Option<u64> {
    let q = |e: &&DependentEstimate| match e.estimate {
        Estimate::Value { q, .. } => Some(q.as_f64()),
        _ => None,
    };
    let highest = estimates.iter().rfind(|e| q(e).is_some())?;
    let in_tail = |e: &&DependentEstimate| q(e).is_some_and(|q| q >= TAIL);
    let tail = || estimates.iter().filter(in_tail).chain([highest]);
    if tail().any(|e| e.worth.unresolved) { None } else { tail().map(|e| e.worth.slots).min() }
}

/// Rounds a value to a multiple of 1 / `parts`, because further digits are finer than the resolution of any clock.
fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

fn quantile(told: &DependentEstimate, beyond: Beyond) -> QuantileReport {
    match told.estimate {
        Estimate::Value { q, value_ns, low_ns, high } => QuantileReport::Value {
            q: q.as_f64(),
            value_ns,
            low_ns,
            high_ns: match high {
                Bound::Ns(ns) => Some(ns),
                Bound::Beyond => None,
            },
            high_beyond: (high == Bound::Beyond).then_some(beyond),
            autocorrelation: told.lag1.map(|r| rounded(r, 1e6)),
            effective_n: told.worth.slots,
            too_narrow: told.worth.unresolved || told.worth.slots < needs(q),
        },
        Estimate::Needs { q, needs } => QuantileReport::Needs { q: q.as_f64(), needs },
        Estimate::Beyond { q } => QuantileReport::Beyond { q: q.as_f64(), value_ns: (), beyond },
    }
}

/// Figures of half the round trip: only the median, whose value and interval are halved.
fn half(round_trip: &MetricReport) -> MetricReport {
    let mut median: Vec<QuantileReport> = round_trip.quantile(Quantile::P50.as_f64()).into_iter().cloned().collect();
    for quantile in &mut median {
        if let QuantileReport::Value { value_ns, low_ns, high_ns, .. } = quantile {
            *value_ns /= 2;
            *low_ns /= 2;
            *high_ns = high_ns.map(|h| h / 2);
        }
    }
    MetricReport {
        n: round_trip.n,
        scheduled: round_trip.scheduled,
        mean_ns: None,
        stddev_ns: None,
        min_ns: None,
        max_ns: None,
        independent_n: None,
        rule_of_three: None,
        quantiles: median,
        tail: None,
        histogram: Vec::new(),
    }
}

/// Puts the values of one message together, which were read separately for each group of metrics.
pub(crate) fn message(key: MessageKey, parts: &[&MessagePart]) -> Option<Message> {
    let parts: Vec<&&MessagePart> = parts.iter().filter(|p| p.key == key).collect();
    let slot = parts.iter().find_map(|p| p.slot)?;
    let value = |metric: Metric| {
        let at = Metric::ALL.iter().position(|m| *m == metric)?;
        parts.iter().find_map(|p| p.values[at])
    };
    let range = |metric: Metric| {
        let at = BETWEEN_ENDS.iter().position(|m| *m == metric)?;
        parts.iter().find_map(|p| p.ranges[at])
    };
    Some(Message {
        trial: key.trial,
        slot,
        intended_ns: parts.iter().find_map(|p| p.intended_ns),
        send_begin_ns: parts.iter().find_map(|p| p.send_begin_ns),
        previous_send_end_ns: parts.iter().find_map(|p| p.previous_send_end_ns),
        from_intended_ns: value(Metric::FromIntended),
        round_trip_ns: value(Metric::RoundTrip),
        send_lateness_ns: value(Metric::SendLateness),
        send_duration_ns: value(Metric::SendDuration),
        wake_to_sent_ns: value(Metric::WakeToSent),
        out_ns: value(Metric::Out),
        turnaround_ns: value(Metric::Turnaround),
        back_ns: value(Metric::Back),
        out_network_ns: value(Metric::OutNetwork),
        back_network_ns: value(Metric::BackNetwork),
        out_range_ns: range(Metric::Out),
        back_range_ns: range(Metric::Back),
        out_network_range_ns: range(Metric::OutNetwork),
        back_network_range_ns: range(Metric::BackNetwork),
    })
}
