//! One trial in a few words, as soon as it has ended: for whoever waits for the run.

use crate::flow::FlowTrial;
use crate::number::{count, label, three_digits, time};
use crate::passes::answered;
use std::path::Path;
use tailbound_model::{Metric, NO_TIME};
use tailbound_record::{Columns, Record, RecordError, SlotBatch};
use tailbound_stats::{Distribution, Estimate, Quantile, SecondPass};

const SHOWN: [Quantile; 2] = [Quantile::P50, Quantile::P99];

/// `p50 62.1 us, p99 3.40 ms, max 10.8 ms, none of 60,000 without an answer`: round trips of a trial that was stored;
/// of a flow what it came to, and the round trips of its pings; `None` where it has no measured slot.
///
/// # Errors
/// The record cannot be read, or the trial's samples are damaged.
pub fn glance(dir: &Path, trial: usize) -> Result<Option<String>, RecordError> {
    let record = Record::open(dir)?;
    if let Some(summary) = record.manifest.trials.iter().find(|t| t.id == trial).and_then(|t| t.summary.as_ref()) {
        return Ok(crate::tools::glance(summary));
    }
    let plan = &record.manifest.plan;
    let condition = plan.trials.iter().find(|t| t.id == trial).and_then(|t| plan.conditions.get(t.condition));
    let flow = condition.and_then(|c| flow(&crate::flow::of_trial(&record, c, trial)?));
    if condition.and_then(|c| c.spec.measure.flow()).is_some_and(|f| !f.has_answers()) {
        return Ok(flow);
    }
    let mut distribution = Distribution::new();
    round_trips(&record, trial, |value| match value {
        Some(value) => distribution.value(value),
        None => distribution.beyond(),
    })?;
    let mut plan: SecondPass = distribution.plan(&SHOWN);
    round_trips(&record, trial, |value| plan.offer(value.unwrap_or(i64::MAX)))?;
    let estimates = plan.finish().map_err(|e| RecordError::Damaged { path: dir.to_owned(), reason: e.to_string() })?;
    let mut words: Vec<String> = estimates.iter().map(quantile).collect();
    words.extend(distribution.moments().max().map(|max| format!("max {}", time(max as f64))));
    let (all, lost) = (distribution.scheduled(), distribution.beyond_count());
    words.push(match lost {
        0 => format!("none of {} without an answer", count(all)),
        lost => format!("{} of {} without an answer", count(lost), count(all)),
    });
    let pings = (all > 0).then(|| words.join(", "));
    Ok(match (flow, pings) {
        (Some(flow), Some(pings)) => Some(format!("{flow}; pings: {pings}")),
        (flow, pings) => flow.or(pings),
    })
}

/// `48,500 samples/s, none of 28,753 lost`, at the slowest subscriber, and of all.
fn flow(trial: &FlowTrial) -> Option<String> {
    let slowest = trial.subscribers.iter().map(|s| s.samples_per_s.unwrap_or(0.0)).reduce(f64::min)?;
    let (all, lost) = (trial.sent * trial.subscribers.len() as u64, trial.subscribers.iter().map(|s| s.lost).sum());
    if all == 0 {
        return None;
    }
    let lost = if lost == 0 { "none".to_owned() } else { count(lost) };
    Some(format!("{} samples/s, {lost} of {} lost", three_digits(slowest), count(all)))
}

fn quantile(estimate: &Estimate) -> String {
    let name = label(estimate.q().as_f64());
    match (estimate.value_ns(), estimate) {
        (Some(ns), _) => format!("{name} {}", time(ns as f64)),
        (None, Estimate::Needs { needs, .. }) => format!("{name} needs {}", count(*needs)),
        (None, _) => format!("{name} never"),
    }
}

/// Measured slots of a trial; `None` = there was no answer.
fn round_trips(record: &Record, trial: usize, mut each: impl FnMut(Option<i64>)) -> Result<(), RecordError> {
    let mut values = Vec::new();
    record.scan(trial, &Columns::of(&[Metric::RoundTrip]), &mut |batch: &SlotBatch| {
        batch.metric_column(Metric::RoundTrip, &mut values);
        for (i, value) in values.iter().enumerate().filter(|(i, _)| !batch.warm_up[*i]) {
            each(Some(*value).filter(|v| answered(batch.outcome[i]) && *v != NO_TIME));
        }
    })
}
