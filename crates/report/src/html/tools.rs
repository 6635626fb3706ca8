//! What other programs printed.

use super::escape::{escape, left, prose, table, words};
use crate::document::Report;

pub(super) fn section(report: &Report) -> String {
    if report.tools.is_empty() {
        return String::new();
    }
    let mut rows = Vec::new();
    for tool in &report.tools {
        let mut notes: Vec<String> = tool.definition.iter().map(|d| prose(d)).collect();
        if !tool.unknown.is_empty() {
            notes.push(format!("Not known: {}.", escape(&tool.unknown.join(", "))));
        }
        notes.extend(tool.commands.iter().map(|(end, c)| format!("{}: <code>{}</code>", escape(end), escape(c))));
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
         definitions. Tailbound measured nothing of it and has no intervals for it.</p>\n{}</section>\n",
        table(&[left("program"), left("figures"), left("what they mean")], &rows)
    )
}
