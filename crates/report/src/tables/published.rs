//! Tables of published numbers with the figures of this report beside them, and what differs from the original, for the
//! terminal, for Markdown and for the HTML page. The two are shown side by side and never judged.

use crate::tables::bins::ELSEWHERE;
use tailbound_document::number::{count, three_digits};
use tailbound_document::{
    PublishedCellReport, PublishedNumberReport, PublishedReport, PublishedRowReport, PublishedTableReport, Report,
};

/// The cell of a figure that is asked for and absent; a note below the table has the reason.
const ABSENT: &str = "-";

/// Published results that have a table, a source or differences from the original.
pub(crate) fn all(report: &Report) -> impl Iterator<Item = &PublishedReport> {
    report.published.iter().filter(|p| p.table.is_some() || p.source.is_some() || !p.differs.is_empty())
}

/// Sentences about where a result was published, and what the publication says.
pub(crate) fn about(published: &PublishedReport) -> String {
    let source = published.source.as_ref().map(|source| format!("Published in: {source}."));
    let text = published.text.as_ref().filter(|_| published.table.is_some()).map(|text| format!("{text}."));
    source.into_iter().chain(text).collect::<Vec<_>>().join(" ")
}

/// Title of a table of published numbers.
pub(crate) fn title(published: &PublishedReport) -> String {
    let of = |is: fn(&PublishedTableReport) -> bool| published.table.as_ref().is_some_and(is);
    match (of(gives_any), of(is_measured)) {
        (true, true) => format!("{}; * {ELSEWHERE}; below: measured here", published.name),
        (false, true) => format!("{}; the publication gives no numbers; measured here", published.name),
        (false, false) if published.table.is_some() => format!("{}; the publication gives no numbers", published.name),
        (_, false) => format!("{}; * {ELSEWHERE}", published.name),
    }
}

/// True if at least one column of the table has figures of this report.
pub(crate) fn has_figures(table: &PublishedTableReport) -> bool {
    table.columns.iter().any(|column| column.here.is_some())
}

/// True if the publication gives a number in this column.
pub(crate) fn gives(table: &PublishedTableReport, column: usize) -> bool {
    table.rows.iter().any(|row| row.cells.get(column).is_some_and(|cell| cell.published.is_some()))
}

/// True if the publication gives a number in some column.
pub(crate) fn gives_any(table: &PublishedTableReport) -> bool {
    (0..table.columns.len()).any(|column| gives(table, column))
}

/// A published number as text, e.g. `37 to 69` or `below 3`; empty if the publication gives none.
pub(crate) fn number(of: Option<PublishedNumberReport>) -> String {
    match of.map(|of| (of.low, of.high)) {
        None | Some((None, None)) => String::new(),
        Some((Some(low), Some(high))) if low == high => digits(low),
        Some((Some(low), Some(high))) => format!("{} to {}", digits(low), digits(high)),
        Some((None, Some(high))) => format!("below {}", digits(high)),
        Some((Some(low), None)) => format!("above {}", digits(low)),
    }
}

/// A published number with all its digits.
fn digits(n: f64) -> String {
    match n.fract() == 0.0 && n.abs() < 1e15 {
        true => format!("{}{}", if n < 0.0 { "-" } else { "" }, count(n.abs() as u64)),
        false => n.to_string(),
    }
}

/// The figure of this report in a cell, with three significant digits; a dash if it is asked for and absent.
pub(crate) fn here(cell: &PublishedCellReport) -> String {
    match (cell.here, &cell.why) {
        (Some([low, high]), _) if three_digits(low) == three_digits(high) => three_digits(low),
        (Some([low, high]), _) => format!("{} to {}", three_digits(low), three_digits(high)),
        (None, Some(_)) => ABSENT.into(),
        (None, None) => String::new(),
    }
}

/// Rows of the table that have something to show: a published number, or a figure of this report.
pub(crate) fn rows(table: &PublishedTableReport) -> impl Iterator<Item = &PublishedRowReport> {
    let measured = is_measured(table);
    table.rows.iter().filter(move |row| gives_row(row) || (measured && row.cells.iter().any(asks)))
}

