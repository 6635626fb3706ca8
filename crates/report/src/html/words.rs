//! The sections of the HTML page with findings, warnings and definitions of the figures.

use crate::escape::{escape, prose, thin};
use crate::tables::warnings;
use tailbound_document::{Finding, FindingLevel, Report};
use tailbound_model::Severity;

/// Number of findings about results that the HTML page shows; further findings are collapsed.
const RESULTS: usize = 4;

pub(crate) fn findings(report: &Report) -> String {
    let mut html = String::from("<section id=\"findings\" aria-label=\"Findings\"><ol class=\"findings\">\n");
    let results: Vec<&Finding> = report.findings.iter().filter(|f| f.level == FindingLevel::Result).collect();
    let folded = if results.len() > RESULTS + 1 { &results[RESULTS..] } else { &[] };
    let mut fold = Some(folded).filter(|f| !f.is_empty());
    let mut before = None;
    for finding in report.findings.iter().filter(|f| !folded.contains(f)) {
        if finding.level > FindingLevel::Result
            && let Some(folded) = fold.take()
        {
            html.push_str(&more(report, folded));
        }
        html.push_str(&item(report, finding, before.replace(finding.level) != Some(finding.level)));
    }
    if let Some(folded) = fold {
        html.push_str(&more(report, folded));
    }
    html.push_str("</ol></section>\n");
    html
}

fn more(report: &Report, folded: &[&Finding]) -> String {
    let items: String = folded.iter().map(|f| item(report, f, false)).collect();
    // Flows have the order of the plan, and round trips of a flow are next to the flow.
    let flows = report.findings.iter().any(|f| f.code.starts_with("flow"));
    let what = if flows { "more" } else { "more conditions with shorter tails" };
    format!(
        "<li class=\"result\"><span class=\"kind\"></span><details><summary>and {} {what}\
         </summary><ol class=\"findings\">{items}</ol></details></li>\n",
        folded.len()
    )
}

/// Adds a label with the kind of finding to the first finding of each kind.
fn item(report: &Report, finding: &Finding, first: bool) -> String {
    let (class, kind) = match finding.level {
        FindingLevel::Untrusted => ("untrusted", "not to be trusted"),
        FindingLevel::Failed => ("failed", "failed"),
        FindingLevel::Result if finding.code == "tool" => ("result", "printed by others"),
        FindingLevel::Result => ("result", "measured"),
        FindingLevel::Caution => ("caution", "mind"),
        FindingLevel::Hint => ("hint", "to know more"),
    };
    let kind = if first { kind } else { "" };
    let name = finding.conditions.first().and_then(|c| report.conditions.get(*c)).map_or("", |c| c.name.as_str());
    let text = match finding.text.strip_prefix(name).filter(|rest| !name.is_empty() && rest.starts_with(':')) {
        Some(rest) => format!("<strong>{}</strong>{}", escape(&thin(name)), prose(rest)),
        None => prose(&without_kind(&finding.text)),
    };
    let evidence = escape(&finding.evidence);
    let shown = evidence.split('-').next().unwrap_or_default();
    let shown = if shown == "condition" { "its row" } else { shown };
    format!(
        "<li class=\"{class}\"><span class=\"kind\">{kind}</span>{text} \
         <a class=\"evidence\" href=\"#{evidence}\">\u{2192}\u{202f}{shown}</a></li>\n"
    )
}

/// Returns the sentence of a finding without those words that the page shows beside the sentence.
fn without_kind(text: &str) -> String {
    let Some(rest) = text.strip_prefix("Not to be trusted: ") else { return text.to_owned() };
    let mut letters = rest.chars();
    letters.next().map_or(String::new(), |c| c.to_uppercase().collect()) + letters.as_str()
}

pub(crate) fn warnings(report: &Report) -> String {
    let mut html = String::from("<section id=\"warnings\"><h2>Warnings</h2>\n");
    if report.warnings.is_empty() {
        html.push_str("<p class=\"lead\">No warning was raised during the measurement.</p></section>\n");
        return html;
    }
    let mut sorted = warnings::grouped(&report.warnings);
    sorted.sort_by_key(|t| std::cmp::Reverse(t.warning.severity));
    html.push_str("<ul class=\"warnings\">\n");
    for told in sorted {
        let warning = told.warning;
        let class = match warning.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Invalid => "invalid",
        };
        let remedy = if warning.problem.remedy.is_empty() {
            String::new()
        } else {
            format!(" <span class=\"remedy\">{}</span>", prose(&warning.problem.remedy))
        };
        html.push_str(&format!(
            "<li class=\"{class}\"><span class=\"word\">{class}</span>{}: {}.{remedy}</li>\n",
            escape(&told.whom()),
            prose(warning.problem.what.trim_end_matches('.')),
        ));
    }
    html.push_str("</ul></section>\n");
    html
}

pub(crate) fn definitions() -> String {
    let entries = [
        (
            "slot",
            "A message that was due at a time fixed beforehand. With a rate, the sender never waits for an answer, \
                  so a late answer delays nothing and hides nothing. Slots of the warm-up are left out.",
        ),
        ("round trip", "Time from just before the send call to the receipt of the answer."),
        (
            "from intended",
            "Time from the moment at which the message was due to the receipt of the answer: the round trip plus the \
                lateness of the sender.",
        ),
        (
            "out, turnaround, back",
            "The three legs of a round trip: to the pong, inside the pong until its send call returned, and back. If \
                the ends have different clocks, only the smallest and the largest possible value of out and back are \
                known.",
        ),
        (
            "half of a round trip",
            "Half of the round trip, given only for the median. A stall affects one leg: see the \
            legs.",
        ),
        (
            "p99.9",
            "The smallest time within which 999 of 1,000 scheduled messages came back. A message that was lost or \
                   never sent counts as later than every time, so a loss cannot improve a quantile.",
        ),
        (
            "interval",
            "Two-sided, 95 %, from order statistics: no distribution is assumed. If messages depend on each other, \
                the interval is computed for the effective number of messages. An interval marked ~ or dashed is \
                still too narrow, because the dependence lasts as long as a trial, or trials differ.",
        ),
        ("needs N", "If fewer than N messages were measured, the quantile has no interval, and no number is given."),
        (
            "max",
            "The latest answer. The maximum has no interval; with 95 % confidence at most 3 in n messages are \
            later, where n is the effective number of messages.",
        ),
        ("mean, standard deviation", "Over answered messages only."),
    ];
    let list: String = entries.map(|(term, text)| format!("<dt>{term}</dt><dd>{text}</dd>")).concat();
    format!("<section id=\"definitions\"><h2>How the numbers are defined</h2>\n<dl>{list}</dl></section>\n")
}
