//! Smallest and largest possible difference between the clocks of two ends (the bounds), computed from the times of the
//! messages of a trial.
//!
//! Input: timestamps of both ends. Output: for each trial, whether its legs are exact (one clock), known as a range
//! (from the shortest to the longest time that is possible with these clocks), or unknown. The memory does not grow
//! with the number of messages.

use crate::clock_claim::{Claim, Judged};
use crate::parallel;
use crate::pass_error::PassError;
use std::collections::BTreeMap;
use tailbound_document::ClockWindow;
use tailbound_model::{Nanos, Severity, Warning};
use tailbound_record::{Record, TrialRecord};
use tailbound_stats::{ClockChange, NoBounds, SteadyParts};

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
    /// What the messages prove.
    pub clocks: SteadyParts,
    /// What the time services of both hosts claim, beside what the messages prove.
    pub claimed: Option<Judged>,
    /// Largest possible error, in ns, of kernel timestamps at the ping and at the pong end, which are converted from
    /// another clock of the same host.
    pub kernel_ns: [i64; 2],
}

/// Least share of the messages that must have been sent while both clocks were steady. With a smaller share, the clocks of
/// the hosts are not fit for the trial.
const STEADY_SHARE: f64 = 0.5;

impl Bounded {
    /// The bounds that the messages prove, narrowed by what the time services of both hosts claim, if both agree.
    pub fn narrowest(&self) -> &SteadyParts {
        self.claimed.as_ref().and_then(Judged::narrowed).unwrap_or(&self.clocks)
    }

    fn is_parted(&self) -> bool {
        self.clocks.steady_share() < STEADY_SHARE
    }
}

/// Trials whose two ends have different clocks, by trial id: the bounds of the difference between the clocks, or the
/// reason why there are no bounds.
#[derive(Debug, Default)]
pub(crate) struct Clocks(BTreeMap<usize, OfTrial>);

#[derive(Debug)]
struct OfTrial {
    bounds: Result<Bounded, NoBounds>,
    /// Time of slot 0, clock of the ping, ns.
    begin_ns: i64,
    /// Host of the pong.
    host: String,
}

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

impl Clocks {
    /// Reads the timestamps of those of the given trials whose ends have different clocks, and computes the bounds of
    /// the difference between the clocks.
    pub fn of(record: &Record, trials: &[usize]) -> Result<Clocks, PassError> {
        let two: Vec<&TrialRecord> =
            record.manifest.trials.iter().filter(|t| trials.contains(&t.id) && apart(t, "pong")).collect();
        let read = |trial: &&TrialRecord| {
            let bounds = record.clock_bounds(trial.id).map_err(|error| PassError { trial: Some(trial.id), error })?;
            let width = |end: &str| trial.ends.get(end).and_then(|end| end.clock_width_ns).unwrap_or(0);
            let of_trial = OfTrial {
                begin_ns: trial
                    .t0_ns
                    .filter(|t0| *t0 != 0)
                    .or_else(|| Some(bounds.as_ref().ok()?.begin_ns()))
                    .unwrap_or(0),
                bounds: bounds.map(|clocks| Bounded {
                    claimed: Claim::of(record, trial, [OWN, "pong"]).and_then(|claim| claim.judged(&clocks)),
                    clocks,
                    kernel_ns: [OWN, "pong"].map(width),
                }),
                host: trial.ends.get("pong").map_or_else(String::new, |pong| pong.host.clone()),
            };
            Ok((trial.id, of_trial))
        };
        Ok(Clocks(parallel::all(&two, read)?.into_iter().collect()))
    }

    /// Returns how exactly the legs of a trial are known.
    pub fn legs(&self, trial: usize) -> Legs<'_> {
        match self.0.get(&trial).map(|of_trial| &of_trial.bounds) {
            None => Legs::Exact,
            Some(Ok(bounds)) if !bounds.is_parted() => Legs::Bounded(bounds),
            Some(_) => Legs::Unknown,
        }
    }

    /// True if the ends of at least one of these trials have different clocks.
    pub fn differ(&self, trials: &[usize]) -> bool {
        trials.iter().any(|id| self.0.contains_key(id))
    }

    /// True if one of the clocks changed during so much of the trial that the trial is invalid. It is not known which clock,
    /// so no figure of the trial can be trusted.
    pub fn parted(&self, trial: usize) -> bool {
        self.0.get(&trial).is_some_and(|of_trial| of_trial.bounds.as_ref().is_ok_and(Bounded::is_parted))
    }

    /// Warnings about the clocks of trials whose two ends have different clocks.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> {
        let claims = self.0.iter().filter_map(|(trial, of)| {
            let judged = of.bounds.as_ref().ok()?.claimed.as_ref()?;
            Some(judged.warning()?.at_trial(*trial))
        });
        self.0.iter().filter_map(|(trial, clocks)| Some(clocks.warning()?.at_trial(*trial))).chain(claims)
    }

    /// The time spans in which one of the clocks changed, with the host of the pong.
    pub fn windows(&self) -> impl Iterator<Item = (&str, ClockWindow)> {
        self.0.iter().flat_map(|(trial, of_trial)| {
            let changes = of_trial.bounds.as_ref().map_or(&[][..], |bounds| bounds.clocks.changes());
            let window = |c: &ClockChange| {
                let (from_ns, to_ns, step_ns) = (c.from_ns, c.to_ns, c.least_ns);
                (of_trial.host.as_str(), ClockWindow { trial: *trial, from_ns, to_ns, step_ns, between_hosts: true })
            };
            changes.iter().map(window)
        })
    }
}

impl OfTrial {
    fn warning(&self) -> Option<Warning> {
        let bounds = match &self.bounds {
            Ok(bounds) => bounds,
            Err(_) => {
                let text = "ping and pong have different clocks, and messages went in one direction only, so the \
                            legs are not known";
                return Some(Warning::new("clocks_unbounded", Severity::Warning, text, ""));
            }
        };
        let changes = bounds.clocks.changes();
        let first = changes.first()?;
        // More changes than are necessary to explain the messages are possible.
        let times = match changes.len() {
            1 => String::new(),
            more => format!(" at least {more} times, first"),
        };
        let after = |ns: i64| Nanos(ns.saturating_sub(self.begin_ns));
        let by = match first.least_ns {
            0 => String::new(),
            least => format!(", by {} or more", Nanos(least.saturating_abs())),
        };
        let messages: u64 = changes.iter().map(|change| change.messages).sum();
        let then = if changes.len() == 1 { "then" } else { "at these times" };
        let (what, severity) = match bounds.is_parted() {
            true => ("more than half: the trial has no legs, and its round trips may be wrong", Severity::Invalid),
            false => (
                "their legs are only known to be shorter than their round trips, which may be wrong, too",
                Severity::Warning,
            ),
        };
        let text = format!(
            "the offset between the clocks of ping and pong changed{times} between {} and {} after slot 0{by}: one of the \
             clocks was stepped, or its speed was changed. It is not known which clock. {messages} messages were sent {then}; {what}",
            after(first.from_ns),
            after(first.to_ns),
        );
        let remedy = "Let the time services of both hosts settle before measuring, and configure them not to step \
            the clocks.";
        Some(Warning::new("clocks_moved", severity, text, remedy))
    }
}
