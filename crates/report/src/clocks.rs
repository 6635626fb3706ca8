//! Ends whose clocks differ: what the messages of a trial prove of one clock by the other.
//!
//! In: stamps of both ends. Out: for each trial, how its legs are to be read: as they stand (one clock), as a range (from
//! the least to the most that the clocks leave possible), or not at all. Nothing grows with the number of messages.

use crate::passes::PassError;
use crate::tasks;
use std::collections::BTreeMap;
use tailbound_model::{NO_TIME, Nanos, Severity, Warning};
use tailbound_record::{Columns, Record, RecordError, SlotBatch, TrialRecord};
use tailbound_stats::{ClockBounds, NoBounds, TwoClocks};

/// The end whose clock all times of a report are of.
pub(crate) const OWN: &str = "ping";

/// How the legs of a trial are to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Legs<'a> {
    /// Both ends have one clock.
    Exact,
    /// Each from a least to a most.
    Bounded(&'a Bounded),
    /// No figure.
    Unknown,
}

/// What is known of the two clocks of a trial.
#[derive(Debug)]
pub(crate) struct Bounded {
    pub clocks: ClockBounds,
    /// By how much a stamp of the kernel at the ping and at the pong end may be off: it is converted from another clock of
    /// its host.
    pub kernel_ns: [i64; 2],
}

/// Trials whose two ends have different clocks, and what is known of these.
#[derive(Debug, Default)]
pub(crate) struct Clocks(BTreeMap<usize, Result<Bounded, NoLegs>>);

/// Why a trial has no legs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NoLegs {
    why: NoBounds,
    /// From which message on the clocks do not fit, after slot 0; and by how much it is beyond what fits, at least.
    parted: Option<(i64, i64)>,
}

/// Whether the stamps of `end` are of another clock than those of [`OWN`].
pub(crate) fn apart(trial: &TrialRecord, end: &str) -> bool {
    let clock = |end: &str| trial.ends.get(end).map(|e| e.clock.as_str());
    // An end of which the record has nothing has no stamps either.
    matches!((clock(OWN), clock(end)), (Some(own), Some(other)) if own != other)
}

/// The same of a trial of a record.
pub(crate) fn apart_in(record: &Record, trial: usize, end: &str) -> bool {
    record.manifest.trials.iter().any(|t| t.id == trial && apart(t, end))
}

fn kernel_width(record: &Record, trial: usize, end: &str) -> i64 {
    let ends = record.manifest.trials.iter().find(|t| t.id == trial).map(|t| &t.ends);
    ends.and_then(|ends| ends.get(end)?.clock_width_ns).unwrap_or(0)
}

impl Clocks {
    /// Reads the stamps of those of `trials` whose ends have different clocks.
    pub fn of(record: &Record, trials: &[usize]) -> Result<Clocks, PassError> {
        let two: Vec<usize> = trials.iter().copied().filter(|id| apart_in(record, *id, "pong")).collect();
        let read = |trial: &usize| {
            let bounds = of_trial(record, *trial).map_err(|error| PassError { trial: Some(*trial), error })?;
            let kernel_ns = [OWN, "pong"].map(|end| kernel_width(record, *trial, end));
            Ok((*trial, bounds.map(|clocks| Bounded { clocks, kernel_ns })))
        };
        Ok(Clocks(tasks::all(&two, read)?.into_iter().collect()))
    }

    /// How the legs of a trial are to be read.
    pub fn legs(&self, trial: usize) -> Legs<'_> {
        match self.0.get(&trial) {
            None => Legs::Exact,
            Some(Ok(bounds)) => Legs::Bounded(bounds),
            Some(Err(_)) => Legs::Unknown,
        }
    }

    /// Some of these trials have two clocks.
    pub fn differ(&self, trials: &[usize]) -> bool {
        trials.iter().any(|id| self.0.contains_key(id))
    }

    /// One of the clocks was set anew while the trial ran. Which one cannot be told, so nothing of the trial is to be
    /// trusted.
    pub fn parted(&self, trial: usize) -> bool {
        matches!(self.0.get(&trial), Some(Err(NoLegs { why: NoBounds::Crossed, .. })))
    }

    /// What is wrong with the clocks of trials.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> {
        self.0.iter().filter_map(|(trial, clocks)| Some(warning(clocks.as_ref().err()?).at_trial(*trial)))
    }
}

