//! The causes of the late messages of a single trial, for a summary as soon as the trial has ended.

use crate::circumstances;
use crate::clocks::Clocks;
use crate::pass_error::PassError;
use crate::why::{explained_trial, facts, sums};
use tailbound_document::{CauseShare, IncidentTotals};
use tailbound_record::{Record, RecordError};

/// Incidents of one trial and the sums by cause, as the report gives them for a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialCauses {
    /// Numbers over all incidents of the trial.
    pub totals: IncidentTotals,
    /// Sums over those incidents of the trial that have a ledger, the largest first.
    pub causes: Vec<CauseShare>,
}

/// Computes the incidents and causes of one trial of a record. `None` if no message of the trial was answered, or if the
/// trial is one of a benchmark program.
///
/// # Errors
/// The record cannot be read, or the trial's samples are damaged.
pub fn causes_of_trial(record: &Record, trial: usize) -> Result<Option<TrialCauses>, RecordError> {
    let Some(planned) = record.manifest.plan.trials.iter().find(|t| t.id == trial) else { return Ok(None) };
    let error = |e: PassError| e.error;
    let clocks = Clocks::of(record, &[trial]).map_err(error)?;
    let all = facts(record, &[trial], &clocks).map_err(error)?;
    // A thread table that cannot be read is reported at the end of the run.
    let tables = circumstances::threads_of(record, planned, &mut Vec::new());
    let of_trial = |facts: &super::TrialFacts| {
        let found = facts.found.as_ref()?;
        let explained = explained_trial(record, &tables, facts)?;
        let (totals, causes) = sums::totals(std::iter::once(found), &explained.incidents);
        Some(TrialCauses { totals, causes })
    };
    Ok(all.first().and_then(of_trial))
}
