//! Computes how late messages arrived at each subscriber, and at the last subscriber, from the rows of samples of the
//! publisher and of each subscriber.

use crate::clocks;
use crate::metrics::metric_report;
use crate::passes::{DependentEstimate, First};
use crate::series::Series;
use tailbound_document::{Beyond, MetricReport, SubscriberLatency};
use tailbound_model::{Flow, FlowRows, Metric, NO_TIME, Outcome};
use tailbound_record::{Columns, Record, RecordError};
use tailbound_stats::{Distribution, Exceedance, Quantile};

/// Latencies of a flow that are computed from rows of samples.
#[derive(Default)]
pub(crate) struct Latency {
    pub one_way: Vec<SubscriberLatency>,
    pub slowest: Option<MetricReport>,
    pub from_intended: Option<MetricReport>,
}

/// Latencies of the messages of each trial in ns, in the order of sending; [`Series::BEYOND`] means that a message
/// never arrived.
type Values = Vec<Vec<i64>>;

pub(crate) fn of(record: &Record, flow: &Flow, used: &[usize], quantiles: &[Quantile]) -> Result<Latency, RecordError> {
    if flow.rows != FlowRows::OneWay {
        return Ok(Latency::default());
    }
    let mut latency = Latency::default();
    let mut apart = false;
    // Latency of each message at the slowest of the subscribers processed so far: from the send call, and from the
    // intended time.
    let (mut slowest, mut from_intended): (Values, Values) = Default::default();
    for number in 1..=flow.subscribers {
        let end = if number == 1 { "pong".to_owned() } else { format!("pong{number}") };
        // Times of two different clocks cannot be subtracted, and no message goes back that would bound the difference
        // between the clocks.
        if used.iter().any(|trial| clocks::apart_in(record, *trial, &end)) {
            apart = true;
            continue;
        }
        let mut all: Values = Vec::new();
        let mut due: Values = Vec::new();
        for &trial in used {
            let (values, lateness) = read(record, trial, &end)?;
            due.push(values.iter().zip(&lateness).map(|(v, l)| v.saturating_add(*l)).collect());
            all.push(values);
        }
        let Some(figures) = figures(&all, quantiles) else { continue };
        latency.one_way.push(SubscriberLatency { end, figures });
        last_of(&mut slowest, all);
        last_of(&mut from_intended, due);
    }
    if apart {
        return Ok(latency);
    }
    latency.slowest = figures(&slowest, quantiles);
    latency.from_intended = figures(&from_intended, quantiles);
    Ok(latency)
}

/// Reads the latency of each message from the start of its send call, and how late each message was sent, both in ns.
fn read(record: &Record, trial: usize, end: &str) -> Result<(Vec<i64>, Vec<i64>), RecordError> {
    let columns = Columns::of(&[Metric::Out, Metric::SendLateness]);
    let (mut values, mut lateness) = (Vec::new(), Vec::new());
    record.scan_end(trial, end, &columns, &mut |batch| {
        for i in (0..batch.len()).filter(|i| !batch.warm_up[*i]) {
            let (begin, came) = (batch.send_begin_ns[i], batch.echo_in_ns[i]);
            let there = batch.outcome[i] != Outcome::NotSent as u8 && begin != NO_TIME && came != NO_TIME;
            values.push(if there { came - begin } else { Series::BEYOND });
            let due = batch.intended_ns[i];
            lateness.push(if begin != NO_TIME && due != NO_TIME { begin - due } else { 0 });
        }
    })?;
    Ok((values, lateness))
}

/// Replaces the latency of a message in `slowest` by the latency of the same message at another subscriber, if that
/// latency is longer.
fn last_of(slowest: &mut Values, values: Values) {
    if slowest.is_empty() {
        *slowest = values;
        return;
    }
    for (slowest, values) in slowest.iter_mut().flatten().zip(values.into_iter().flatten()) {
        *slowest = (*slowest).max(values);
    }
}

fn figures(trials: &Values, quantiles: &[Quantile]) -> Option<MetricReport> {
    let mut first = First::default();
    let distribution: &mut Distribution = &mut first.distribution;
    for value in trials.iter().flatten() {
        if *value == Series::BEYOND { distribution.beyond() } else { distribution.value(*value) }
    }
    if distribution.scheduled() == 0 {
        return None;
    }
    let mut second = distribution.plan(quantiles);
    trials.iter().flatten().filter(|v| **v != Series::BEYOND).for_each(|v| second.offer(*v));
    let estimates = second.finish().ok()?;
    let marked = estimates.into_iter().map(|estimate| {
        let mut mark = Exceedance::new();
        if let Some(q) = estimate.value_ns() {
            for trial in trials {
                mark.push_all(trial, q);
                mark.end_sequence();
            }
        }
        let worth = mark.effective();
        DependentEstimate { estimate: first.distribution.widened(estimate, worth.slots), lag1: mark.lag1(), worth }
    });
    let marked: Vec<_> = marked.collect();
    Some(metric_report(Beyond::LostOrNotSent, &first, &marked))
}
