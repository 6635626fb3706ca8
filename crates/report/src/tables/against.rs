//! Overheads as columns of a table for the terminal, for Markdown and for the HTML page.

use crate::tables::summary::{Summary, summary};
use crate::tables::value_column::ValueColumn;
use tailbound_document::number::{Unit, three_digits};
use tailbound_document::{AgainstReport, AgainstRow, OVERHEAD_FIGURES, Overhead, Report};

/// Title of the table of overheads relative to the study's baseline.
pub(crate) fn title(against: &AgainstReport) -> String {
    let name = against.name();
    format!(
        "against {name}: each figure, with the figure of {name} below; overhead in %, with its 95 % interval below; \
            above zero is a cost: less payload, later answers"
    )
}

/// Makes a table of overheads that has only the columns with the levels of its rows.
pub(crate) fn of_rows(report: &Report, against: &AgainstReport) -> Summary {
    let mut table = summary(report);
    let mut id = 0..;
    table.rows.retain(|_| id.next().is_some_and(|id| against.rows.iter().any(|r| r.condition == id)));
    table
}

/// Columns of the table of overheads: two columns for each statistic that at least one row has.
pub(crate) fn columns(against: &AgainstReport) -> Vec<ValueColumn> {
    let mut columns = Vec::new();
    for figure in OVERHEAD_FIGURES {
        let of = |row: &'_ AgainstRow| row.overheads.iter().find(|o| o.is_of(figure)).cloned();
        let all: Vec<Option<Overhead>> = against.rows.iter().map(of).collect();
        let Some(first) = all.iter().flatten().next() else { continue };
        let ns = all.iter().flatten().flat_map(|o| [o.baseline, o.value]).flatten().map(|v| v as i64);
        let unit = (first.unit == "ns").then(|| Unit::of_all(ns).unwrap_or(Unit::Us));
        let number = |v: Option<f64>| v.map_or("-".into(), |v| unit.map_or_else(|| three_digits(v), |u| u.number(v)));
        let (head, of_unit) = match unit {
            Some(unit) => (first.statistic.clone(), unit.name()),
            None if first.statistic == "Mbit/s" => ("payload".into(), "Mbit/s"),
            None => (first.statistic.clone(), ""),
        };
        let figures =
            |o: &Option<Overhead>| o.as_ref().map(|o| (number(o.value), number(o.baseline))).unwrap_or_default();
        let cells = all.iter().map(figures).collect();
        // The head contains the name of the statistic, because the table may be split at any column on a narrow
        // terminal.
        let overhead = format!("{head} overhead");
        columns.push(ValueColumn { head, unit: of_unit, cells });
        let cells = all.iter().map(|o| o.as_ref().map(cell).unwrap_or_default()).collect();
        columns.push(ValueColumn { head: overhead, unit: "%", cells });
    }
    columns
}

fn cell(o: &Overhead) -> (String, String) {
    let below = match (o.interval, o.more_trials) {
        (Some([low, high]), _) => format!("{} to {}{}", set(low), set(high), if o.within_runs { "*" } else { "" }),
        (None, Some(more)) => format!("{more} more trial{}", if more == 1 { "" } else { "s" }),
        (None, None) => String::new(),
    };
    (o.per_cent.map_or("-".into(), |v| format!("{}{}", if v > 0.0 { "+" } else { "" }, set(v))), below)
}

/// Formats a number in %, with at most two decimals. Numbers that are too small for two decimals are printed as zero.
pub(crate) fn set(per_cent: f64) -> String {
    match per_cent.abs() < 10.0 {
        true => format!("{}", (per_cent * 100.0).round() / 100.0 + 0.0),
        false => three_digits(per_cent),
    }
}

/// Reasons why a row of the table of overheads, or a statistic of such a row, has no overhead.
pub(crate) fn notes(row: &AgainstRow) -> Vec<String> {
    let figure = |o: &Overhead| Some(format!("{}: {}", o.statistic, o.why.as_ref()?));
    row.why.iter().cloned().chain(row.overheads.iter().filter_map(figure)).collect()
}

/// Sentence about limits of the intervals of overheads; empty if there are none.
pub(crate) fn lack(against: &AgainstReport) -> String {
    let all = || against.rows.iter().flat_map(|r| &r.overheads);
    let Some(more) = all().filter_map(|o| o.more_trials).max() else { return String::new() };
    let plural = if more == 1 { "" } else { "s" };
    let mark = if all().any(|o| o.within_runs) { "Intervals marked * describe only these runs. " } else { "" };
    format!("{mark}Intervals that hold for other runs too take {more} more trial{plural} of each condition.")
}
