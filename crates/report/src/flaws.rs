//! What is wrong with the record itself: samples that are missing, another trial's or damaged, trials that never ran.
//!
//! A trial with a flaw is in no figure; everything else is shown.

use crate::findings::TRIALS_MISSING;
use std::collections::BTreeMap;
use tailbound_model::{FlowRows, Length, Measure, Rate, Severity, TrialSpec, Warning};
use tailbound_record::{Manifest, Record, RecordError, Source, Status, TrialStatus};

/// Trials that cannot be used, and why.
pub(crate) type Flaws = BTreeMap<usize, RecordError>;

/// Looks at the samples of every trial that has, or must have, some.
pub(crate) fn flaws(record: &Record) -> Flaws {
    let all: Vec<usize> = record.manifest.plan.trials.iter().map(|t| t.id).collect();
    flaws_of(record, &all)
}

/// The same of some trials.
pub(crate) fn flaws_of(record: &Record, trials: &[usize]) -> Flaws {
    let manifest = &record.manifest;
    let mut flaws = Flaws::new();
    for planned in manifest.plan.trials.iter().filter(|t| trials.contains(&t.id)) {
        let Some(trial) = manifest.trials.iter().find(|t| t.id == planned.id) else { continue };
        let ended = trial.status == TrialStatus::Valid;
        // A trial that failed, or was cut off, may have come to no samples.
        if trial.source != Source::Samples || !(ended || record.has_slots(trial.id)) {
            continue;
        }
        if manifest.plan.conditions[planned.condition].spec.measure.flow().is_some_and(|f| f.rows == FlowRows::None) {
            continue;
        }
        let slots = if ended { slots(&manifest.plan.conditions[planned.condition].spec) } else { 0 };
        if let Err(e) = record.check(trial.id, slots) {
            flaws.insert(trial.id, e);
        }
    }
    flaws
}

/// How many slots a valid trial has; 0 where the answers decide.
fn slots(spec: &TrialSpec) -> u64 {
    let Measure::PingPong(p) = &spec.measure else { return 0 };
    let measured = match (p.length, spec.rate) {
        (Length::Slots(n), _) => n,
        (Length::Duration(d), Rate::Period(period)) => (d.0 / period.0.max(1)).max(1) as u64,
        (Length::Duration(_), Rate::Max) => return 0,
    };
    measured.saturating_add(p.warm_up_slots)
}

/// The flaw of a trial as a warning.
pub(crate) fn warning(record: &Record, trial: usize, flaw: &RecordError) -> Warning {
    let (code, mend) = match flaw {
        RecordError::SamplesMissing { .. } => ("samples_missing", "Restore the file, or run the condition again."),
        RecordError::SamplesForeign { .. } => {
            ("samples_foreign", "Put the trial's own file there, or run the condition again.")
        }
        RecordError::SamplesNotConsecutive { .. } => {
            ("samples_not_consecutive", "Restore the folder as it was written, or run the condition again.")
        }
        _ => ("samples_damaged", "Restore the file, or run the condition again."),
    };
    Warning::new(code, Severity::Invalid, within(record, flaw), mend).at_trial(trial)
}

/// A file of circumstances that cannot be read.
pub(crate) fn unreadable(record: &Record, code: &str, error: &RecordError) -> Warning {
    let text = format!("{}; the figures stand without it", within(record, error));
    Warning::new(code, Severity::Warning, text, "Restore the file.")
}

/// The error with its path within the record.
fn within(record: &Record, error: &RecordError) -> String {
    error.to_string().replacen(&format!("{}/", record.dir().display()), "", 1)
}

/// Trials of the plan that a record which says it is complete does not have.
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
