//! The table of patterns: the number of trials under load for each pattern (one word for the effect of the load).

use crate::tables::bins::ELSEWHERE;
use crate::tables::grid::{Column, Grid};
use crate::tables::summary::Summary;
use std::collections::BTreeMap;
use tailbound_document::{ConditionReport, PublishedReport, Report};
use tailbound_model::Pattern;

/// Counts the trials of a condition in which each pattern of disturbed communication was found.
fn counts(report: &Report, condition: &ConditionReport) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for pattern in report.trials.iter().filter(|t| t.condition == condition.id).filter_map(|t| t.pattern.as_ref()) {
        *counts.entry(pattern.name.clone()).or_insert(0) += 1;
    }
    counts
}

/// A table of a study's patterns, for example of starved threads: column heads, a row of counts for each measured
/// condition, and rows with results that others published.
pub(crate) struct Table<'a> {
    pub heads: Vec<&'static str>,
    pub measured: Vec<(&'a ConditionReport, BTreeMap<String, u64>)>,
    pub published: Vec<&'a PublishedReport>,
}

impl<'a> Table<'a> {
    /// Makes the table of patterns; `None` if no trial ran under a load.
    pub fn of(report: &'a Report) -> Option<Table<'a>> {
        let all = report.conditions.iter().map(|c| (c, counts(report, c)));
        let measured: Vec<_> = all.filter(|(_, counts)| !counts.is_empty()).collect();
        let published: Vec<_> = report.published.iter().filter(|p| !p.patterns.is_empty()).collect();
        let rows = || measured.iter().map(|(_, c)| c).chain(published.iter().map(|p| &p.patterns));
        let seen = |p: &Pattern| rows().any(|counts| counts.contains_key(p.words()));
        let heads = Pattern::ALL.into_iter().filter(seen).map(Pattern::words).collect();
        (!measured.is_empty()).then_some(Table { heads, measured, published })
    }
}

/// Formats the number of trials in which a pattern was found as a table cell.
pub(crate) fn cell(counts: &BTreeMap<String, u64>, head: &str) -> String {
    counts.get(head).map_or(String::new(), u64::to_string)
}

/// Formats the table of patterns for a terminal, with its title.
pub(crate) fn table(report: &Report, summary: &Summary) -> Option<(String, Grid)> {
    let table = Table::of(report)?;
    let mut grid = Grid::of_levels_and(summary, table.published.iter().map(|p| format!("* {}", p.name)));
    let in_words = |counts: &BTreeMap<String, u64>| {
        let seen = table.heads.iter().filter_map(|h| Some(format!("{h} {}", counts.get(*h)?)));
        (seen.collect::<Vec<_>>().join(", "), String::new())
    };
    let measured = report.conditions.iter().map(|c| in_words(&counts(report, c)));
    let cells = measured.chain(table.published.iter().map(|p| in_words(&p.patterns))).collect();
    grid.columns.push(Column { head: "trials by pattern".into(), cells, right: false });
    let elsewhere = if table.published.is_empty() { String::new() } else { format!("; * {ELSEWHERE}") };
    Some((format!("number of trials under load with each pattern{elsewhere}"), grid))
}

/// Sentences of the report about published results, marked as published by others.
pub(crate) fn said(report: &Report) -> Vec<String> {
    let said = |p: &PublishedReport| Some(format!("{} ({ELSEWHERE}): {}.", p.name, p.text.as_ref()?));
    // The text of a published table is shown with the table.
    report.published.iter().filter(|p| p.table.is_none()).filter_map(said).collect()
}
