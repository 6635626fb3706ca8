//! What other programs printed.

use super::escape::{escape, left, prose, table, words};
use crate::document::Report;
use crate::side_by_side::SideBySide;

pub(super) fn section(report: &Report) -> String {
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
        let figures: Vec<String> = tool.lines().iter().map(|l| escape(l)).collect();
        rows.push(format!(
            "<tr>{}<td class=\"l wrap\">{}</td><td class=\"l wrap\">{}</td></tr>\n",
            words(&tool.origin()),
            figures.join("<br>"),
            notes.join("<br>")
        ));
    }
    format!(
        "<section id=\"tools\"><h2>Other programs</h2>\n<p class=\"lead\">What these programs printed, by their own \
         definitions. Tailbound measured nothing of it and has no intervals for it.</p>\n{}{}</section>\n",
        table(&[left("program"), left("figures"), left("what they mean")], &rows),
        side_by_side(report)
    )
}

/// What of it may be set beside other conditions.
fn side_by_side(report: &Report) -> String {
    if report.side_by_side.is_empty() {
        return String::new();
    }
    let row = |pair: &SideBySide| {
        let figures: Vec<String> = pair.figures().iter().map(|f| escape(f)).collect();
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
        "<h3>Side by side</h3>\n<p class=\"lead\">Figures of one definition, the program of the first column against \
         that of the second; within these runs only.</p>\n{}",
        table(&[left("program"), left("beside"), left("comparable"), left("what to know, and what is not")], &rows)
    )
}
