//! Repeats the trials of a plan (`tailbound run --for`, `--at-most`): how often, when no further trial begins, and what is
//! left out of the record when the run ends.

use super::rolling::OldTrials;
use super::{RunError, trial_length};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};
use tailbound_model::*;
use tailbound_record::{Manifest, RecordWriter, TrialStatus};

/// Largest number of trials of a run whose trials are repeated.
const MOST_TRIALS: usize = 100_000;

/// The request to repeat the trials of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatOptions {
    /// Time for which the trials are repeated.
    pub time: Nanos,
    /// No trial begins after the record has this size; `None` = its size has no limit.
    pub disk: Option<ByteSize>,
    /// Whether the oldest trials are removed, in place of the end of the run, when the record has this size.
    pub rolling: bool,
}

/// Repeats the trials of a plan so that they fill this time.
pub fn repeat(plan: &mut Plan, time: Nanos) {
    let round = plan.trials.clone();
    let expected_ns: i64 = round.iter().map(|t| trial_length::expected(&plan.conditions[t.condition].spec).0).sum();
    let most = MOST_TRIALS / round.len().max(1);
    let rounds = ((time.0 / expected_ns.max(1)) as usize + 1).clamp(1, most.max(1));
    let blocks = round.iter().map(|t| t.block).max().unwrap_or(0);
    let repeats = round.iter().map(|t| t.repeat).max().unwrap_or(0) + 1;
    for n in 1..rounds {
        for trial in &round {
            // A plan with one lab keeps this lab for all rounds.
            let block = if blocks == 0 { 0 } else { trial.block + n * (blocks + 1) };
            let (id, repeat) = (plan.trials.len(), trial.repeat + n * repeats);
            plan.trials.push(Trial { id, repeat, block, ..trial.clone() });
        }
    }
}

/// Decides before each trial whether the run goes on.
pub(super) struct Limits {
    end: Option<Instant>,
    disk: Option<ByteSize>,
    /// The trials that are removed; `None` if none is removed.
    old: Option<OldTrials>,
}

impl Limits {
    /// Begins with the first trial of a run.
    pub fn begin(manifest: &Manifest) -> Limits {
        let time = |ns: Nanos| Duration::from_nanos(ns.0.max(0) as u64);
        let repeated = manifest.repeated.as_ref();
        let whole = manifest.until.as_ref().and_then(|until| until.at_most).or(repeated.map(|r| r.time));
        let end = whole.and_then(|whole| Instant::now().checked_add(time(whole)));
        let old = repeated.and_then(|r| r.rolling.as_ref()).map(|_| OldTrials::default());
        Limits { end, disk: repeated.and_then(|r| r.disk), old }
    }

    /// True if trial `number` would end after the longest time of the run. The first trial always runs.
    pub fn is_too_late(&self, number: usize, spec: &TrialSpec) -> bool {
        let expected = Duration::from_nanos(trial_length::expected(spec).0.max(0) as u64);
        // A scripted clock passes without real time.
        let expected = if trial_length::is_scripted(spec) { Duration::ZERO } else { expected };
        number > 0 && self.end.is_some_and(|end| Instant::now() + expected > end)
    }

    /// True if no further trial may begin, because the record has its largest size and no trial can be removed. This is then
    /// written into the record. The first trial always runs.
    ///
    /// # Errors
    /// An old trial cannot be removed.
    pub fn is_too_large(&mut self, number: usize, record: &mut RecordWriter) -> Result<bool, RunError> {
        let Some(most) = self.disk.filter(|_| number > 0) else { return Ok(false) };
        // If the size cannot be read, writing the next samples fails too, with the reason.
        let is_full = |record: &RecordWriter| bytes(record.dir()).is_ok_and(|bytes| bytes >= most.0);
        while is_full(record) {
            if let Some(old) = &mut self.old
                && old.make_room(record)?
            {
                continue;
            }
            if let Some(repeated) = &mut record.manifest.repeated {
                repeated.disk_reached = true;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Notes the times of a trial that has ended.
    pub fn ended(&mut self, record: &mut RecordWriter, trial: usize) {
        if let Some(old) = &mut self.old {
            old.add(record, trial);
        }
    }
}

/// True if the trials of the study were repeated to fill a time.
pub(super) fn fills_a_time(manifest: &Manifest) -> bool {
    manifest.repeated.is_some() || manifest.until.as_ref().is_some_and(|until| until.at_most.is_some())
}

/// Size of all files below a directory.
fn bytes(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        sum += if facts.is_dir() { bytes(&entry.path())? } else { facts.len() };
    }
    Ok(sum)
}

/// Removes from the record's plan the trials that did not run, because the run has ended earlier as requested. A
/// condition without any trial counts as not possible, with the reason.
pub(super) fn leave_out_rest(record: &mut RecordWriter) {
    let manifest = &mut record.manifest;
    let option = if manifest.until.is_some() { "--until" } else { "--for" };
    let ran = manifest.trials.iter().filter(|t| t.status != TrialStatus::Pending).count();
    manifest.trials.truncate(ran);
    let plan = &mut manifest.plan;
    plan.trials.truncate(ran);
    for condition in &mut plan.conditions {
        let has_trials = plan.trials.iter().any(|t| t.condition == condition.id);
        if !has_trials && condition.not_possible.is_none() {
            condition.not_possible =
                Some(format!("the run ended before the first trial of this condition (`{option}`)"));
        }
    }
}
