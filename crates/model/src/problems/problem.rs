//! A problem that the user can fix: what is wrong, where, and what to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A problem that the user can fix.
///
/// `Display` writes the problem on one line: the place, what is wrong, and the remedy. [`Problem::paragraph`] writes
/// the problem for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Code of the problem for programs, e.g. `memory_not_locked`. The code stays the same if the text changes.
    pub code: String,
    /// What is wrong, in one sentence without a full stop.
    pub what: String,
    /// What the user can do, in one sentence without a full stop; empty if no remedy is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Place of the problem: `file:line:column`, an end, or a host; absent if `what` already names the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl Problem {
    /// Creates a problem whose place (`at`) is not set. `remedy` may be empty.
    pub fn new(code: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { code: code.into(), what: what.into(), remedy: remedy.into(), at: None }
    }

    /// Adds the place of the problem: `file:line:column`, an end, or a host.
    pub fn at(mut self, place: impl Into<String>) -> Problem {
        self.at = Some(place.into());
        self
    }

    /// Returns the same problem with another remedy.
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Problem {
        self.remedy = remedy.into();
        self
    }

    /// Puts `context: `, e.g. the name of a host, before the text that says what is wrong.
    pub fn context(mut self, context: impl fmt::Display) -> Problem {
        self.what = format!("{context}: {}", self.what);
        self
    }

    /// The problem for a terminal: a line that says what is wrong, and an indented line that says what to do.
    pub fn paragraph(&self) -> String {
        let remedy = if self.remedy.is_empty() { "" } else { "\n  help: " };
        format!("{}{}{remedy}{}", self.place(), self.what, self.remedy)
    }

    fn place(&self) -> String {
        self.at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = if self.remedy.is_empty() { "" } else { "; " };
        write!(f, "{}{}{remedy}{}", self.place(), self.what, self.remedy)
    }
}

impl std::error::Error for Problem {}

/// Implements `Display` and the conversion to a [`Problem`] for an error type with a method `problem(&self) -> Problem`.
///
/// `Display` writes the problem on one line.
#[macro_export]
macro_rules! display_as_problem {
    ($error:ty) => {
        impl std::fmt::Display for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.problem().fmt(f)
            }
        }

        impl From<$error> for $crate::Problem {
            fn from(error: $error) -> $crate::Problem {
                error.problem()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::Problem;

    #[test]
    fn a_problem_is_written_on_one_line_or_as_a_paragraph() {
        let problem = Problem::new("no_interface", "there is no interface eth7", "these exist: eth0, lo").at("ping");
        assert_eq!(problem.to_string(), "ping: there is no interface eth7; these exist: eth0, lo");
        assert_eq!(problem.paragraph(), "ping: there is no interface eth7\n  help: these exist: eth0, lo");
        let bare = Problem::new("lost", "the agent was lost", "").context("host b");
        assert_eq!((bare.to_string(), bare.paragraph()), ("host b: the agent was lost".into(), bare.to_string()));
    }

    #[test]
    fn keys_without_a_value_are_left_out() {
        let problem = Problem::new("lost", "the agent was lost", "");
        let json = serde_json::to_string(&problem).unwrap();
        assert_eq!(json, r#"{"code":"lost","what":"the agent was lost"}"#);
        assert_eq!(serde_json::from_str::<Problem>(&json).unwrap(), problem);
    }
}
