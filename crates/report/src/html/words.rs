//! The sections of the HTML page with findings, warnings and definitions of the figures.

use crate::escape::{escape, prose, thin};
use crate::tables::warnings;
use tailbound_document::{Finding, FindingLevel, Report};
use tailbound_model::Severity;

/// Number of findings about results that the HTML page shows if it has no table of conditions; further findings are
/// collapsed.
const RESULTS: usize = 4;

/// Codes of findings that say why messages were late.
const WHY: [&str; 6] = ["causes", "starved", "load_blocked", "load", "patterns", "hold_and_release"];

/// Number of findings about causes that the page shows; of other reasons it shows one. Further ones are collapsed.
const REASONS: usize = 4;

fn is_why(finding: &Finding) -> bool {
    WHY.contains(&finding.code.as_str())
}

fn is_doubt(finding: &Finding) -> bool {
    finding.level > FindingLevel::Result && !is_why(finding)
}

/// True if the report has findings about the reasons for late messages.
pub(crate) fn has_why(report: &Report) -> bool {
    report.findings.iter().any(is_why)
}

/// True if the report has findings about the limits of its figures.
pub(crate) fn has_doubts(report: &Report) -> bool {
    report.findings.iter().any(is_doubt)
}

/// The findings about results. If the page has a table of conditions, the sentences about single conditions are
/// collapsed, because the table contains their figures.
pub(crate) fn findings(report: &Report) -> String {
    let mut html = String::from("<section id=\"findings\" aria-label=\"Findings\"><ol class=\"findings\">\n");
    let in_table = |f: &&Finding| f.code == "latency";
    let results: Vec<&Finding> = report.findings.iter().filter(|f| f.level == FindingLevel::Result).collect();
    let of_table: Vec<&Finding> = results.iter().copied().filter(in_table).collect();
    let folded: &[&Finding] = match (crate::tables::flow::is_all(report), results.len() > RESULTS + 1) {
        (false, _) => &of_table,
        (true, true) => &results[RESULTS..],
        (true, false) => &[],
    };
    let mut before = None;
    let shown = |f: &&Finding| f.level <= FindingLevel::Result && !folded.contains(f);
    for finding in report.findings.iter().filter(shown) {
        html.push_str(&item(report, finding, before.replace(finding.level) != Some(finding.level)));
    }
    if !folded.is_empty() {
        html.push_str(&more(report, folded));
    }
    html.push_str("</ol></section>\n");
    html
}

/// The findings about the reasons for late messages.
pub(crate) fn why(report: &Report) -> String {
    if !has_why(report) {
        return String::new();
    }
    let list = |code: &&str| {
        let all: Vec<&Finding> = report.findings.iter().filter(|f| f.code == **code).collect();
        let most = if *code == "causes" { REASONS } else { 1 };
        let shown = if all.len() > most + 1 { most } else { all.len() };
        let items = |some: &[&Finding]| some.iter().map(|f| item(report, f, false)).collect::<String>();
        let folded = match all.len() - shown {
            0 => String::new(),
            more => format!(
                "<li><details><summary>and {more} more</summary><ol class=\"findings plain\">{}</ol></details></li>\n",
                items(&all[shown..])
            ),
        };
        items(&all[..shown]) + &folded
    };
    let items: String = WHY.iter().map(list).collect();
    format!("<section id=\"why\"><h2>Causes</h2>\n<ol class=\"findings plain\">\n{items}</ol></section>\n")
}

/// The findings about the limits of the figures, collapsed, with the reasons why a tail could not be estimated.
pub(crate) fn how_sure(report: &Report, refused: &str) -> String {
    let all: Vec<&Finding> = report.findings.iter().filter(|f| is_doubt(f)).collect();
    if all.is_empty() && refused.is_empty() {
        return String::new();
    }
    let items: String = all.iter().map(|f| item(report, f, false)).collect();
    let list = if items.is_empty() { items } else { format!("<ol class=\"findings plain\">\n{items}</ol>\n") };
    let notes = match all.len() {
        0 => "why there is no estimate".to_owned(),
        1 => "1 note about the limits of the figures".to_owned(),
        n => format!("{n} notes about the limits of the figures"),
    };
    format!(
        "<section id=\"how-sure\"><h2>How sure</h2>\n<details><summary>{notes}</summary>\n{list}{refused}</details>\
         </section>\n"
    )
}

fn more(report: &Report, folded: &[&Finding]) -> String {
    let items: String = folded.iter().map(|f| item(report, f, false)).collect();
    // Flows have the order of the plan, and round trips of a flow are next to the flow.
    let flows = report.findings.iter().any(|f| f.code.starts_with("flow"));
    let what = match (flows, folded.len()) {
        (true, n) => format!("and {n} more"),
        (false, 1) => "The result in a sentence".to_owned(),
        (false, n) => format!("The table in {n} sentences, the worst condition first"),
    };
    format!(
        "<li class=\"result folded\"><details><summary>{what}</summary><ol class=\"findings plain\">{items}</ol>\
         </details></li>\n"
    )
}

/// Adds a label with the kind of finding to the first finding of each kind.
fn item(report: &Report, finding: &Finding, first: bool) -> String {
    let (class, kind) = match finding.level {
        FindingLevel::Untrusted => ("untrusted", "not to be trusted"),
        FindingLevel::Failed => ("failed", "failed"),
        FindingLevel::Result if finding.code == "tool" => ("result", "printed by others"),
        FindingLevel::Result => ("result", "measured"),
        FindingLevel::Caution => ("caution", ""),
        FindingLevel::Hint => ("hint", ""),
    };
    let kind = if first { format!("<span class=\"kind\">{kind}</span>") } else { String::new() };
    let name = finding.conditions.first().and_then(|c| report.conditions.get(*c)).map_or("", |c| c.name.as_str());
    let text = match finding.text.strip_prefix(name).filter(|rest| !name.is_empty() && rest.starts_with(':')) {
        Some(rest) => format!("<strong>{}</strong>{}", escape(&thin(name)), prose(rest)),
        None => prose(&without_kind(&finding.text)),
    };
    let evidence = escape(&finding.evidence);
    let shown = evidence.split('-').next().unwrap_or_default();
    let shown = if shown == "condition" { "its row" } else { shown };
    format!(
        "<li class=\"{class}\">{kind}{text} \
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
    if report.warnings.is_empty() {
        // A finding may still refer to this place.
        let referred = report.findings.iter().any(|f| f.evidence == "warnings");
        return if referred { "<span id=\"warnings\"></span>\n".to_owned() } else { String::new() };
    }
    let mut html = String::from("<section id=\"warnings\"><h2>Warnings</h2>\n");
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

/// The definitions of the page's terms, from the glossary.
pub(crate) fn definitions() -> String {
    format!(
        "<section id=\"definitions\"><h2>Definitions</h2>\n<details><summary>Terms of this page</summary>\n\
         <dl>{}</dl></details></section>\n",
        crate::html::terms::list()
    )
}
