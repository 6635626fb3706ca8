//! Finds faults of the record itself: samples that are missing, damaged or from another trial, and trials that never
//! ran.
//!
//! A trial with a fault is in no figure; the report shows the other trials.

use std::collections::BTreeMap;
use tailbound_model::{FlowRows, Length, Measure, Rate, Severity, TrialSpec, Warning};
use tailbound_record::{Manifest, Record, RecordError, Source, Status, TrialStatus};

/// Trials that cannot be used, by trial id: each with the fault of its samples.
pub(crate) type SampleFaults = BTreeMap<usize, RecordError>;

/// Checks the samples of every trial that has samples or must have samples.
pub(crate) fn faults(record: &Record) -> SampleFaults {
    let all: Vec<usize> = record.manifest.plan.trials.iter().map(|t| t.id).collect();
    faults_of(record, &all)
}

/// Checks the samples of some trials, and returns the faulty trials.
pub(crate) fn faults_of(record: &Record, trials: &[usize]) -> SampleFaults {
    let manifest = &record.manifest;
    let mut faults = SampleFaults::new();
    for planned in manifest.plan.trials.iter().filter(|t| trials.contains(&t.id)) {
        let Some(trial) = manifest.trials.iter().find(|t| t.id == planned.id) else { continue };
        let ended = trial.status == TrialStatus::Valid;
        // A trial that failed or was interrupted may have no samples.
        if trial.source != Source::Samples || !(ended || record.has_slots(trial.id)) {
            continue;
        }
        if manifest.plan.conditions[planned.condition].spec.measure.flow().is_some_and(|f| f.rows == FlowRows::None) {
            continue;
        }
        let ended_early = manifest.until.as_ref().and_then(|until| until.ended_early.get(&trial.id)).copied();
        let planned = || slots(&manifest.plan.conditions[planned.condition].spec);
        let slots = if ended { ended_early.unwrap_or_else(planned) } else { 0 };
        if let Err(e) = record.check(trial.id, slots) {
            faults.insert(trial.id, e);
        }
    }
    faults
}

/// Number of slots that a valid trial must have; 0 if the number depends on the answers or on slots that were missed.
fn slots(spec: &TrialSpec) -> u64 {
    let Measure::PingPong(p) = &spec.measure else { return 0 };
    let measured = match (p.length, spec.rate) {
        (Length::Loops(_), _) | (Length::Duration(_), Rate::Max) => return 0,
        (Length::Slots(n), Rate::Max) => n,
        (length, Rate::Period(period)) => length.planned_slots(period.0),
    };
    measured.saturating_add(p.warm_up_slots)
}

/// Makes a warning from the fault of a trial's samples.
pub(crate) fn warning(record: &Record, trial: usize, fault: &RecordError) -> Warning {
    let (code, remedy) = match fault {
        RecordError::SamplesMissing { .. } => ("samples_missing", "Restore the file, or run the condition again."),
        RecordError::SamplesForeign { .. } => {
            ("samples_foreign", "Replace the file by the file of this trial, or run the condition again.")
        }
        RecordError::SamplesNotConsecutive { .. } => {
            ("samples_not_consecutive", "Restore the directory as the run wrote it, or run the condition again.")
        }
        _ => ("samples_damaged", "Restore the file, or run the condition again."),
    };
    Warning::new(code, Severity::Invalid, within(record, fault), remedy).at_trial(trial)
}

/// Warning about a file with facts or threads that cannot be read.
pub(crate) fn unreadable(record: &Record, code: &str, error: &RecordError) -> Warning {
    let text = format!("{}; the figures stand without it", within(record, error));
    Warning::new(code, Severity::Warning, text, "Restore the file.")
}

/// Text of an error, with paths relative to the directory of the record.
fn within(record: &Record, error: &RecordError) -> String {
    error.problem().what.replacen(&format!("{}/", record.dir().display()), "", 1)
}

/// Warning about trials of the plan that are missing from a record that claims to be complete.
pub(crate) fn missing_trials(manifest: &Manifest) -> Option<Warning> {
    let ended = |id: usize| {
        let status = manifest.trials.iter().find(|t| t.id == id).map(|t| t.status);
        matches!(status, Some(TrialStatus::Valid | TrialStatus::Invalid))
    };
    let mut lacking: Vec<usize> = manifest.plan.trials.iter().map(|t| t.id).filter(|id| !ended(*id)).collect();
    lacking.sort_unstable();
    let first = *lacking.first().filter(|_| manifest.status != Status::Incomplete)?;
    let which = match lacking.len() - 1 {
        0 => format!("trial {first}"),
        n => format!("trial {first} and {n} more"),
    };
    let text = format!("manifest.json says that the run ended, but not how {which} of its plan ended");
    Some(Warning::new(TRIALS_MISSING, Severity::Invalid, text, "Restore the manifest, or run the study again."))
}

/// Code of the warning about trials of the plan that are not in the record.
pub const TRIALS_MISSING: &str = "trials_missing";
