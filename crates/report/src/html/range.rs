//! The section of the HTML page about the part of each trial that the study chose, and about the messages whose latency
//! is above a limit.

use crate::escape::escape;
use crate::html::conditions::columns_table;
use crate::tables::range::tables;
use tailbound_document::Report;

pub(crate) fn is_there(report: &Report) -> bool {
    report.conditions.iter().any(|c| c.range.is_some() || c.above.is_some())
}

pub(crate) fn section(report: &Report) -> String {
    let table = |(title, columns): (String, Vec<crate::tables::value_column::ValueColumn>)| {
        format!("<p class=\"lead\">{}.</p>\n{}", escape(&title), columns_table(report, &columns))
    };
    let tables: String = tables(report).into_iter().map(table).collect();
    match is_there(report) {
        true => format!("<section id=\"chosen\"><h2>Chosen range and limit</h2>\n{tables}</section>\n"),
        false => String::new(),
    }
}
