//! The section of the HTML page about gates (IEEE 802.1Q): predicted and measured waits.

use crate::escape::prose;
use crate::html::table::of_cells;
use crate::picture::phase;
use crate::tables::gates::{COLUMNS, HEADS, all, cells, sentences};
use tailbound_document::Report;

/// Explains the figure of a gate.
const FIGURE: &str = "Measured ways (dots: the shortest and the longest of each part of the cycle) and the predicted wait (line). In \
                      the shaded times a frame may be sent.";

pub(crate) fn is_there(report: &Report) -> bool {
    all(report).next().is_some()
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let of_gate = all(report).map(|(condition, gate)| {
        let has_waits = !gate.waits.is_empty();
        let table = if has_waits { of_cells(HEADS, gate.waits.iter().map(cells)) } else { String::new() };
        let figure = phase::draw(condition, gate).map_or(String::new(), |canvas| {
            format!(
                "<figure><div class=\"picture\">{}</div></figure>\n<p class=\"lead\">{FIGURE}</p>\n",
                canvas.embed()
            )
        });
        format!("<p class=\"lead\">{}</p>\n{figure}{table}", prose(&sentences(condition, gate)))
    });
    format!(
        "<section id=\"gates\"><h2>Gates</h2>\n<p class=\"lead\">Each message has a predicted wait, from the schedule that the \
         kernel reported and the begin of its send call. The rest of its way contains the send call, other frames of the class, \
         and the way behind the gate. Columns: {COLUMNS}.</p>\n{}</section>\n",
        of_gate.collect::<String>()
    )
}
