//! Formats the checks of a budget for a terminal and as Markdown.

use crate::escape::escape_markdown as escape;
use crate::text::{Paint, wrap};
use tailbound_document::{BudgetCheck, BudgetOutcome, BudgetReport};
use tailbound_model::plain;

/// Summary of the checks of a budget, for example `3 limits hold, 1 is broken, 2 are undecided`.
pub(crate) fn summary(report: &BudgetReport) -> String {
    let many = |n: usize, one: &str, some: &str| format!("{n} {}", if n == 1 { one } else { some });
    let [holds, broken, undecided] =
        [BudgetOutcome::Holds, BudgetOutcome::Broken, BudgetOutcome::Undecided].map(|o| report.count(o));
    let holds = many(holds, "limit holds", "limits hold");
    let broken = many(broken, "is broken", "are broken");
    format!("{holds}, {broken}, {}", many(undecided, "is undecided", "are undecided"))
}

/// Formats the checks of a budget for a terminal: one paragraph for each limit, broken limits first.
pub fn render_budget_terminal(report: &BudgetReport, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let width = width.max(40);
    let mut lines = vec![paint.bold(&plain(&format!("{}: {}", report.name, summary(report))))];
    for check in sorted(report) {
        let found = if check.found.is_empty() { String::new() } else { format!(": {}", check.found) };
        let why = if check.why.is_empty() { String::new() } else { format!(" - {}", check.why) };
        let text =
            format!("{:<9} {}: {}, {}{found}{why}", check.outcome.word(), check.condition, check.what, check.limit);
        for line in wrap(&plain(&text), width, 10) {
            lines.push(if check.outcome == BudgetOutcome::Holds { line } else { paint.alarm(&line) });
        }
    }
    lines.iter().map(|l| format!("{}\n", l.trim_end())).collect()
}

/// Formats the checks of a budget as a Markdown table, broken limits first.
pub fn render_budget_markdown(report: &BudgetReport) -> String {
    let mut text = format!("## Budget {}: {}\n\n", escape(&plain(&report.name)), report.outcome().word());
    text.push_str(&format!("{} in `{}`.\n\n", summary(report), plain(&report.record)));
    text.push_str("| outcome | condition | statistic | limit | found | |\n| --- | --- | --- | ---: | --- | --- |\n");
    for c in sorted(report) {
        let cells = [c.outcome.word(), &c.condition, &c.what, &c.limit, &c.found, &c.why];
        text.push_str(&format!("| {} |\n", cells.map(|t| escape(&plain(t))).join(" | ")));
    }
    text
}

/// The checks of a budget, broken limits first.
pub(crate) fn sorted(report: &BudgetReport) -> Vec<&BudgetCheck> {
    let mut checks: Vec<&BudgetCheck> = report.checks.iter().collect();
    checks.sort_by_key(|c| c.outcome);
    checks
}
