//! The section of the HTML page about what ordinary messages spend their time on.

use crate::escape::{escape, prose};
use crate::html::table::of_cells;
use crate::tables::usual::{HEADS, all, rows, sentence};
use tailbound_document::Report;

pub(crate) fn is_there(report: &Report) -> bool {
    all(report).next().is_some()
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let of_condition = all(report).map(|(condition, usual)| {
        let table = of_cells(HEADS, rows(usual).into_iter());
        let said = prose(&sentence(&condition.name, usual));
        format!(
            "<p>{said}</p>\n<details><summary>All parts of {}</summary>\n{table}</details>\n",
            escape(&condition.name)
        )
    });
    format!(
        "<section id=\"usual\"><h2>Ordinary messages</h2>\n<p class=\"lead\">Where the time of ordinary messages goes, from the due \
         time to the receipt of the answer: means over up to 40 messages of each trial whose events were recorded. Causes of late \
         messages are what comes on top.</p>\n{}</section>\n",
        of_condition.collect::<String>()
    )
}
