//! The section of the HTML page about a budget: for each limit whether the record keeps it, with the measured value.

use crate::budget::{sorted, summary};
use crate::escape::escape;
use crate::html::table::{left, table, words};
use tailbound_document::{BudgetCheck, BudgetOutcome, Report};

/// HTML of the section; empty if the report was not checked against a budget.
pub(crate) fn section(report: &Report) -> String {
    let Some(budget) = &report.budget else { return String::new() };
    let heads = ["outcome", "condition", "statistic", "limit", "found", "reason"].map(left);
    let rows: Vec<String> = sorted(budget).into_iter().map(row).collect();
    let class = if budget.outcome() == BudgetOutcome::Broken { "status bad" } else { "status" };
    format!(
        "<section id=\"budget\"><h2>Budget {} <span class=\"{class}\">{}</span></h2>\n<p class=\"lead\">{}.</p>\n{}</section>\n",
        escape(&budget.name),
        budget.outcome().word(),
        summary(budget),
        table(&heads, &rows),
    )
}

fn row(check: &BudgetCheck) -> String {
    let outcome = match check.outcome {
        BudgetOutcome::Broken => format!("<td class=\"l\"><span class=\"bad\">{}</span></td>", check.outcome.word()),
        BudgetOutcome::Undecided | BudgetOutcome::Holds => words(check.outcome.word()),
    };
    let sentence = |text: &str| format!("<td class=\"l sentence\">{}</td>", escape(text));
    let [condition, what, why] = [&check.condition, &check.what, &check.why].map(|text| sentence(text));
    format!("<tr>{outcome}{condition}{what}{}{}{why}</tr>\n", words(&check.limit), found(&check.found))
}

/// A cell with a measured value, whose interval has a line of its own.
fn found(text: &str) -> String {
    match text.strip_suffix(')').and_then(|text| text.split_once(" (")) {
        Some((value, interval)) => {
            format!("<td class=\"l\">{}<span class=\"interval\">{}</span></td>", escape(value), escape(interval))
        }
        None => words(text),
    }
}
