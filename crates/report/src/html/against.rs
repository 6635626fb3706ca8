//! What each level costs against the study's baseline: the table of the terminal, and a figure.

use super::conditions::row_head;
use super::escape::{Head, escape, left, number, right, table};
use crate::against::{AgainstRow, columns, notes, title};
use crate::document::Report;
use crate::picture::canvas::in_tokens;
use crate::picture::overhead;

pub(super) fn section(report: &Report) -> String {
    let Some(against) = &report.against else { return String::new() };
    let summary = crate::summary::summary(report);
    let columns = columns(against);
    let mut heads: Vec<Head> = vec![left("condition")];
    heads.extend(columns.iter().map(|c| right(c.head.as_str(), c.unit)));
    let row = |(i, row): (usize, &AgainstRow)| {
        let cell = |(value, below): &(String, String)| match below.as_str() {
            "" => number(value),
            _ => format!("<td>{}<span class=\"interval\">{}</span></td>", escape(value), escape(below)),
        };
        let cells: String = columns.iter().map(|c| cell(&c.cells[i])).collect();
        let said = notes(row).join("; ");
        let width = columns.len() + 1;
        let below = match said.as_str() {
            "" => String::new(),
            said => format!(
                "<tr><td class=\"l wrap\" colspan=\"{width}\"><span class=\"interval\">{}</span></td></tr>\n",
                escape(said)
            ),
        };
        format!("<tr>{}{cells}</tr>\n{below}", row_head(&summary, &report.conditions[row.condition]))
    };
    let rows: Vec<String> = against.rows.iter().enumerate().map(row).collect();
    let figure = overhead::canvas(report).map_or(String::new(), |canvas| {
        let picture = in_tokens(&canvas.bare(&format!("Overhead against {}", against.name())));
        format!("<figure><div class=\"picture\">{picture}</div></figure>\n")
    });
    let lack = match against.lack() {
        none if none.is_empty() => none,
        lack => format!("<p class=\"note\">{}</p>\n", escape(&lack)),
    };
    format!(
        "<section id=\"against\"><h2>Against {}</h2>\n<p class=\"lead\">{}.</p>\n{figure}{}{lack}</section>\n",
        escape(&against.name()),
        escape(&title(against)),
        table(&heads, &rows)
    )
}