fn warning(no: &NoLegs) -> Warning {
    match no.why {
        NoBounds::Crossed => {
            let moment = no.parted.map_or(String::new(), |(at, by)| {
                format!(" {} after slot 0, by {} or more", Nanos(at), Nanos(by.saturating_abs()))
            });
            let text = format!(
                "the clocks of ping and pong moved against each other{moment}: one of them was stepped, or its speed \
                 was changed. Which one cannot be told: the trial has no legs, and its round trips may be wrong"
            );
            let mend = "Let the time services of both hosts settle before measuring, and keep them from stepping.";
            Warning::new("clocks_moved", Severity::Invalid, text, mend)
        }
        NoBounds::OneWay => {
            let text = "ping and pong have different clocks, and messages went one way only: how long that way is cannot \
                        be told";
            Warning::new("clocks_unbounded", Severity::Warning, text, "")
        }
    }
}

fn of_trial(record: &Record, trial: usize) -> Result<Result<ClockBounds, NoLegs>, RecordError> {
    let mut two = TwoClocks::default();
    let mut parted = None;
    let t0 = record.manifest.trials.iter().find(|t| t.id == trial).and_then(|t| t.t0_ns).filter(|t0| *t0 != 0);
    let mut begin = t0;
    record.scan(trial, &Columns::of_clocks(), &mut |batch| {
        begin = begin.or_else(|| batch.send_begin_ns.iter().copied().find(|t| *t != NO_TIME));
        if parted.is_none() {
            let before = two.clone();
            feed(&mut two, batch, 0..batch.len());
            if crossed(&mut two) {
                parted = Some(moment(before, batch, begin.unwrap_or(0)));
            }
        }
    })?;
    Ok(match parted {
        Some(parted) => Err(NoLegs { why: NoBounds::Crossed, parted }),
        None => two.bounds().map_err(|why| NoLegs { why, parted: None }),
    })
}

fn feed(two: &mut TwoClocks, batch: &SlotBatch, rows: std::ops::Range<usize>) {
    for i in rows {
        let [sent, came] = [batch.send_begin_ns[i], batch.echo_in_ns[i]];
        if sent != NO_TIME && came != NO_TIME {
            two.there(sent, came);
        }
        // An answer may be there before the call that sends it has returned.
        let [answered, received] = [batch.echo_begin_ns[i], batch.receive_ns[i]];
        if answered != NO_TIME && received != NO_TIME {
            two.back(answered, received);
        }
    }
}

fn crossed(two: &mut TwoClocks) -> bool {
    two.bounds() == Err(NoBounds::Crossed)
}

/// The first message of the batch that does not fit to those before it, found by halving: when it was sent after `begin`,
/// and how far it lies beyond what they leave possible.
fn moment(before: TwoClocks, batch: &SlotBatch, begin: i64) -> Option<(i64, i64)> {
    let first = |rows: usize| {
        let mut two = before.clone();
        feed(&mut two, batch, 0..rows);
        two
    };
    let (mut fits, mut not) = (0, batch.len());
    while not - fits > 1 {
        let middle = fits + (not - fits) / 2;
        if crossed(&mut first(middle)) { not = middle } else { fits = middle }
    }
    let i = not.checked_sub(1)?;
    let sent = batch.send_begin_ns[i];
    let by = first(fits).bounds().ok().and_then(|bounds| {
        let beyond = |difference: i64, [low, high]: [i64; 2]| [low - difference, difference - high];
        let came = batch.echo_in_ns[i].wrapping_sub(sent);
        let [short, _] = beyond(came, bounds.offset_ns(sent));
        let received = batch.receive_ns[i];
        let [_, long] = match received != NO_TIME && batch.echo_begin_ns[i] != NO_TIME {
            true => beyond(batch.echo_begin_ns[i].wrapping_sub(received), bounds.offset_ns(received)),
            false => [0, 0],
        };
        Some(short.max(long)).filter(|by| *by > 0)
    });
    (sent != NO_TIME).then(|| (sent - begin, by.unwrap_or(0)))
}
