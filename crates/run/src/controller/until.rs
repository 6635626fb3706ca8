//! Runs that end at a message (`tailbound run --until`): whether a plan can fulfil the condition, and the message.

use super::RunError;
use super::repeat::repeat;
use tailbound_model::*;
use tailbound_record::{MatchedMessage, RecordWriter, TrialStatus};

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

/// Writes into the record that the run ends at a message of a trial. Returns false if the trial cannot be trusted, so
/// that the run goes on.
pub(super) fn ends_run(record: &mut RecordWriter, message: MatchedMessage) -> bool {
    let valid = record.manifest.trial(message.trial).status == TrialStatus::Valid;
    if let Some(until) = record.manifest.until.as_mut().filter(|_| valid) {
        tracing::info!(trial = message.trial, slot = message.slot, "a message fulfils the condition of the run");
        until.found = Some(message);
        return true;
    }
    false
}
