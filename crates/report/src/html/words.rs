//! Findings, warnings, and how the numbers are defined.

use super::escape::{escape, prose, thin};
use crate::document::{Finding, FindingLevel, Report, WarningSeverity};
use crate::same_warnings;

/// Results beyond this many are folded.
const RESULTS: usize = 4;

pub(super) fn findings(report: &Report) -> String {
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
    // Flows are in the order of the plan, and round trips within them beside them.
    let flows = report.findings.iter().any(|f| f.code.starts_with("flow"));
    let what = if flows { "more" } else { "more conditions with shorter tails" };
    format!(
        "<li class=\"result\"><span class=\"kind\"></span><details><summary>and {} {what}\
         </summary><ol class=\"findings\">{items}</ol></details></li>\n",
        folded.len()
    )
}

/// The kind of news stands beside the first of its kind.
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

/// The sentence without what stands beside it.
fn without_kind(text: &str) -> String {
    let Some(rest) = text.strip_prefix("Not to be trusted: ") else { return text.to_owned() };
    let mut letters = rest.chars();
    letters.next().map_or(String::new(), |c| c.to_uppercase().collect()) + letters.as_str()
}

pub(super) fn warnings(report: &Report) -> String {
    let mut html = String::from("<section id=\"warnings\"><h2>Warnings</h2>\n");
    if report.warnings.is_empty() {
        html.push_str("<p class=\"lead\">None was raised while measuring.</p></section>\n");
        return html;
    }
    let mut sorted = same_warnings::told(&report.warnings);
    sorted.sort_by_key(|t| std::cmp::Reverse(t.warning.severity));
    html.push_str("<ul class=\"warnings\">\n");
    for told in sorted {
        let warning = told.warning;
        let class = match warning.severity {
            WarningSeverity::Note => "note",
            WarningSeverity::Warning => "warning",
            WarningSeverity::Invalid => "invalid",
        };
        let mend = if warning.mend.is_empty() {
            String::new()
        } else {
            format!(" <span class=\"mend\">{}</span>", prose(&warning.mend))
        };
        html.push_str(&format!(
            "<li class=\"{class}\"><span class=\"word\">{class}</span>{}: {}.{mend}</li>\n",
            escape(&told.whom()),
            prose(warning.text.trim_end_matches('.')),
        ));
    }
    html.push_str("</ul></section>\n");
    html
}

pub(super) fn definitions() -> String {
    let entries = [
        (
            "slot",
            "A message that was due at a time fixed beforehand. The sender never waits for an answer, so a late \
                  answer delays nothing and hides nothing. Slots of the warm-up are left out.",
        ),
        ("round trip", "Answer received minus just before the send call."),
        (
            "from intended",
            "Answer received minus when the message was due: the round trip and the sender's own lateness.",
        ),
        (
            "out, turnaround, back",
            "The three legs of a round trip: to the pong, within it until its send call returned, and back. Where the \
             ends have different clocks, out and back are known from a least to a most only.",
        ),
        ("half of a round trip", "A figure of location only, for the median. A stall hits one leg: look at the legs."),
        (
            "p99.9",
            "The smallest time within which 999 of 1,000 scheduled messages came back. A message that was lost or \
                   never sent is later than every time, so quantiles cannot look better for it.",
        ),
        (
            "interval",
            "Two-sided, 95 %, from order statistics: it assumes nothing of the distribution. Where messages depend on \
                      each other it is that of as many independent ones as they are worth. Marked ~ or dashed: even so \
                      too narrow, because the dependence lasts as long as a trial, or trials differ.",
        ),
        ("needs N", "With fewer messages the quantile has no interval, and no number is given."),
        ("max", "The latest answer. It has no interval; with 95 % confidence at most 3 in n messages are later."),
        ("mean, standard deviation", "Over answered messages only."),
    ];
    let list: String = entries.map(|(term, text)| format!("<dt>{term}</dt><dd>{text}</dd>")).concat();
    format!("<section id=\"definitions\"><h2>How the numbers are defined</h2>\n<dl>{list}</dl></section>\n")
}
