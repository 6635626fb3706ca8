//! The section of the HTML page about the patterns of trials under load: rows that were measured, and rows that others
//! published.

use crate::escape::escape;
use crate::html::table::{Head, left, number, right, table, words};
use crate::tables::bins::ELSEWHERE;
use crate::tables::patterns::{Table, cell, said};
use tailbound_document::{PublishedReport, Report};

pub(crate) fn is_there(report: &Report) -> bool {
    Table::of(report).is_some() || !said(report).is_empty()
}

pub(crate) fn section(report: &Report) -> String {
    let Some(patterns) = Table::of(report) else {
        let all: String = said(report).iter().map(|s| format!("<li>{}</li>\n", escape(s))).collect();
        let whole = format!("<section id=\"patterns\"><h2>What others found</h2>\n<ul>{all}</ul></section>\n");
        return if all.is_empty() { String::new() } else { whole };
    };
    let all = crate::tables::summary::summary(report);
    let mut heads: Vec<Head> = vec![left("condition")];
    heads.extend(patterns.heads.iter().map(|h| right(*h, "")));
    let counts = |of: &std::collections::BTreeMap<String, u64>| -> String {
        patterns.heads.iter().map(|h| number(&cell(of, h))).collect()
    };
    let row = |name: String, cells: String| format!("<tr>{name}{cells}</tr>\n");
    let mut rows: Vec<String> =
        patterns.measured.iter().map(|(c, of)| row(super::conditions::row_head(&all, c), counts(of))).collect();
    let is_row = |p: &&PublishedReport| !p.patterns.is_empty() || (p.text.is_some() && p.table.is_none());
    for p in report.published.iter().filter(is_row) {
        let text = p.text.as_ref().map_or(String::new(), |t| format!(": {}", escape(t)));
        let name =
            format!("<td class=\"l wrap\">{}<span class=\"interval\">{ELSEWHERE}{text}</span></td>", escape(&p.name));
        rows.push(row(name, counts(&p.patterns)));
    }
    let trial_heads = [left("trial"), left("condition"), left("pattern"), left("evidence")];
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
        "<section id=\"patterns\"><h2>Patterns under load</h2>\n<p class=\"lead\">Number of trials by the effect of \
            the load on their communication. The pattern of a trial follows from the discovery time, M1, M2, M3 and \
            run delays, compared with the trials without a load. Rows \
         marked <em>{ELSEWHERE}</em> are findings of others, as the study gives them.</p>\n{}\
         <details><summary>Trial by trial, with the figures that decide the \
         pattern</summary>\n{}</details></section>\n",
        table(&heads, &rows),
        table(&trial_heads, &told)
    )
}
