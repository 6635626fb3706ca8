//! The section of the HTML page about launch times.

use crate::escape::prose;
use crate::tables::launch::{all, sentences};
use tailbound_document::Report;

pub(crate) fn is_there(report: &Report) -> bool {
    all(report).next().is_some()
}

pub(crate) fn section(report: &Report) -> String {
    if !is_there(report) {
        return String::new();
    }
    let of_condition = all(report)
        .map(|(condition, launch)| format!("<p class=\"lead\">{}</p>\n", prose(&sentences(condition, launch))));
    format!("<section id=\"launch\"><h2>Launch times</h2>\n{}</section>\n", of_condition.collect::<String>())
}
