//! The section of the HTML page about what changed since the last run of the study.

use crate::escape::{escape, prose};
use crate::html::table::{left, number, right, table, words};
use crate::tables::since::{HEADS, TITLE, changes, command, lead, of, rows};
use tailbound_document::Report;

/// Number of columns at the left of the table that contain words.
const WORDS: usize = 2;

/// HTML of the section; empty if there is no earlier record.
pub(crate) fn section(report: &Report) -> String {
    let Some(since) = of(report) else { return String::new() };
    let last = HEADS.len() - 1;
    let is_word = |nth: usize| nth < WORDS || nth == last;
    let heads: Vec<_> =
        HEADS.iter().enumerate().map(|(nth, head)| if is_word(nth) { left(*head) } else { right(*head, "") }).collect();
    let cell = |(nth, text): (usize, &String)| if is_word(nth) { words(text) } else { number(text) };
    let rows: Vec<String> = rows(since)
        .iter()
        .map(|row| format!("<tr>{}</tr>\n", row.iter().enumerate().map(cell).collect::<String>()))
        .collect();
    let changes: String = changes(since).iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!(
        "<section id=\"since\"><h2>{TITLE}</h2>\n<p class=\"lead\">{}</p>\n{}<p>Changed between the runs:</p>\n<ul \
         class=\"changes\">\n{changes}</ul>\n<p class=\"note\">All compared figures: <code>{}</code></p>\n</section>\n",
        prose(&lead(since)),
        table(&heads, &rows),
        escape(&command(since)),
    )
}
