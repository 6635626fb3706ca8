//! What became of the trials under load, with published rows beside those that were measured.

use super::escape::{Head, escape, left, number, right, table, words};
use crate::bins::ELSEWHERE;
use crate::document::Report;
use crate::patterns::{Table, cell, said};

pub(super) fn is_there(report: &Report) -> bool {
    Table::of(report).is_some() || !said(report).is_empty()
}

pub(super) fn section(report: &Report) -> String {
    let Some(patterns) = Table::of(report) else {
        let all: String = said(report).iter().map(|s| format!("<li>{}</li>\n", escape(s))).collect();
        let whole = format!("<section id=\"patterns\"><h2>What others found</h2>\n<ul>{all}</ul></section>\n");
        return if all.is_empty() { String::new() } else { whole };
    };
    let all = crate::summary::summary(report);
    let mut heads: Vec<Head> = vec![left("condition")];
    heads.extend(patterns.heads.iter().map(|h| right(*h, "")));
    let counts = |of: &std::collections::BTreeMap<String, u64>| -> String {
        patterns.heads.iter().map(|h| number(&cell(of, h))).collect()
    };
    let row = |name: String, cells: String| format!("<tr>{name}{cells}</tr>\n");
    let mut rows: Vec<String> =
        patterns.measured.iter().map(|(c, of)| row(super::conditions::row_head(&all, c), counts(of))).collect();
    for p in report.published.iter().filter(|p| !p.patterns.is_empty() || p.text.is_some()) {
        let text = p.text.as_ref().map_or(String::new(), |t| format!(": {}", escape(t)));
        let name =
            format!("<td class=\"l wrap\">{}<span class=\"interval\">{ELSEWHERE}{text}</span></td>", escape(&p.name));
        rows.push(row(name, counts(&p.patterns)));
    }
    let trial_heads = [left("trial"), left("condition"), left("pattern"), left("told by")];
    let told: Vec<String> = report
        .trials
        .iter()
        .filter_map(|t| Some((t, t.pattern.as_ref()?)))
        .map(|(t, p)| {
            let name = super::conditions::row_head(&all, &report.conditions[t.condition]);
            let cells = [words(&t.id.to_string()), name, words(&p.name), words(&p.evidence)];
            format!("<tr>{}</tr>\n", cells.concat())
        })
        .collect();
    format!(
        "<section id=\"patterns\"><h2>Patterns under load</h2>\n<p class=\"lead\">Trials by what became of their \
         communication, told from when the ends met, M1, M2, M3 and run delays, against the trials without a load. Rows \
         marked <em>{ELSEWHERE}</em> are findings of others, as the study gives them.</p>\n{}\
         <details><summary>Trial by trial, with the figures that say so</summary>\n{}</details></section>\n",
        table(&heads, &rows),
        table(&trial_heads, &told)
    )
}
