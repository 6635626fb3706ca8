//! Budgets: whether a record keeps its limits, as far as its messages can tell.
//!
//! In go a record, a [`Budget`](tailbound_model::Budget) and, where the budget asks for one, a baseline record; out
//! comes a [`BudgetReport`] with one check for each limit and condition. A limit holds when the whole interval lies below
//! it, is broken when the whole interval lies above, and is undecided in between.

mod absolute;
mod junit;
mod relative;
mod render;
mod trials;

pub use junit::render_budget_junit;
pub use render::{render_budget_markdown, render_budget_terminal};

use crate::analyse::analyse_with;
use crate::compare::CompareError;
use tailbound_model::{AtMost, Budget};
use tailbound_record::Record;

/// What became of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetOutcome {
    /// The interval lies above it.
    Broken,
    /// It cannot be told.
    Undecided,
    /// The interval lies below it.
    Holds,
}

/// One limit of one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetCheck {
    /// The condition, in words.
    pub condition: String,
    /// Metric and statistic, e.g. `round_trip p99`.
    pub what: String,
    /// The limit, in words: `at most 2 ms`, `none`.
    pub limit: String,
    /// What was found, in words.
    pub found: String,
    /// The outcome.
    pub outcome: BudgetOutcome,
    /// Why it is undecided, or what must be known beside the outcome; may be empty.
    pub why: String,
}

/// All limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetReport {
    /// The budget's name.
    pub name: String,
    /// The record.
    pub record: String,
    /// In the order of the budget.
    pub checks: Vec<BudgetCheck>,
}

impl BudgetReport {
    /// The worst of all outcomes.
    pub fn outcome(&self) -> BudgetOutcome {
        self.checks.iter().map(|c| c.outcome).min().unwrap_or(BudgetOutcome::Undecided)
    }

    /// How many have this outcome.
    pub fn count(&self, outcome: BudgetOutcome) -> usize {
        self.checks.iter().filter(|c| c.outcome == outcome).count()
    }
}

/// Judges a record.
///
/// # Errors
/// The budget names a metric, statistic, factor or level that the record lacks; a record cannot be read.
pub fn judge_budget(record: &Record, budget: &Budget, baseline: Option<&Record>) -> Result<BudgetReport, CompareError> {
    let mut checks = Vec::new();
    let labels = budget.limits.iter().flat_map(|s| &s.limits).filter_map(|l| match &l.at_most {
        AtMost::Quantile(label, _) => label.parse().ok(),
        _ => None,
    });
    let report = analyse_with(record, labels)?;
    for set in &budget.limits {
        checks.extend(absolute::checks(record, &report, set)?);
    }
    match (&budget.baseline, baseline) {
        (Some(wanted), Some(baseline)) => checks.extend(relative::checks(&report, record, baseline, wanted)?),
        (Some(_), None) => {
            return Err(CompareError::refused(
                "the budget has a baseline, but names no record for it\n  what to do: add `record` to `baseline`, or \
                 --baseline RECORD",
            ));
        }
        (None, Some(_)) => {
            return Err(CompareError::refused(
                "--baseline, but the budget does not say what may not become worse\n  what to do: add for example \
                 `baseline: { tolerance: 5 %, round_trip: [p50, p99] }`",
            ));
        }
        (None, None) => {}
    }
    Ok(BudgetReport { name: budget.name.clone(), record: record.dir().display().to_string(), checks })
}
