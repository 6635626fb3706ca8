//! What watching found, as a page.

use crate::escape::escape_html;
use crate::html::render_frame;
use crate::html::table::{Head, left, right, table_of_frame};
use crate::tables::grid::Column;
use crate::watched::{chain, columns, first_line, notes, rows};
use tailbound_document::WatchReport;

/// Makes a page of what watching found, without a script and without files beside it.
pub fn render_watch_html(report: &WatchReport) -> String {
    let rows = rows(report);
    let paragraph = |text: &str| format!("<p>{}</p>\n", escape_html(text.trim()));
    let mut main = paragraph(&first_line(report));
    if !rows.is_empty() {
        let (first, others) = columns(&rows);
        let all: Vec<&Column> = std::iter::once(&first).chain(&others).collect();
        let head =
            |column: &&Column| -> Head { if column.right { right(&column.head, "") } else { left(&column.head) } };
        let heads: Vec<Head> = all.iter().map(head).collect();
        let cell = |column: &&Column, row: usize| {
            let class = if column.right { "" } else { " class=\"l\"" };
            format!("<td{class}>{}</td>", escape_html(&column.cells[row].0))
        };
        let lines: Vec<String> = (0..rows.len())
            .map(|row| format!("<tr>{}</tr>\n", all.iter().map(|column| cell(column, row)).collect::<String>()))
            .collect();
        main += &table_of_frame("Topics on the wire", &heads, &lines);
    }
    for line in report.chain.iter().flat_map(chain).filter(|line| !line.is_empty()) {
        main += &paragraph(&line);
    }
    for note in notes(report, &rows) {
        main += &paragraph(&note);
    }
    for warning in &report.warnings {
        main += &paragraph(&format!("Warning: {warning}"));
    }
    render_frame("Messages on the wire", &main)
}
