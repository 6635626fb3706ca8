//! Budgets: checks whether a record keeps the limits of a budget.
//!
//! Input: a record, a [`Budget`](tailbound_model::Budget) and, if the budget compares with a baseline, a baseline
//! record. Output: a [`BudgetReport`] with one check for each limit and condition. A limit holds if the whole interval
//! lies below the limit, is broken if the whole interval lies above the limit, and is undecided otherwise.

mod absolute;
mod judged;
mod lines;
mod misses;
mod relative;
mod trials;

pub use lines::limit_lines;

use crate::analyse::analyse_with;
use crate::compare::CompareError;
use tailbound_document::BudgetReport;
use tailbound_model::{AtMost, Budget};
use tailbound_record::Record;

/// Checks a record against the limits of a budget.
///
/// # Errors
/// The budget names a metric, statistic, factor or level that the record does not have, or a record cannot be read.
pub fn judge_budget(record: &Record, budget: &Budget, baseline: Option<&Record>) -> Result<BudgetReport, CompareError> {
    let mut checks = Vec::new();
    let labels = budget.limits.iter().flat_map(|s| &s.limits).filter_map(|l| match &l.at_most {
        AtMost::Quantile(label, _) => label.parse().ok(),
        _ => None,
    });
    if budget.limits.iter().any(|set| !set.on_wire.is_empty()) {
        return Err(CompareError::refused(
            "the budget limits `on_wire`, and a record of a study has no topics of a capture",
            "use this budget with a directory of `tailbound watch --out`, or limit for example `round_trip`",
        ));
    }
    let report = analyse_with(record, labels)?;
    for set in &budget.limits {
        checks.extend(absolute::checks(record, &report, set)?);
    }
    match (&budget.baseline, baseline) {
        (Some(wanted), Some(baseline)) => checks.extend(relative::checks(&report, record, baseline, wanted)?),
        (Some(_), None) => {
            return Err(CompareError::refused(
                "the budget has a key `baseline`, but names no baseline record",
                "add `record` to `baseline`, or --baseline RECORD",
            ));
        }
        (None, Some(_)) => {
            return Err(CompareError::refused(
                "--baseline is given, but the budget does not name the figures to compare with the baseline",
                "add for example `baseline: { tolerance: 5 %, round_trip: [p50, p99] }`",
            ));
        }
        (None, None) => {}
    }
    Ok(BudgetReport { name: budget.name.clone(), record: record.dir().display().to_string(), checks })
}
