//! The section of the HTML page about messages that were held on their way and released together.

use crate::escape::prose;
use crate::html::table::{number, right, table};
use crate::tables::held::{HEADS, all, cells, sentences};
use tailbound_document::Report;

pub(crate) fn is_there(report: &Report) -> bool {
    all(report).next().is_some()
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let of_way = all(report).map(|(condition, held)| {
        let row = |burst| format!("<tr>{}</tr>\n", cells(burst).iter().map(|text| number(text)).collect::<String>());
        let rows: Vec<String> = held.longest.iter().map(row).collect();
        format!(
            "<p class=\"lead\">{}</p>\n<details><summary>Its longest bursts</summary>\n{}</details>\n",
            prose(&sentences(condition, held)),
            table(&HEADS.map(|head| right(head, "")), &rows)
        )
    });
    format!(
        "<section id=\"held\"><h2>Held and released together</h2>\n<p class=\"lead\">The tables have the bursts with the longest \
         holds, at most 20. The times are those at which the first and the last message of a burst were due, after slot 0.</p>\n{}\
         </section>\n",
        of_way.collect::<String>()
    )
}
