//! Budget report: whether a record keeps the limits of a budget, as far as the number of messages allows an answer.
//!
//! The input is a record, a [`Budget`](tailbound_model::Budget) and, if the budget asks for it, a baseline record. The
//! output is a [`BudgetReport`] with one check for each limit and condition. A limit holds if the whole interval of the
//! measured value lies below the limit, is broken if the whole interval lies above the limit, and is undecided
//! otherwise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcome of checking one limit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetOutcome {
    /// The limit is broken: the whole interval of the measured value lies above the limit.
    Broken,
    /// The check of the limit is undecided: the interval of the measured value contains the limit, or there are too few
    /// messages.
    Undecided,
    /// The limit holds: the whole interval of the measured value lies below the limit.
    Holds,
}

/// The check of one limit of a budget for one condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetCheck {
    /// Name, in words, of the condition that is checked against the limit.
    pub condition: String,
    /// Metric and statistic that are checked against the limit, e.g. `round_trip p99`.
    pub what: String,
    /// The limit in words, e.g. `at most 2 ms`, `none`.
    pub limit: String,
    /// The measured value of the checked statistic in words, with its unit.
    pub found: String,
    /// Outcome of checking this limit for this condition.
    pub outcome: BudgetOutcome,
    /// Reason why the check of the limit is undecided, or a restriction of the check's outcome; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// The checks of a record against all limits of a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetReport {
    /// Name of the budget, as in the budget file.
    pub name: String,
    /// Directory of the record that is checked against the budget.
    pub record: String,
    /// The checks against the limits, in the order of the budget's limits.
    pub checks: Vec<BudgetCheck>,
}

impl BudgetReport {
    /// The worst outcome of the checks against all limits of the budget.
    pub fn outcome(&self) -> BudgetOutcome {
        self.checks.iter().map(|c| c.outcome).min().unwrap_or(BudgetOutcome::Undecided)
    }

    /// Number of the checked limits that have the given outcome.
    pub fn count(&self, outcome: BudgetOutcome) -> usize {
        self.checks.iter().filter(|c| c.outcome == outcome).count()
    }
}

impl BudgetOutcome {
    /// The outcome of checking a limit as a word: `broken`, `undecided` or `holds`.
    pub fn word(self) -> &'static str {
        match self {
            BudgetOutcome::Broken => "broken",
            BudgetOutcome::Undecided => "undecided",
            BudgetOutcome::Holds => "holds",
        }
    }
}
