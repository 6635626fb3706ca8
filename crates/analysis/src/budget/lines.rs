//! The limits of a budget that figures of a report show as lines.

use crate::budget::absolute::selected;
use crate::compare::CompareError;
use tailbound_document::{LimitLine, Report};
use tailbound_model::{AtMost, Budget, Limit};

/// Limits of a budget for latencies, with the conditions of a report to which they apply, in the order of the budget. Limits for
/// losses, flows and runs of late messages are no latencies, so that they have no lines.
///
/// # Errors
/// The budget names a factor or level that the report does not have.
pub fn limit_lines(report: &Report, budget: &Budget) -> Result<Vec<LimitLine>, CompareError> {
    let mut lines = Vec::new();
    for set in &budget.limits {
        let conditions: Vec<usize> = selected(report, set)?.iter().map(|condition| condition.id).collect();
        lines.extend(set.limits.iter().filter_map(|limit| line(budget, limit, &conditions)));
    }
    Ok(lines)
}

fn line(budget: &Budget, limit: &Limit, conditions: &[usize]) -> Option<LimitLine> {
    let (AtMost::Quantile(_, value) | AtMost::Max(value) | AtMost::Mean(value)) = &limit.at_most else { return None };
    Some(LimitLine {
        budget: budget.name.clone(),
        conditions: conditions.to_vec(),
        metric: limit.metric.key().to_owned(),
        statistic: limit.at_most.key().to_owned(),
        limit_ns: value.0,
    })
}
