//! The section of the HTML page that counts messages in bins of equal width: rows that were measured, and rows that
//! others published.

use crate::escape::escape;
use crate::html::table::{Head, left, number, right, table};
use crate::tables::bins::{ELSEWHERE, heads};
use tailbound_document::Report;
use tailbound_document::number::count;

pub(crate) fn is_there(report: &Report) -> bool {
    report.conditions.iter().any(|c| c.bins.is_some())
}

pub(crate) fn section(report: &Report) -> String {
    let Some(first) = report.conditions.iter().find_map(|c| c.bins.as_ref()) else { return String::new() };
    let (bins, unit) = heads(first);
    let all = crate::tables::summary::summary(report);
    let without = report.conditions.iter().any(|c| c.bins.as_ref().is_some_and(|b| b.without > 0));
    let mut columns: Vec<Head> = vec![left("condition")];
    columns.extend(bins.iter().map(|b| right(b.as_str(), unit.name())));
    columns.extend(without.then(|| right("no answer", "")));
    let mut rows: Vec<String> = report
        .conditions
        .iter()
        .filter_map(|c| Some((c, c.bins.as_ref()?)))
        .map(|(c, b)| {
            let mut cells: String =
                super::conditions::row_head(&all, c) + &b.counts.iter().map(|n| number(&count(*n))).collect::<String>();
            cells.push_str(&if without { number(&count(b.without)) } else { String::new() });
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    for published in report.published.iter().filter(|p| !p.histogram.is_empty()) {
        let counts: String = published.histogram.iter().map(|n| number(&count(*n))).collect();
        let blank = if without { "<td></td>" } else { "" };
        rows.push(format!(
            "<tr><td class=\"l\">{}<span class=\"interval\">{ELSEWHERE}</span></td>{counts}{blank}</tr>\n",
            escape(&published.name)
        ));
    }
    format!(
        "<section id=\"bins\"><h2>Bins of equal width</h2>\n<p class=\"lead\">{}: messages by bins of equal width. Rows marked \
         <em>{ELSEWHERE}</em> are figures of others, as the study gives them.</p>\n{}</section>\n",
        escape(&first.metric.replace('_', " ")),
        table(&columns, &rows)
    )
}
