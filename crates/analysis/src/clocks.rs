//! Smallest and largest possible difference between the clocks of two ends (the bounds), computed from the times of the
//! messages of a trial.
//!
//! Input: timestamps of both ends. Output: for each trial, whether its legs are exact (one clock), known as a range
//! (from the shortest to the longest time that is possible with these clocks), or unknown. The memory does not grow
//! with the number of messages.

use crate::parallel;
use crate::pass_error::PassError;
use std::collections::BTreeMap;
use tailbound_model::{Nanos, Severity, Warning};
use tailbound_record::{NoClockBounds, Record, TrialRecord};
use tailbound_stats::{ClockBounds, NoBounds};

/// Name of the end whose clock is used for all times in a report.
pub(crate) const OWN: &str = "ping";

/// How exactly the legs of a trial's round trips are known.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Legs<'a> {
    /// The legs are exact, because both ends have the same clock.
    Exact,
    /// Each leg is known as a range from a minimum to a maximum.
    Bounded(&'a Bounded),
    /// The legs of the trial's round trips are unknown.
    Unknown,
}

/// Smallest and largest possible difference between the clocks of the two ends of a trial.
#[derive(Debug)]
pub(crate) struct Bounded {
    pub clocks: ClockBounds,
    /// Largest possible error, in ns, of kernel timestamps at the ping and at the pong end, which are converted from
    /// another clock of the same host.
    pub kernel_ns: [i64; 2],
}

/// Trials whose two ends have different clocks, by trial id: the bounds of the difference between the clocks, or the
/// reason why there are no bounds.
#[derive(Debug, Default)]
pub(crate) struct Clocks(BTreeMap<usize, Result<Bounded, NoClockBounds>>);

/// True if the timestamps of `end` come from another clock than the timestamps of the end [`OWN`], whose clock the
/// report uses.
pub(crate) fn apart(trial: &TrialRecord, end: &str) -> bool {
    let clock = |end: &str| trial.ends.get(end).map(|e| e.clock.as_str());
    // An end that is not in the record has no timestamps.
    matches!((clock(OWN), clock(end)), (Some(own), Some(other)) if own != other)
}

/// True if, in a trial of a record, the timestamps of `end` come from another clock than the timestamps of the ping
/// end.
pub(crate) fn apart_in(record: &Record, trial: usize, end: &str) -> bool {
    record.manifest.trials.iter().any(|t| t.id == trial && apart(t, end))
}

/// True if, in a trial of a record, the timestamps of both ends come from the same clock, so that the times of the pong
/// can be compared with those of the ping.
pub fn has_one_clock(record: &Record, trial: usize) -> bool {
    !apart_in(record, trial, "pong")
}

fn kernel_width(record: &Record, trial: usize, end: &str) -> i64 {
    let ends = record.manifest.trials.iter().find(|t| t.id == trial).map(|t| &t.ends);
    ends.and_then(|ends| ends.get(end)?.clock_width_ns).unwrap_or(0)
}

impl Clocks {
    /// Reads the timestamps of those of the given trials whose ends have different clocks, and computes the bounds of
    /// the difference between the clocks.
    pub fn of(record: &Record, trials: &[usize]) -> Result<Clocks, PassError> {
        let two: Vec<usize> = trials.iter().copied().filter(|id| apart_in(record, *id, "pong")).collect();
        let read = |trial: &usize| {
            let bounds = record.clock_bounds(*trial).map_err(|error| PassError { trial: Some(*trial), error })?;
            let kernel_ns = [OWN, "pong"].map(|end| kernel_width(record, *trial, end));
            Ok((*trial, bounds.map(|clocks| Bounded { clocks, kernel_ns })))
        };
        Ok(Clocks(parallel::all(&two, read)?.into_iter().collect()))
    }

    /// Returns how exactly the legs of a trial are known.
    pub fn legs(&self, trial: usize) -> Legs<'_> {
        match self.0.get(&trial) {
            None => Legs::Exact,
            Some(Ok(bounds)) => Legs::Bounded(bounds),
            Some(Err(_)) => Legs::Unknown,
        }
    }

    /// True if the ends of at least one of these trials have different clocks.
    pub fn differ(&self, trials: &[usize]) -> bool {
        trials.iter().any(|id| self.0.contains_key(id))
    }

    /// True if one of the clocks was stepped or changed its speed while the trial ran. It is not known which clock, so
    /// no figure of the trial can be trusted.
    pub fn parted(&self, trial: usize) -> bool {
        matches!(self.0.get(&trial), Some(Err(NoClockBounds { why: NoBounds::Crossed, .. })))
    }

    /// Warnings about the clocks of trials whose two ends have different clocks.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> {
        self.0.iter().filter_map(|(trial, clocks)| Some(warning(clocks.as_ref().err()?).at_trial(*trial)))
    }
}

fn warning(no: &NoClockBounds) -> Warning {
    match no.why {
        NoBounds::Crossed => {
            let moment = no.parted.map_or(String::new(), |(at, by)| {
                format!(" {} after slot 0, by {} or more", Nanos(at), Nanos(by.saturating_abs()))
            });
            let text = format!(
                "the offset between the clocks of ping and pong changed{moment}: one of the clocks was stepped, or \
                    its speed was changed. It is not known which clock: the trial has no legs, and its round trips \
                    may be wrong"
            );
            let remedy = "Let the time services of both hosts settle before measuring, and configure them not to step \
                the clocks.";
            Warning::new("clocks_moved", Severity::Invalid, text, remedy)
        }
        NoBounds::OneWay => {
            let text = "ping and pong have different clocks, and messages went in one direction only, so the \
                        legs are not known";
            Warning::new("clocks_unbounded", Severity::Warning, text, "")
        }
    }
}
