//! Computes exact statistics over the scheduled slots of each trial, in two passes whose memory does not grow with the
//! number of samples.

use crate::clocks::Legs;
use crate::compare::statistics::{LATENCIES, Of, Wanted};
use crate::passes::Tally;
use crate::series::{Series, Side};
use crate::{flow, passes};
use tailbound_model::{Condition, Flow, Metric};
use tailbound_record::{Columns, Record, RecordError};
use tailbound_stats::compare::{Chunks, Statistic};
use tailbound_stats::{Distribution, Estimate, Quantile};

/// Value of a statistic in one trial, or the reason why the statistic has no value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OfTrial {
    /// The value of the statistic in the trial, in the unit of the statistic.
    Value(f64),
    /// The statistic is a quantile and has no value, because the quantile falls among the slots without an answer.
    Beyond,
    /// There are too few slots for the statistic: the necessary number of slots, and the existing number of slots.
    Needs(u64, u64),
    /// The statistic has no value, because no slot of the trial has a value.
    Nothing,
}

/// The compared statistics of one metric in one trial.
#[derive(Debug, Clone)]
pub(crate) struct MetricOfTrial {
    /// Values of the metric's statistics in the trial, in the order of [`LATENCIES`].
    pub statistics: Vec<OfTrial>,
    pub chunks: Chunks,
}

/// Statistics of one trial that were read for a comparison.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrialRead {
    pub tally: Tally,
    /// Statistics of each requested metric, in the order of the request; empty for a flow without answers.
    pub metrics: Vec<MetricOfTrial>,
    /// For a flow: samples per second at the slowest subscriber, and CPU time of the publisher per sample in ns.
    flow: (Option<f64>, Option<f64>),
}

impl TrialRead {
    /// Returns the value of the statistic `wanted` in this trial.
    pub fn value(&self, wanted: Wanted) -> OfTrial {
        let told = |value: Option<f64>| value.map_or(OfTrial::Nothing, OfTrial::Value);
        match wanted.of {
            Of::Rows(metric, _) => {
                let at = LATENCIES.iter().position(|(name, _)| *name == wanted.name);
                at.zip(self.metrics.get(metric)).map_or(OfTrial::Nothing, |(at, of)| of.statistics[at])
            }
            Of::SamplesPerSecond => told(self.flow.0),
            Of::PublisherCpu => told(self.flow.1),
        }
    }
}

/// Reads the compared statistics of one trial of a condition from the record.
pub(crate) fn read(
    record: &Record,
    condition: &Condition,
    trial: usize,
    metrics: &[Metric],
) -> Result<TrialRead, RecordError> {
    match flow::of_trial(record, condition, trial) {
        Some(of) => {
            // A subscriber that received nothing is the slowest, and has no rate.
            let rates: Option<Vec<f64>> = of.subscribers.iter().map(|s| s.samples_per_s).collect();
            let slowest = rates.and_then(|rates| rates.into_iter().reduce(f64::min));
            let cpu = of.cpu_ns.filter(|_| of.sent > 0).map(|ns| ns as f64 / of.sent as f64);
            let received: u64 = of.subscribers.iter().map(|s| s.received).sum();
            let lost: u64 = of.subscribers.iter().map(|s| s.lost).sum();
            let tally = Tally { outcomes: [received, 0, lost, 0], ..Tally::default() };
            let answers = condition.spec.measure.flow().is_some_and(Flow::has_answers) && !metrics.is_empty();
            let rows = if answers { read_rows(record, trial, metrics)?.metrics } else { Vec::new() };
            Ok(TrialRead { tally, metrics: rows, flow: (slowest, cpu) })
        }
        None if condition.spec.measure.flow().is_some() => Ok(TrialRead::default()),
        None => read_rows(record, trial, metrics),
    }
}

/// Mean of a metric over the messages of a trial that have a value, in ns.
///
/// # Errors
/// The trial cannot be read.
pub(crate) fn mean_of_trial(record: &Record, trial: usize, metric: Metric) -> Result<Option<f64>, RecordError> {
    let read = read_rows(record, trial, &[metric])?;
    let mean = LATENCIES.iter().position(|(_, statistic)| *statistic == Statistic::Mean);
    Ok(mean.and_then(|at| match read.metrics[0].statistics[at] {
        OfTrial::Value(ns) => Some(ns),
        _ => None,
    }))
}

fn read_rows(record: &Record, trial: usize, metrics: &[Metric]) -> Result<TrialRead, RecordError> {
    let columns = Columns::of(metrics);
    let mut tally = Tally::default();
    let mut series = Series::default();
    let mut firsts: Vec<(Distribution, Chunks)> = vec![Default::default(); metrics.len()];
    record.scan(trial, &columns, &mut |batch| {
        series.classify(batch);
        for (outcome, warm_up) in batch.outcome.iter().zip(&batch.warm_up) {
            tally.outcomes[*outcome as usize & 3] += u64::from(!warm_up);
        }
        for (metric, (distribution, chunks)) in metrics.iter().zip(&mut firsts) {
            // Legs between two clocks are refused before a trial is read.
            series.load(batch, (*metric, Side::Low), Legs::Exact);
            for run in series.values().split(|v| *v == Series::BEYOND) {
                distribution.values(run);
            }
            (0..series.beyond).for_each(|_| distribution.beyond());
            chunks.push_all(series.values(), Series::BEYOND);
        }
    })?;
    let quantiles: Vec<Quantile> = LATENCIES.iter().filter_map(|(_, of)| quantile(*of)).collect();
    let mut plans: Vec<_> = firsts.iter().map(|(d, _)| d.plan(&quantiles)).collect();
    if plans.iter().any(|p| p.needs_values()) {
        record.scan(trial, &columns, &mut |batch| {
            series.classify(batch);
            for (metric, plan) in metrics.iter().zip(&mut plans) {
                series.load(batch, (*metric, Side::Low), Legs::Exact);
                series.values().iter().for_each(|v| plan.offer(*v));
            }
        })?;
    }
    let mut read = Vec::new();
    for ((distribution, chunks), plan) in firsts.into_iter().zip(plans) {
        let estimates = plan.finish().map_err(|e| passes::changed(record, e))?;
        let of = |wanted: Statistic| match wanted {
            Statistic::Mean => distribution.moments().mean().map_or(OfTrial::Nothing, OfTrial::Value),
            Statistic::Quantile(q) => match estimates.iter().find(|e| e.q() == q) {
                Some(Estimate::Value { value_ns, .. }) => OfTrial::Value(*value_ns as f64),
                Some(Estimate::Beyond { .. }) => OfTrial::Beyond,
                Some(Estimate::Needs { needs, .. }) if distribution.scheduled() > 0 => {
                    OfTrial::Needs(*needs, distribution.scheduled())
                }
                _ => OfTrial::Nothing,
            },
        };
        read.push(MetricOfTrial { statistics: LATENCIES.iter().map(|(_, s)| of(*s)).collect(), chunks });
    }
    Ok(TrialRead { tally, metrics: read, ..TrialRead::default() })
}

fn quantile(of: Statistic) -> Option<Quantile> {
    match of {
        Statistic::Quantile(q) => Some(q),
        Statistic::Mean => None,
    }
}
