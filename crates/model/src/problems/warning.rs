//! Warnings about a measurement, which are stored in the record and shown by every report.

use crate::Problem;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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

/// A warning about the measurement: a problem, and what it means for the figures.
///
/// In the JSON of the record and of the report, the members of the problem are members of the warning itself, and the
/// member `what` has the name `text`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Warning {
    /// Severity of the warning: how it affects the validity of the trial.
    pub severity: Severity,
    /// Problem that the warning is about: what is wrong and where, and what the user can do.
    pub problem: Problem,
    /// Id of the trial that the warning is about; null for the whole run.
    pub trial: Option<usize>,
    /// Name of the end that the warning is about; null for all ends.
    pub end: Option<String>,
}

impl Warning {
    /// Makes a warning about a whole run, not about a single trial.
    pub fn new(code: &str, severity: Severity, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Warning::of(severity, Problem::new(code, text, remedy))
    }
    /// Makes a warning about a whole run from a problem.
    pub fn of(severity: Severity, problem: impl Into<Problem>) -> Self {
        Warning { severity, problem: problem.into(), trial: None, end: None }
    }
    /// Sets the trial that the warning is about.
    pub fn at_trial(mut self, trial: usize) -> Self {
        self.trial = Some(trial);
        self
    }
    /// Sets the end that the warning is about.
    pub fn at_end(mut self, end: impl Into<String>) -> Self {
        self.end = Some(end.into());
        self
    }
}

/// A warning about the measurement, as it is stored in the record.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReportWarning")]
struct Written {
    /// Code of the warning for programs, e.g. `memory_not_locked`, which stays the same if the text changes.
    code: String,
    /// Severity of the warning: how it affects the validity of the trial.
    severity: Severity,
    /// Text of the warning: what is wrong, and where.
    text: String,
    /// What the user can do; empty if no remedy is known.
    // In older records the key is `mend`.
    #[serde(alias = "mend")]
    remedy: String,
    /// Id of the trial that the warning is about; null for the whole run.
    trial: Option<usize>,
    /// Name of the end that the warning is about; null for all ends.
    end: Option<String>,
}

impl From<Written> for Warning {
    fn from(w: Written) -> Warning {
        Warning { trial: w.trial, end: w.end, ..Warning::of(w.severity, Problem::new(w.code, w.text, w.remedy)) }
    }
}

impl From<Warning> for Written {
    fn from(Warning { severity, problem, trial, end }: Warning) -> Written {
        // `end` is the place of a warning.
        let Problem { code, what, remedy, at: _ } = problem;
        Written { code, severity, text: what, remedy, trial, end }
    }
}

impl JsonSchema for Warning {
    fn schema_name() -> Cow<'static, str> {
        Written::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Written::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Written::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_of_a_record_has_its_problem_beside_its_other_members() {
        let json = r#"{"code":"c","severity":"note","text":"what","remedy":"do","trial":3,"end":null}"#;
        let warning = Warning::new("c", Severity::Note, "what", "do").at_trial(3);
        assert_eq!(serde_json::to_string(&warning).unwrap(), json);
        assert_eq!(serde_json::from_str::<Warning>(json).unwrap(), warning);
        let older = json.replace("remedy", "mend");
        assert_eq!(serde_json::from_str::<Warning>(&older).unwrap(), warning);
    }
}
