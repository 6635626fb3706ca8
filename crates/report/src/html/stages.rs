//! The section of the HTML page about the stages of messages.

use crate::escape::prose;
use crate::html::table::{left, number, right, table, words};
use crate::tables::stages::{HEADS, all, cells, sentences};
use tailbound_document::Report;

pub(crate) fn is_there(report: &Report) -> bool {
    all(report).next().is_some()
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let of_end = all(report).map(|(condition, stages)| {
        let [first, rest @ ..] = HEADS;
        let mut heads = vec![left(first)];
        heads.extend(rest.map(|head| right(head, "")));
        let row = |part| {
            let [name, numbers @ ..] = cells(part);
            format!("<tr>{}{}</tr>\n", words(&name), numbers.iter().map(|text| number(text)).collect::<String>())
        };
        let rows: Vec<String> = stages.parts.iter().map(row).collect();
        format!("<p class=\"lead\">{}</p>\n{}", prose(&sentences(condition, stages)), table(&heads, &rows))
    });
    format!(
        "<section id=\"stages\"><h2>Stages</h2>\n<p class=\"lead\">What the one-way latency consists of, from the due time of a \
         message (answers: from the begin of the send call) to its receipt. The parts of each message add up. Where a stamp is \
         missing, the two parts beside it are one.</p>\n{}</section>\n",
        of_end.collect::<String>()
    )
}