/// True if the publication gives a number in this row.
pub(crate) fn gives_row(row: &PublishedRowReport) -> bool {
    row.cells.iter().any(|cell| cell.published.is_some())
}

/// True if a figure of this report is asked for in the cell.
fn asks(cell: &PublishedCellReport) -> bool {
    cell.here.is_some() || cell.why.is_some()
}

/// True if at least one cell has a figure of this report.
pub(crate) fn is_measured(table: &PublishedTableReport) -> bool {
    table.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.here.is_some())
}

/// Words after the name of a column for its two sides, the published one and the one of this report; empty if the table
/// has only one side.
pub(crate) fn sides(table: &PublishedTableReport) -> [&'static str; 2] {
    if gives_any(table) && is_measured(table) { [", published", ", here"] } else { ["", ""] }
}

/// The conditions of a row in words, unless its name says the same, alone or with the axis.
pub(crate) fn row_here<'a>(table: &PublishedTableReport, row: &'a PublishedRowReport) -> Option<&'a str> {
    let with_axis = format!("{} {}", table.axis, row.name);
    row.here.as_deref().filter(|here| *here != row.name && *here != with_axis)
}

/// Sentences about the conditions whose figures stand in the rows.
pub(crate) fn row_notes(table: &PublishedTableReport) -> Vec<String> {
    let note = |row: &PublishedRowReport| Some(format!("{} here: {}.", row.name, row_here(table, row)?));
    rows(table).filter(|_| has_figures(table)).filter_map(note).collect()
}

/// Sentences below a table: which figures of this report stand in the columns, and why figures are absent.
pub(crate) fn notes(table: &PublishedTableReport) -> Vec<String> {
    let mut notes = Vec::new();
    for column in &table.columns {
        let Some(here) = &column.here else { continue };
        let own = match column.published_definition {
            true => "; the definition of the publication, which halves a stall on one way",
            false => "",
        };
        notes.push(format!("{} here: {here}{own}.", column.name));
    }
    if let Some(here) = table.here.as_ref().filter(|_| has_figures(table)) {
        notes.push(format!("All figures here: {here}."));
    }
    notes.extend(absent(table));
    if table.rows.iter().flat_map(|r| &r.cells).any(|c| c.conditions.len() > 1) {
        notes.push(
            "A range here is from the smallest to the largest figure of the conditions with these levels.".into(),
        );
    }
    notes
}

/// Sentences about figures that are asked for and absent: one for each reason, with the rows and cells.
fn absent(table: &PublishedTableReport) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    let mut add = |why, name| match reasons.iter_mut().find(|(other, _)| *other == why) {
        Some((_, names)) => names.push(name),
        None => reasons.push((why, vec![name])),
    };
    // A column without any figure, for one reason, is named as a whole.
    let whole = |nth: usize| {
        let mut asked = table.rows.iter().map(|row| &row.cells[nth]).filter(|cell| asks(cell));
        let first = asked.next()?.why.as_deref()?;
        asked.all(|cell| cell.why.as_deref() == Some(first)).then_some(first)
    };
    let columns: Vec<Option<&str>> = (0..table.columns.len()).map(whole).collect();
    for (column, why) in table.columns.iter().zip(&columns) {
        why.iter().for_each(|why| add(*why, column.name.clone()));
    }
    for row in &table.rows {
        let rest = || row.cells.iter().enumerate().filter(|(nth, _)| columns[*nth].is_none());
        let missing = || rest().filter_map(|(nth, cell)| Some((&table.columns[nth], cell.why.as_deref()?)));
        let asked = rest().filter(|(_, cell)| asks(cell)).count();
        match missing().next() {
            // A row without any figure is named as a whole.
            Some((_, first)) if missing().filter(|(_, why)| *why == first).count() == asked => {
                add(first, row.name.clone())
            }
            _ => missing().for_each(|(column, why)| add(why, format!("{}, {}", row.name, column.name))),
        }
    }
    if let ([(why, _)], false) = (reasons.as_slice(), is_measured(table)) {
        return vec![format!("No figure here: {why}.")];
    }
    reasons.into_iter().map(|(why, names)| format!("No figure here ({}): {why}.", names.join("; "))).collect()
}
