//! The section of the HTML page about overheads of each level relative to the study's baseline: a table and a chart.

use crate::escape::escape;
use crate::html::conditions::row_head;
use crate::html::table::{Head, left, number, right, table};
use crate::picture::canvas::{Canvas, Medium};
use crate::picture::overhead;
use crate::tables::against::{columns, notes, title};
use crate::tables::spread;
use crate::tables::summary::Row;
use tailbound_document::{AgainstRow, Report};

pub(crate) fn section(report: &Report) -> String {
    let Some(against) = &report.against else { return String::new() };
    let summary = crate::tables::summary::summary(report);
    let columns = columns(against);
    let mut heads: Vec<Head> = vec![left("condition")];
    heads.extend(columns.iter().map(|c| right(c.head.as_str(), c.unit)));
    let row = |(i, row): (usize, &AgainstRow)| {
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
    let drawn: String = overhead::draw(report, Medium::Page).into_iter().map(Canvas::embed).collect();
    let figure = match drawn.is_empty() {
        true => drawn,
        false => format!("<figure><div class=\"picture\">{drawn}</div></figure>\n"),
    };
    let lack = match crate::tables::against::lack(against) {
        none if none.is_empty() => none,
        lack => format!("<p class=\"note\">{}</p>\n", escape(&lack)),
    };
    format!(
        "<section id=\"against\"><h2>Against {}</h2>\n<p class=\"lead\">{}.</p>\n{figure}{}{lack}{}</section>\n",
        escape(&against.name()),
        escape(&title(against)),
        table(&heads, &rows),
        spread_of(report)
    )
}

/// The table of means, standard deviations, minima and maxima, with its differences to the baseline.
fn spread_of(report: &Report) -> String {
    let Some(of) = spread::of(report) else { return String::new() };
    let mut heads: Vec<Head> = vec![left("condition")];
    heads.extend(of.columns.iter().map(|c| right(c.head.as_str(), c.unit)));
    let row = |(i, row): (usize, &Row)| {
        let cells: String = of.columns.iter().map(|c| cell(&c.cells[i])).collect();
        let levels: Vec<&str> = row.levels.iter().map(String::as_str).filter(|l| !l.is_empty()).collect();
        format!("<tr><td class=\"l wrap\">{}</td>{cells}</tr>\n", escape(&levels.join(", ")))
    };
    let rows: Vec<String> = of.levels.rows.iter().enumerate().map(row).collect();
    format!("<p class=\"note\">{}.</p>\n{}", escape(&of.title), table(&heads, &rows))
}

/// A cell with its second line.
fn cell((value, below): &(String, String)) -> String {
    match below.as_str() {
        "" => number(value),
        _ => format!("<td>{}<span class=\"interval\">{}</span></td>", escape(value), escape(below)),
    }
}
