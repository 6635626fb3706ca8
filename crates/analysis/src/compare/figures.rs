//! Figures of single trials, for a decision over pairs of trials.

use crate::compare::statistics::LATENCIES;
use crate::compare::trials::{OfTrial, read};
use tailbound_model::{Condition, Metric, Outcome, ThreadTable};
use tailbound_record::{Record, RecordError};

/// One figure of one trial, with the median and the counts of its messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialFigures {
    /// The figure, ns; `None` if it falls among the slots without an answer.
    pub figure_ns: Option<f64>,
    /// Median of the metric, ns; `None` if it falls among the slots without an answer.
    pub median_ns: Option<f64>,
    /// Number of scheduled slots.
    pub slots: u64,
    /// Number of slots whose message was not answered in time: after the timeout, lost or not sent.
    pub missed: u64,
    /// CPU time that the threads of the ends used from the first to the last slot, ns; `None` if it was not read for each end.
    pub cpu_ns: Option<u64>,
}

/// Why a trial has no figure.
#[derive(Debug)]
pub enum NoFigure {
    /// No statistic has this name.
    UnknownStatistic,
    /// The trial has too few slots for the quantile: the number that it needs, and its own number.
    TooFew(u64, u64),
    /// No slot of the trial has a value.
    NoValues,
    /// The record cannot be read.
    Record(RecordError),
}

/// Computes a statistic (`p50`, `p99`, `p99.9` or `mean`) of a metric over the scheduled slots of one trial.
///
/// # Errors
/// The trial has too few slots for the statistic, or cannot be read.
pub fn figures_of_trial(
    record: &Record,
    condition: &Condition,
    trial: usize,
    metric: Metric,
    statistic: &str,
) -> Result<TrialFigures, NoFigure> {
    let at = LATENCIES.iter().position(|(name, _)| *name == statistic).ok_or(NoFigure::UnknownStatistic)?;
    let read = read(record, condition, trial, &[metric]).map_err(NoFigure::Record)?;
    let of = |at: usize| match read.metrics.first().map(|m| m.statistics[at]) {
        Some(OfTrial::Value(ns)) => Ok(Some(ns)),
        Some(OfTrial::Beyond) => Ok(None),
        Some(OfTrial::Needs(needs, has)) => Err(NoFigure::TooFew(needs, has)),
        Some(OfTrial::Nothing) | None => Err(NoFigure::NoValues),
    };
    let slots: u64 = read.tally.outcomes.iter().sum();
    let missed = slots - read.tally.outcomes[Outcome::Answered as usize];
    Ok(TrialFigures { figure_ns: of(at)?, median_ns: of(0)?, slots, missed, cpu_ns: cpu_ns(record, trial) })
}

/// CPU time of the threads of all ends of a trial.
fn cpu_ns(record: &Record, trial: usize) -> Option<u64> {
    let tables: Vec<ThreadTable> = record.threads(trial).into_iter().collect::<Result<_, _>>().ok()?;
    let ends = tables.iter().map(|table| table.ends.len()).sum::<usize>();
    (ends == 2).then(|| tables.iter().map(used_ns).sum())
}

/// CPU time of the threads of one process; a thread that was created after the first slot counts from its begin.
fn used_ns(table: &ThreadTable) -> u64 {
    let before = |tid: i32| table.before.iter().find(|row| row.tid == tid).map_or(0, |row| row.cpu_ns);
    table.after.iter().map(|row| row.cpu_ns.saturating_sub(before(row.tid))).sum()
}
