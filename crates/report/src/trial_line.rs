//! Describes one trial in a few words as soon as it has ended, for the progress output of a run.

use crate::findings::causes;
use crate::tables::tools;
use std::path::Path;
use tailbound_analysis::{answered, tool_report};
use tailbound_document::FlowTrial;
use tailbound_document::number::{count, label, three_digits, time};
use tailbound_model::{Metric, NO_TIME, ToolSummary};
use tailbound_record::{Columns, Record, RecordError, SlotBatch};
use tailbound_stats::{Distribution, Estimate, Quantile, SecondPass};

const SHOWN: [Quantile; 2] = [Quantile::P50, Quantile::P99];

/// Describes a stored trial, for example `p50 62.1 us, p99 3.40 ms, max 10.8 ms, all of 60,000 answered`. For
/// a flow, the text contains its throughput and losses, and the round trips of its pings. `None` if the trial has no
/// measured slot.
///
/// # Errors
/// The record cannot be read, or the trial's samples are damaged.
pub fn trial_line(dir: &Path, trial: usize) -> Result<Option<String>, RecordError> {
    let record = Record::open(dir)?;
    if let Some(summary) = record.manifest.trials.iter().find(|t| t.id == trial).and_then(|t| t.summary.as_ref()) {
        return Ok(tool_line(summary));
    }
    let plan = &record.manifest.plan;
    let condition = plan.trials.iter().find(|t| t.id == trial).and_then(|t| plan.conditions.get(t.condition));
    let flow = condition.and_then(|c| flow(&tailbound_analysis::flow_of_trial(&record, c, trial)?));
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
        0 => format!("all of {} answered", count(all)),
        lost => format!("{} of {} answered", count(all - lost), count(all)),
    });
    let pings = (all > 0).then(|| words.join(", "));
    Ok(match (flow, pings) {
        (Some(flow), Some(pings)) => Some(format!("{flow}; pings: {pings}")),
        (flow, pings) => flow.or(pings),
    })
}

/// Says by how much the late messages of a stored trial exceeded the usual, and by what causes. `None` if there were none, or
/// if no events were recorded for them.
///
/// # Errors
/// The record cannot be read, or the trial's samples are damaged.
pub fn trial_causes(dir: &Path, trial: usize) -> Result<Option<String>, RecordError> {
    let causes = tailbound_analysis::causes_of_trial(&Record::open(dir)?, trial)?;
    Ok(causes.as_ref().and_then(causes::of_trial))
}

/// Describes a flow, for example `48,500 samples/s, none of 28,753 lost`: the rate at the slowest subscriber, and the
/// losses of all subscribers.
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
        (None, _) => format!("{name} not answered"),
    }
}

/// Reads the round trips of the measured slots of a trial in ns; `None` stands for a slot without an answer.
fn round_trips(record: &Record, trial: usize, mut each: impl FnMut(Option<i64>)) -> Result<(), RecordError> {
    let mut values = Vec::new();
    record.scan(trial, &Columns::of(&[Metric::RoundTrip]), &mut |batch: &SlotBatch| {
        batch.metric_column(Metric::RoundTrip, &mut values);
        for (i, value) in values.iter().enumerate().filter(|(i, _)| !batch.warm_up[*i]) {
            each(Some(*value).filter(|v| answered(batch.outcome[i]) && *v != NO_TIME));
        }
    })
}

/// The first kind of figures of a benchmark program, as one line; `None` if the program printed no figures.
fn tool_line(summary: &ToolSummary) -> Option<String> {
    let first = tools::lines(&tool_report(summary, String::new())).into_iter().next()?;
    Some(format!("{} says {first}", summary.tool))
}
