//! Formats the checks of a budget as JUnit XML for CI systems: one test case for each limit and condition.

use tailbound_document::{BudgetCheck, BudgetOutcome, BudgetReport};
use tailbound_model::plain;

/// Returns the JUnit XML document. An undecided limit counts as the outcome `undecided`; if this is `None`, the limit
/// counts as skipped.
pub fn render_budget_junit(report: &BudgetReport, undecided: Option<BudgetOutcome>) -> String {
    let counts_as = |c: &BudgetCheck| match c.outcome {
        BudgetOutcome::Undecided => undecided.unwrap_or(BudgetOutcome::Undecided),
        decided => decided,
    };
    let of = |outcome: BudgetOutcome| report.checks.iter().filter(|c| counts_as(c) == outcome).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        report.checks.len(),
        of(BudgetOutcome::Broken),
        of(BudgetOutcome::Undecided)
    );
    let name = escape(&report.name);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tailbound budget\" {counts}>\n  <testsuite \
         name=\"{name}\" {counts}>\n"
    );
    for check in &report.checks {
        let case = format!("{} {}", check.what, check.limit);
        text.push_str(&format!(
            "    <testcase classname=\"{name}.{}\" name=\"{}\">\n",
            escape(&check.condition),
            escape(&case)
        ));
        let parts = [check.outcome.word(), &check.found, &check.why];
        let told: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        let told = escape(&told.join(": "));
        text.push_str(&match counts_as(check) {
            BudgetOutcome::Broken => format!("      <failure message=\"{told}\"/>\n"),
            BudgetOutcome::Undecided => format!("      <skipped message=\"{told}\"/>\n"),
            BudgetOutcome::Holds => format!("      <system-out>{told}</system-out>\n"),
        });
        text.push_str("    </testcase>\n");
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// Escapes characters with a special meaning in XML. Characters that are not allowed in XML have been removed before.
fn escape(text: &str) -> String {
    let text = plain(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
