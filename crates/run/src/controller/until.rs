//! Runs that end at a message (`tailbound run --until`): whether a plan can fulfil the condition, how often its trials
//! are repeated, and what is left out of the record when the run ends.

use super::{RunError, trial_length};
use std::time::{Duration, Instant};
use tailbound_model::*;
use tailbound_record::{MatchedMessage, RecordWriter, TrialStatus, Until};

/// Largest number of trials of a run whose trials are repeated.
const MOST_TRIALS: usize = 100_000;

/// The request to end a run at a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntilOptions {
    /// The condition of the message at which the run ends.
    pub condition: UntilCondition,
    /// Time for which the trials of the study are repeated at most; `None` = they are not repeated.
    pub at_most: Option<Nanos>,
}

/// Repeats the trials of a plan so that they fill the time of the request.
///
/// # Errors
/// No message of the plan can fulfil a term of the condition.
pub fn repeat_until(plan: &mut Plan, until: &UntilOptions) -> Result<(), RunError> {
    let measured: Vec<&Condition> = plan.conditions.iter().filter(|c| c.not_possible.is_none()).collect();
    let never = |term: &&UntilTerm| !measured.iter().any(|c| term.applies_to(&c.spec));
    if let Some(term) = until.condition.0.iter().find(never) {
        let text = format!("no message of this study can fulfil `{term}`");
        let remedy =
            "answers are needed (`ping-pong`), and for `from_intended` and `send_lateness` a rate other than `max`";
        return Err(RunError::new(ExitCode::BadInput, text, remedy));
    }
    if let Some(at_most) = until.at_most {
        repeat(plan, at_most);
    }
    Ok(())
}

fn repeat(plan: &mut Plan, at_most: Nanos) {
    let round = plan.trials.clone();
    let expected_ns: i64 = round.iter().map(|t| trial_length::expected(&plan.conditions[t.condition].spec).0).sum();
    let most = MOST_TRIALS / round.len().max(1);
    let rounds = ((at_most.0 / expected_ns.max(1)) as usize + 1).clamp(1, most.max(1));
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

/// Decides after each trial whether the run goes on.
pub(super) struct UntilFound {
    end: Option<Instant>,
}

impl UntilFound {
    /// Begins with the first trial of a run. `until` is the request in the record of the run.
    pub fn begin(until: Option<&Until>) -> UntilFound {
        let time = |ns: Nanos| Duration::from_nanos(ns.0.max(0) as u64);
        UntilFound { end: until.and_then(|until| Instant::now().checked_add(time(until.at_most?))) }
    }

    /// True if trial `number` would end after the longest time of the run (`--at-most`). The first trial always runs.
    pub fn is_too_late(&self, number: usize, spec: &TrialSpec) -> bool {
        let expected = Duration::from_nanos(trial_length::expected(spec).0.max(0) as u64);
        // A scripted clock passes without real time.
        let expected = if trial_length::is_scripted(spec) { Duration::ZERO } else { expected };
        number > 0 && self.end.is_some_and(|end| Instant::now() + expected > end)
    }
}

/// Writes into the record that the run ends at a message of a trial. Returns false if the trial cannot be trusted, so
/// that the run goes on.
pub(super) fn ends_run(record: &mut RecordWriter, message: MatchedMessage) -> bool {
    let valid = record.manifest.trials[message.trial].status == TrialStatus::Valid;
    if let Some(until) = record.manifest.until.as_mut().filter(|_| valid) {
        tracing::info!(trial = message.trial, slot = message.slot, "a message fulfils the condition of the run");
        until.found = Some(message);
        return true;
    }
    false
}

/// Removes from the record's plan the trials that did not run, because the run has ended earlier as requested. A
/// condition without any trial counts as not possible, with the reason.
pub(super) fn leave_out_rest(record: &mut RecordWriter) {
    let manifest = &mut record.manifest;
    let ran = manifest.trials.iter().filter(|t| t.status != TrialStatus::Pending).count();
    manifest.trials.truncate(ran);
    let plan = &mut manifest.plan;
    plan.trials.truncate(ran);
    for condition in &mut plan.conditions {
        let has_trials = plan.trials.iter().any(|t| t.condition == condition.id);
        if !has_trials && condition.not_possible.is_none() {
            condition.not_possible = Some("the run ended before the first trial of this condition (`--until`)".into());
        }
    }
}
