//! The section of the HTML page about figures that other benchmark programs printed.

use crate::escape::{escape, prose};
use crate::html::table::{left, table, words};
use crate::tables::{side_by_side, tools};
use tailbound_document::{Report, SideBySide};

pub(crate) fn section(report: &Report) -> String {
    if report.tools.is_empty() {
        return String::new();
    }
    let mut rows = Vec::new();
    for tool in &report.tools {
        let mut notes: Vec<String> = tool.definition.iter().chain(&tool.remarks).map(|d| prose(d)).collect();
        if !tool.unknown.is_empty() {
            notes.push(format!("Not known: {}.", escape(&tool.unknown.join(", "))));
        }
        notes.extend(tool.commands.iter().map(|(end, c)| format!("{}: <code>{}</code>", escape(end), escape(c))));
        notes.extend(tool.processes.iter().map(|(end, ran)| format!("{}: {}", escape(end), escape(ran))));
        let figures: Vec<String> = tools::lines(tool).iter().map(|l| escape(l)).collect();
        rows.push(format!(
            "<tr>{}<td class=\"l wrap\">{}</td><td class=\"l wrap\">{}</td></tr>\n",
            words(&tools::origin(tool)),
            figures.join("<br>"),
            notes.join("<br>")
        ));
    }
    format!(
        "<section id=\"tools\"><h2>Other programs</h2>\n<p class=\"lead\">Figures that these programs printed, by \
            their own definitions. Tailbound measured none of these figures and has no intervals for \
            them.</p>\n{}{}</section>\n",
        table(&[left("program"), left("figures"), left("what they mean")], &rows),
        side_by_side(report)
    )
}

/// Table of the figures of other programs that can be compared with other conditions.
fn side_by_side(report: &Report) -> String {
    if report.side_by_side.is_empty() {
        return String::new();
    }
    let row = |pair: &SideBySide| {
        let figures: Vec<String> = side_by_side::figures(pair).iter().map(|f| escape(f)).collect();
        let figures = if figures.is_empty() { "none".into() } else { figures.join("<br>") };
        let apart: Vec<String> = pair.apart.iter().map(|a| escape(a)).collect();
        format!(
            "<tr>{}{}<td class=\"l wrap\">{figures}</td><td class=\"l wrap\">{}</td></tr>\n",
            words(&report.conditions[pair.a].name),
            words(&report.conditions[pair.b].name),
            apart.join("<br>")
        )
    };
    let rows: Vec<String> = report.side_by_side.iter().map(row).collect();
    format!(
        "<h3>Side by side</h3>\n<p class=\"lead\">Figures with the same definition: the program in the first column \
            compared with the program in the second column. The ratios describe only these runs.</p>\n{}",
        table(
            &[
                left("program"),
                left("beside"),
                left("comparable"),
                left(
                    "meaning of the figures, and what is not \
            known about them"
                )
            ],
            &rows
        )
    )
}
