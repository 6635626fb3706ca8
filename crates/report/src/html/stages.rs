//! The section of the HTML page about the stages of messages.

use crate::escape::prose;
use crate::html::table::of_cells;
use crate::tables::stages::{HEADS, all, rows, sentences};
use tailbound_document::Report;

pub(crate) fn is_there(report: &Report) -> bool {
    all(report).next().is_some()
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let of_end = all(report).map(|(condition, stages)| {
        let table = of_cells(HEADS, rows(stages).into_iter());
        format!("<p class=\"lead\">{}</p>\n{table}", prose(&sentences(condition, stages)))
    });
    format!(
        "<section id=\"stages\"><h2>Stages</h2>\n<p class=\"lead\">What the one-way latency consists of, from the due time of a \
         message (answers: from the begin of the send call) to its receipt. The parts of each message add up. Where a stamp is \
         missing, the two parts beside it are one.</p>\n{}</section>\n",
        of_end.collect::<String>()
    )
}
