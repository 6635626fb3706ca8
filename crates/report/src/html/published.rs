//! The section of the HTML page with tables of published numbers: the figures of this report stand beside them, and
//! below what differs from the original.

use crate::escape::{escape, prose};
use crate::html::table::{Head, left, right, table};
use crate::tables::bins::ELSEWHERE;
use crate::tables::published::{
    about, all, gives, has_figures, here, is_measured, notes, number, row_here, rows, sides,
};
use tailbound_document::{PublishedCellReport, PublishedReport, PublishedRowReport, PublishedTableReport, Report};
use tailbound_model::FigureUnit;

pub(crate) fn is_there(report: &Report) -> bool {
    all(report).next().is_some()
}

pub(crate) fn section(report: &Report) -> String {
    let each: String = all(report).map(one).collect();
    if each.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"published\"><h2>Published numbers</h2>\n<p class=\"lead\">Numbers of others, <em>{ELSEWHERE}</em>, \
         beside the figures of this report. They decide nothing.</p>\n{each}</section>\n"
    )
}

fn one(published: &PublishedReport) -> String {
    let about = match about(published) {
        none if none.is_empty() => none,
        about => format!("<p class=\"note\">{}</p>\n", prose(&about)),
    };
    let numbers = published.table.as_ref().map_or(String::new(), table_of);
    let differs: String = published.differs.iter().map(|d| format!("<li>{}</li>\n", prose(d))).collect();
    let differs = match differs.is_empty() {
        true => differs,
        false => format!("<p class=\"note\">Differs from the original:</p>\n<ul>{differs}</ul>\n"),
    };
    format!("<h3>{}</h3>\n{about}{numbers}{differs}", escape(&published.name))
}

fn table_of(of: &PublishedTableReport) -> String {
    let mut heads: Vec<Head> = vec![left(of.axis.as_str())];
    let [published, own] = sides(of);
    for (nth, column) in of.columns.iter().enumerate() {
        let unit = FigureUnit::ALL.into_iter().map(FigureUnit::symbol).find(|s| *s == column.unit).unwrap_or_default();
        heads.extend(shows(of, nth).then(|| right(format!("{}{published}", column.name), unit)));
        heads.extend(shows_own(of, nth).then(|| right(format!("{}{own}", column.name), unit)));
    }
    let row = |row: &PublishedRowReport| {
        let below = match row_here(of, row).filter(|_| has_figures(of)) {
            Some(here) => format!("<span class=\"interval\">here: {}</span>", escape(here)),
            None => String::new(),
        };
        let shown = |nth: usize| (shows(of, nth), shows_own(of, nth));
        let cells = row.cells.iter().enumerate().map(|(nth, cell)| pair(cell, shown(nth)));
        format!("<tr><td class=\"l wrap\">{}{below}</td>{}</tr>\n", escape(&row.name), cells.collect::<String>())
    };
    let rows: Vec<String> = rows(of).map(row).collect();
    let notes: String = notes(of).iter().map(|note| format!("<li>{}</li>\n", prose(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<ul class=\"note\">{notes}</ul>\n") };
    let table = if rows.is_empty() { String::new() } else { table(&heads, &rows) };
    format!("{table}{notes}")
}

/// True if the table shows the published side of a column.
fn shows(of: &PublishedTableReport, column: usize) -> bool {
    gives(of, column) || !shows_own(of, column)
}

/// True if the table shows the figures of this report in a column.
fn shows_own(of: &PublishedTableReport, column: usize) -> bool {
    of.columns[column].here.is_some() && is_measured(of)
}

/// The published number and the figure of this report, as far as the column has them.
fn pair(cell: &PublishedCellReport, (with_published, with_here): (bool, bool)) -> String {
    let theirs = format!("<td><span class=\"quiet\">{}</span></td>", escape(&number(cell.published)));
    let own = format!("<td>{}</td>", escape(&here(cell)));
    let sides = [(with_published, theirs), (with_here, own)];
    sides.into_iter().filter_map(|(with, side)| with.then_some(side)).collect()
}
