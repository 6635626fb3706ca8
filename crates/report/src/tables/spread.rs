//! Means, standard deviations, minima and maxima with their differences to the study's baseline, as columns of a table for the
//! terminal, for Markdown and for the HTML page; published figures are rows of the same table.

use crate::tables::bins::ELSEWHERE;
use crate::tables::summary::{Row, Summary, summary};
use crate::tables::value_column::ValueColumn;
use tailbound_document::number::Unit;
use tailbound_document::{AgainstReport, PublishedFiguresReport, PublishedReport, Report, SPREAD_STATISTICS};
use tailbound_model::{Metric, SPREAD_METRICS};

/// The table of means, standard deviations, minima and maxima.
pub(crate) struct Table {
    pub title: String,
    /// Columns with the levels of the rows; published rows have their name in the last one.
    pub levels: Summary,
    pub columns: Vec<ValueColumn>,
}

/// One cell before its column has a unit: smallest and largest value, and the same of the difference, ns.
#[derive(Clone, Copy, Default)]
struct Cell {
    value: Option<[f64; 2]>,
    difference: Option<[f64; 2]>,
}

impl Cell {
    fn set(self, unit: Unit) -> (String, String) {
        let text = |[low, high]: [f64; 2]| match low == high {
            true => unit.number(low),
            false => unit.range(low as i64, high as i64),
        };
        let signed = |of: [f64; 2]| format!("{}{}", if of[0] > 0.0 { "+" } else { "" }, text(of));
        (self.value.map(text).unwrap_or_default(), self.difference.map(signed).unwrap_or_default())
    }
}

/// Makes the table; `None` if the study has no baseline, or no condition could be compared with it.
pub(crate) fn of(report: &Report) -> Option<Table> {
    let against = report.against.as_ref().filter(|a| a.rows.iter().any(|r| !r.differences.is_empty()))?;
    let shown: Vec<usize> = (0..report.conditions.len()).filter(|id| is_shown(against, *id)).collect();
    let published: Vec<(&PublishedReport, &PublishedFiguresReport)> =
        report.published.iter().filter_map(|p| Some((p, p.figures.as_ref()?))).collect();
    let mut levels = summary(report);
    let mut id = 0..;
    levels.rows.retain(|_| id.next().is_some_and(|id| shown.contains(&id)));
    levels.rows.extend(published.iter().map(|(p, _)| named(&p.name, levels.factors.len())));
    let mut columns = Vec::new();
    for metric in SPREAD_METRICS {
        for (at, statistic) in SPREAD_STATISTICS.into_iter().enumerate() {
            let measured = shown.iter().map(|id| measured(report, against, *id, metric, at));
            let cells: Vec<Cell> = measured.chain(published.iter().map(|(_, p)| elsewhere(p, metric, at))).collect();
            let values = cells[..shown.len()].iter().filter_map(|c| c.value).map(|[_, high]| high as i64);
            let Some(unit) = Unit::of_all(values) else { continue };
            let cells = cells.into_iter().map(|c| c.set(unit)).collect();
            let head = format!("{} {statistic}", metric.key());
            columns.push(ValueColumn { head, unit: unit.name(), cells });
        }
    }
    Some(Table { title: title(against, !published.is_empty()), levels, columns })
}

fn title(against: &AgainstReport, published: bool) -> String {
    let elsewhere = match published {
        true => format!("; * {ELSEWHERE}, with its difference to its own baseline"),
        false => String::new(),
    };
    format!(
        "mean, standard deviation (sd), minimum and maximum of the messages that have the figure, and below by how much each is \
         above the figure of {}{elsewhere}; no interval: a maximum of one run has none for other runs",
        against.name()
    )
}

/// Whether a condition is a row of the table: it is compared, or it is the baseline of one that is.
fn is_shown(against: &AgainstReport, id: usize) -> bool {
    let compared = against.rows.iter().filter(|r| !r.differences.is_empty());
    compared.into_iter().any(|r| r.condition == id || r.baseline == Some(id))
}

fn measured(report: &Report, against: &AgainstReport, id: usize, metric: Metric, at: usize) -> Cell {
    let row = against.rows.iter().find(|r| r.condition == id);
    let of = row.into_iter().flat_map(|r| &r.differences);
    let same = |d: &&tailbound_document::Difference| d.metric == metric.key() && d.statistic == SPREAD_STATISTICS[at];
    Cell {
        value: report.conditions[id].spread(metric)[at],
        difference: of.into_iter().find(same).map(|d| d.difference_ns),
    }
}

fn elsewhere(published: &PublishedFiguresReport, metric: Metric, at: usize) -> Cell {
    if published.metric != metric.key() {
        return Cell::default();
    }
    let ns = |pair: Option<[i64; 2]>| pair.map(|pair| pair.map(|ns| ns as f64));
    let values = [published.mean_ns, published.stddev_ns, None, published.max_ns];
    Cell { value: ns(values[at]), difference: ns(published.mean_above_ns.filter(|_| at == 0)) }
}

/// A row that has only a name, in the last column of levels.
fn named(name: &str, factors: usize) -> Row {
    let mut levels = vec![String::new(); factors.max(1)];
    levels[factors.max(1) - 1] = format!("* {name}");
    Row { levels, cells: Vec::new(), max: String::new(), lost: String::new(), not_sent: String::new(), mark: "" }
}
