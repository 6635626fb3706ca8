//! Statistics trial by trial: exact, over scheduled slots, in two passes whose memory does not grow with the samples.

use super::statistics::ALL;
use crate::passes::{self, Tally};
use crate::series::Series;
use tailbound_model::Metric;
use tailbound_record::{Columns, Record, RecordError};
use tailbound_stats::compare::{Chunks, Statistic};
use tailbound_stats::{Distribution, Estimate, Quantile};

/// What a statistic came to in one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OfTrial {
    /// Nanoseconds.
    Ns(f64),
    /// Among the slots without an answer.
    Beyond,
    /// Too few slots: how many it takes.
    Needs(u64),
    /// No slot has a value.
    Nothing,
}

/// One metric of one trial.
#[derive(Debug, Clone)]
pub(crate) struct MetricOfTrial {
    /// In the order of [`ALL`].
    pub statistics: Vec<OfTrial>,
    pub chunks: Chunks,
}

/// One trial.
#[derive(Debug, Clone)]
pub(crate) struct TrialRead {
    pub tally: Tally,
    /// In the order of the metrics asked for.
    pub metrics: Vec<MetricOfTrial>,
}

/// Reads `metrics` of a trial.
pub(crate) fn read(record: &Record, trial: usize, metrics: &[Metric]) -> Result<TrialRead, RecordError> {
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
            series.load(batch, *metric);
            for run in series.values().split(|v| *v == Series::BEYOND) {
                distribution.values(run);
            }
            (0..series.beyond).for_each(|_| distribution.beyond());
            chunks.push_all(series.values(), Series::BEYOND);
        }
    })?;
    let quantiles: Vec<Quantile> = ALL.iter().filter_map(|w| quantile(w.of)).collect();
    let mut plans: Vec<_> = firsts.iter().map(|(d, _)| d.plan(&quantiles)).collect();
    if plans.iter().any(|p| p.needs_values()) {
        record.scan(trial, &columns, &mut |batch| {
            series.classify(batch);
            for (metric, plan) in metrics.iter().zip(&mut plans) {
                series.load(batch, *metric);
                series.values().iter().for_each(|v| plan.offer(*v));
            }
        })?;
    }
    let mut read = Vec::new();
    for ((distribution, chunks), plan) in firsts.into_iter().zip(plans) {
        let estimates = plan.finish().map_err(|e| passes::changed(record, e))?;
        let of = |wanted: Statistic| match wanted {
            Statistic::Mean => distribution.moments().mean().map_or(OfTrial::Nothing, OfTrial::Ns),
            Statistic::Quantile(q) => match estimates.iter().find(|e| e.q() == q) {
                Some(Estimate::Value { value_ns, .. }) => OfTrial::Ns(*value_ns as f64),
                Some(Estimate::Beyond { .. }) => OfTrial::Beyond,
                Some(Estimate::Needs { needs, .. }) if distribution.scheduled() > 0 => OfTrial::Needs(*needs),
                _ => OfTrial::Nothing,
            },
        };
        read.push(MetricOfTrial { statistics: ALL.iter().map(|w| of(w.of)).collect(), chunks });
    }
    Ok(TrialRead { tally, metrics: read })
}

fn quantile(of: Statistic) -> Option<Quantile> {
    match of {
        Statistic::Quantile(q) => Some(q),
        Statistic::Mean => None,
    }
}
