//! Metrics of the checks of a budget.

use super::{Metric, Point};
use tailbound_document::{BudgetOutcome, BudgetReport};

const OUTCOMES: [BudgetOutcome; 3] = [BudgetOutcome::Holds, BudgetOutcome::Undecided, BudgetOutcome::Broken];

/// The number of limits by outcome, and for each limit its outcome: 1 for the outcome that it has, 0 for the two others.
pub(super) fn metrics(report: &BudgetReport) -> Vec<Metric> {
    let whole = [("budget", report.name.clone()), ("record", report.record.clone())];
    let number = |outcome: BudgetOutcome| Point {
        labels: whole.iter().cloned().chain([("outcome", outcome.word().to_owned())]).collect(),
        value: report.count(outcome) as f64,
    };
    let mut states = Vec::new();
    for check in &report.checks {
        let own = [("condition", &check.condition), ("what", &check.what), ("limit", &check.limit)];
        for outcome in OUTCOMES {
            let own = own.iter().map(|(name, value)| (*name, (*value).clone()));
            let state = [("outcome", outcome.word().to_owned())];
            states.push(Point {
                labels: whole.iter().cloned().chain(own).chain(state).collect(),
                value: f64::from(u8::from(check.outcome == outcome)),
            });
        }
    }
    vec![
        Metric {
            name: "tailbound_budget_limits",
            help: "Number of limits of the budget with this outcome.",
            unit: "1",
            is_total: false,
            points: OUTCOMES.into_iter().map(number).collect(),
        },
        Metric {
            name: "tailbound_budget_limit",
            help: "1 for the outcome that this limit has, 0 for the other outcomes.",
            unit: "1",
            is_total: false,
            points: states,
        },
    ]
}
