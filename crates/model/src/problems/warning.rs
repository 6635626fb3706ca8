//! Warnings about a measurement, which are stored in the record and shown by every report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Severity of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WarningSeverity")]
pub enum Severity {
    /// Severity of a warning: the reader should know the information, but no figure is affected.
    Note,
    /// Severity of a warning: figures may differ from figures of a well configured machine.
    Warning,
    /// Severity of a warning: the trial is invalid.
    Invalid,
}

/// A warning about the measurement, as it is stored in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReportWarning")]
pub struct Warning {
    /// Code of the warning for programs, e.g. `memory_not_locked`, which stays the same if the text changes.
    pub code: String,
    /// Severity of the warning: how it affects the validity of the trial.
    pub severity: Severity,
    /// Text of the warning: what is wrong, and where.
    pub text: String,
    /// What the user can do; empty if no remedy is known.
    // In older records the key is `mend`.
    #[serde(alias = "mend")]
    pub remedy: String,
    /// Id of the trial that the warning is about; null for the whole run.
    pub trial: Option<usize>,
    /// Name of the end that the warning is about; null for all ends.
    pub end: Option<String>,
}

impl Warning {
    /// Makes a warning about a whole run, not about a single trial.
    pub fn new(code: &str, severity: Severity, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Warning { code: code.into(), severity, text: text.into(), remedy: remedy.into(), trial: None, end: None }
    }
    /// Returns the same warning, with the id of the trial to which it applies.
    pub fn at_trial(mut self, trial: usize) -> Self {
        self.trial = Some(trial);
        self
    }
    /// Returns the same warning, with the name of the end to which it applies.
    pub fn at_end(mut self, end: impl Into<String>) -> Self {
        self.end = Some(end.into());
        self
    }
}
