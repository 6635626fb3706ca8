//! Warnings about a measurement: typed, stored in the record, shown everywhere.

use serde::{Deserialize, Serialize};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// The figure may be other than on a well set up machine.
    Warning,
    /// The trial is invalid.
    Invalid,
}

/// One warning. `code` is stable, text is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable word, e.g. `memory_not_locked`, `agent_lost`, `clock_stepped`, `never_matched`.
    pub code: String,
    /// How bad.
    pub severity: Severity,
    /// What and where, one sentence.
    pub text: String,
    /// What to do, one sentence; may be empty.
    pub mend: String,
    /// Trial, or all.
    pub trial: Option<usize>,
    /// End, or all.
    pub end: Option<String>,
}

impl Warning {
    /// A warning about the whole run.
    pub fn new(code: &str, severity: Severity, text: impl Into<String>, mend: impl Into<String>) -> Self {
        Warning { code: code.into(), severity, text: text.into(), mend: mend.into(), trial: None, end: None }
    }
    /// The same, about one trial.
    pub fn at_trial(mut self, trial: usize) -> Self {
        self.trial = Some(trial);
        self
    }
    /// The same, about one end.
    pub fn at_end(mut self, end: impl Into<String>) -> Self {
        self.end = Some(end.into());
        self
    }
}
