//! The table of bins of equal width that a study asks for: rows that were measured, and rows that others published.

use crate::tables::grid::{Column, Grid};
use crate::tables::summary::Summary;
use tailbound_document::number::{Unit, count};
use tailbound_document::{BinsReport, PublishedReport, Report};

/// Words after the name of a row that was published by others and not measured here.
pub(crate) const ELSEWHERE: &str = "published, other hardware";

/// Heads of the table columns that count messages in bins, for example `0-99`, and their unit.
pub(crate) fn heads(bins: &BinsReport) -> (Vec<String>, Unit) {
    let unit = Unit::of(bins.bin_ns as f64);
    let bound = |k: usize| unit.number((k as i64 * bins.bin_ns) as f64).replace(',', "");
    // If the width is a whole number of units, the head names the last value inside the bin, as in printed histograms.
    let whole = bound(1).parse::<u64>().ok().filter(|w| *w > 1);
    let head = |k: usize| match whole {
        Some(w) => format!("{}-{}", k as u64 * w, (k as u64 + 1) * w - 1),
        None => format!("{}-{}", bound(k), bound(k + 1)),
    };
    let last = bins.counts.len() - 1;
    ((0..last).map(head).chain(["over".to_owned()]).collect(), unit)
}

/// Formats the table of bins for a terminal, with its title; `None` if the study does not ask for bins.
pub(crate) fn table(report: &Report, summary: &Summary) -> Option<(String, Grid)> {
    let first = report.conditions.iter().find_map(|c| c.bins.as_ref())?;
    let (heads, unit) = heads(first);
    let published: Vec<&PublishedReport> = report.published.iter().filter(|p| !p.histogram.is_empty()).collect();
    let one = |text: String| (text, String::new());
    let mut grid = Grid::of_levels_and(summary, published.iter().map(|p| format!("* {}", p.name)));
    for (k, head) in heads.into_iter().enumerate() {
        let mut cells: Vec<_> = report
            .conditions
            .iter()
            .map(|c| one(c.bins.as_ref().map_or(String::new(), |b| count(b.counts[k]))))
            .collect();
        cells.extend(published.iter().map(|p| one(count(p.histogram[k]))));
        grid.columns.push(Column { head, cells, right: true });
    }
    let elsewhere = if published.is_empty() { String::new() } else { format!("; * {ELSEWHERE}") };
    let title = format!("{} in bins, {}{elsewhere}", first.metric.replace('_', " "), unit.name());
    Some((title, grid))
}
