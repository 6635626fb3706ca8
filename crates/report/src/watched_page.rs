//! What watching found, as a page.

use crate::escape::escape_html;
use crate::html::render_frame;
use crate::html::table::{Head, left, right, table_of_frame};
use crate::tables::grid::Column;
use crate::watched::{chain, columns, first_line, incidents, notes, rows};
use crate::{watched_also, watched_calls};
use tailbound_document::WatchReport;

/// Makes a page of what watching found, without a script and without files beside it.
pub fn render_watch_html(report: &WatchReport) -> String {
    let rows = rows(report);
    let paragraph = |text: &str| format!("<p>{}</p>\n", escape_html(text.trim()));
    let mut main = paragraph(&first_line(report));
    if !rows.is_empty() {
        let (first, others) = columns(&rows);
        main += &table("Topics on the wire", &first, &others);
    }
    for line in report.chain.iter().flat_map(chain).filter(|line| !line.is_empty()) {
        main += &paragraph(&line);
    }
    for line in incidents(report).iter().filter(|line| !line.is_empty()) {
        main += &paragraph(line);
    }
    if let Some(also) = &report.also {
        if let Some((first, others)) = watched_also::columns(also) {
            main += &table("Captured at two hosts", &first, &others);
        }
        main += &watched_also::sentences(also).iter().map(|sentence| paragraph(sentence)).collect::<String>();
    }
    if let Some(calls) = &report.calls {
        if let Some((first, others)) = watched_calls::columns(calls) {
            main += &table("Calls of ROS 2", &first, &others);
        }
        main += &watched_calls::sentences(calls).iter().map(|sentence| paragraph(sentence)).collect::<String>();
    }
    for note in notes(report, &rows) {
        main += &paragraph(&note);
    }
    for warning in &report.warnings {
        main += &paragraph(&format!("Warning: {warning}"));
    }
    render_frame("Messages on the wire", &main)
}

/// A table with these columns.
fn table(title: &str, first: &Column, others: &[Column]) -> String {
    let all: Vec<&Column> = std::iter::once(first).chain(others).collect();
    let head = |column: &&Column| -> Head { if column.right { right(&column.head, "") } else { left(&column.head) } };
    let heads: Vec<Head> = all.iter().map(head).collect();
    let cell = |column: &&Column, row: usize| {
        let class = if column.right { "" } else { " class=\"l\"" };
        format!("<td{class}>{}</td>", escape_html(&column.cells[row].0))
    };
    let lines: Vec<String> = (0..first.cells.len())
        .map(|row| format!("<tr>{}</tr>\n", all.iter().map(|column| cell(column, row)).collect::<String>()))
        .collect();
    table_of_frame(title, &heads, &lines)
}
