//! The chosen range and counts above a limit: the tables of the terminal.

use super::conditions::columns_table;
use super::escape::escape;
use crate::chosen::tables;
use crate::document::Report;

pub(super) fn is_there(report: &Report) -> bool {
    report.conditions.iter().any(|c| c.range.is_some() || c.above.is_some())
}

pub(super) fn section(report: &Report) -> String {
    let table = |(title, columns): (String, Vec<crate::flow::FlowColumn>)| {
        format!("<p class=\"lead\">{}.</p>\n{}", escape(&title), columns_table(report, &columns))
    };
    let tables: String = tables(report).into_iter().map(table).collect();
    match is_there(report) {
        true => format!("<section id=\"chosen\"><h2>Chosen range and limit</h2>\n{tables}</section>\n"),
        false => String::new(),
    }
}
