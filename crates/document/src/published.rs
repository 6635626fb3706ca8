//! Types for published results of other people, and for the figures of the report that stand beside them.

use crate::factor::short_factor;
use crate::number::label;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{
    ChosenLevels, FigureCompared, FigureMetric, FigureStatistic, Metric, Nanos, OwnFigure, Published, PublishedColumn,
    PublishedFigures, PublishedNumber, PublishedRow, PublishedTable,
};

/// A published result of other people, measured on other hardware.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedReport {
    /// Name of the published result: a row of a published table, or a case.
    pub name: String,
    /// Where the result was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Text with which the publication describes the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Numbers of messages that the publication gives for the latency bins of the report's table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<u64>,
    /// Number of runs that the publication gives for each pattern of a load's effect, by the pattern's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patterns: BTreeMap<String, u64>,
    /// Mean, standard deviation and maximum of one metric, as the publication gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<PublishedFiguresReport>,
    /// Table of published numbers, each with the figure of this report that is shown beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<PublishedTableReport>,
    /// Differences between the published measurement and the one of this report: hardware, versions, definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

impl From<&Published> for PublishedReport {
    /// The published result without its table, which needs the figures of the report.
    fn from(p: &Published) -> Self {
        let patterns = p.patterns.iter().map(|(pattern, n)| (pattern.words().to_owned(), *n)).collect();
        PublishedReport {
            name: p.name.clone(),
            source: p.source.clone(),
            text: p.text.clone(),
            histogram: p.histogram.clone(),
            patterns,
            figures: p.figures.as_ref().map(Into::into),
            table: None,
            differs: p.differs.clone(),
        }
    }
}

/// Figures of one metric that other people published, on other hardware: each pair holds the smallest and the largest
/// published value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedFiguresReport {
    /// Metric of this report that comes nearest to the published latency.
    pub metric: String,
    /// Published mean, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<[i64; 2]>,
    /// Published mean minus the mean of the publication's baseline, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_above_ns: Option<[i64; 2]>,
    /// Published standard deviation, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stddev_ns: Option<[i64; 2]>,
    /// Published maximum, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<[i64; 2]>,
}

impl From<&PublishedFigures> for PublishedFiguresReport {
    fn from(p: &PublishedFigures) -> Self {
        let ns = |of: Option<[Nanos; 2]>| of.map(|pair| pair.map(|n| n.0));
        PublishedFiguresReport {
            metric: p.metric.key().into(),
            mean_ns: ns(p.mean),
            mean_above_ns: ns(p.mean_above),
            stddev_ns: ns(p.stddev),
            max_ns: ns(p.max),
        }
    }
}

/// A table of published numbers, each with the figure of this report that is shown beside it. A published number was
/// measured on other hardware, so that no verdict follows from the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedTableReport {
    /// What the rows of the table are, e.g. `payload`.
    pub axis: String,
    /// Levels of the conditions whose figures stand in the table, in words; absent if all conditions are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<String>,
    /// Columns of the published table.
    pub columns: Vec<PublishedColumnReport>,
    /// Rows of the published table.
    pub rows: Vec<PublishedRowReport>,
}

/// A column of a table of published numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedColumnReport {
    /// Name of the column in the publication.
    pub name: String,
    /// Unit of all numbers of the column: `ns`, `us`, `ms`, `s`, `%`, `Mbit/s` or `1/s`.
    pub unit: String,
    /// The figure of this report that is shown beside the published numbers, in words; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<String>,
    /// True if the figure of this report follows a definition of the publication that Tailbound uses nowhere else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub published_definition: bool,
}

/// A row of a table of published numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRowReport {
    /// Name of the row in the publication.
    pub name: String,
    /// Conditions whose figures stand in this row, in words: their levels, and the repetition if only one is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<String>,
    /// One cell for each column.
    pub cells: Vec<PublishedCellReport>,
}

/// A published number, and the figure of this report that is shown beside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedCellReport {
    /// Published number, in the unit of the column; absent if the publication gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedNumberReport>,
    /// Smallest and largest value of the figure of this report among the conditions, in the unit of the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<[f64; 2]>,
    /// Indices of the conditions from which the figure of this report was computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<usize>,
    /// Reason why a figure was asked for and is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A published number: a value (both ends are equal), a range, or a limit (one end is absent).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedNumberReport {
    /// Smallest published value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Largest published value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl From<PublishedNumber> for PublishedNumberReport {
    fn from(n: PublishedNumber) -> Self {
        PublishedNumberReport { low: n.low, high: n.high }
    }
}

impl PublishedTableReport {
    /// The table without figures of the report: `cell` gives the cell of a row and a column.
    pub fn of(
        table: &PublishedTable,
        cell: impl Fn(&PublishedRow, &PublishedColumn, Option<PublishedNumber>) -> PublishedCellReport,
    ) -> PublishedTableReport {
        let row = |row: &PublishedRow| PublishedRowReport {
            name: row.name.clone(),
            here: row_words(row),
            cells: table.columns.iter().zip(&row.cells).map(|(column, number)| cell(row, column, *number)).collect(),
        };
        let common = common_levels(table);
        let own = |(factor, _): &(&String, &Vec<String>)| !common.contains_key(*factor);
        let own = |column: &PublishedColumn| -> ChosenLevels {
            column.levels.iter().filter(own).map(|(f, l)| (f.clone(), l.clone())).collect()
        };
        let column = |column: &PublishedColumn| PublishedColumnReport {
            name: column.name.clone(),
            unit: column.unit.symbol().into(),
            here: column.here.as_ref().map(|of| figure_words(of, &own(column))),
            published_definition: column.here.as_ref().is_some_and(is_published_definition),
        };
        PublishedTableReport {
            axis: table.axis.clone(),
            here: levels_words(&common),
            columns: table.columns.iter().map(column).collect(),
            rows: table.rows.iter().map(row).collect(),
        }
    }
}

/// Levels that all columns with a figure of the report have.
fn common_levels(table: &PublishedTable) -> ChosenLevels {
    let mut all = table.columns.iter().filter(|column| column.here.is_some()).map(|column| &column.levels);
    let first = all.next().cloned().unwrap_or_default();
    all.fold(first, |common, levels| common.into_iter().filter(|(f, l)| levels.get(f) == Some(l)).collect())
}

/// True for half a round trip in the tail: a stall is on one way, so that half of the round trip halves it.
fn is_published_definition(of: &OwnFigure) -> bool {
    let location = matches!(&of.statistic, FigureStatistic::Quantile(q) if q == "0.5");
    of.metric == FigureMetric::Latency(Metric::HalfRoundTrip) && !location
}

fn row_words(row: &PublishedRow) -> Option<String> {
    let run = row.run.map(|run| format!("run {run}"));
    let parts: Vec<String> = levels_words(&row.levels).into_iter().chain(run).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Levels in words, e.g. `network pod; payload 64 B or 1 KiB`.
fn levels_words(levels: &ChosenLevels) -> Option<String> {
    let one = |(factor, levels): (&String, &Vec<String>)| format!("{} {}", short_factor(factor), levels.join(" or "));
    (!levels.is_empty()).then(|| levels.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// A figure in words, e.g. `p50 of half the round trip, minus the one with network host`.
fn figure_words(of: &OwnFigure, levels: &ChosenLevels) -> String {
    let statistic = match &of.statistic {
        FigureStatistic::Mean => "mean".into(),
        FigureStatistic::Sd => "standard deviation".into(),
        FigureStatistic::Min => "minimum".into(),
        FigureStatistic::Max => "maximum".into(),
        FigureStatistic::Quantile(q) if of.metric.is_of_trials() && q == "0.5" => "median of the trials".into(),
        FigureStatistic::Quantile(q) => q.parse().map_or_else(|_| q.clone(), label),
    };
    let metric = match of.metric {
        FigureMetric::Latency(Metric::RoundTrip) => "the round trip".to_owned(),
        FigureMetric::Latency(Metric::HalfRoundTrip) => "half the round trip".into(),
        FigureMetric::Latency(Metric::WakeToSent) => "M2 (wake-up to the return of the send call)".into(),
        FigureMetric::Latency(Metric::WakePeriod) => "M4 (time between wake-ups)".into(),
        FigureMetric::Latency(metric) => format!("`{}`", metric.key()),
        FigureMetric::Throughput => "the received payload".into(),
        FigureMetric::TotalTime => "M1 (first slot to last answer)".into(),
        FigureMetric::TotalWithDiscovery => "the time from the opening of the ends to the last answer".into(),
    };
    let baseline: ChosenLevels = of.baseline.iter().map(|(f, l)| (f.clone(), vec![l.clone()])).collect();
    let baseline = levels_words(&baseline).unwrap_or_default();
    let compared = match of.compared {
        FigureCompared::Alone => String::new(),
        FigureCompared::Difference => format!(", minus the one with {baseline}"),
        FigureCompared::Change => format!(", change against {baseline}"),
        FigureCompared::Overhead => format!(", overhead over {baseline}"),
    };
    let levels = levels_words(levels).map_or(String::new(), |levels| format!(" ({levels})"));
    format!("{statistic} of {metric}{compared}{levels}")
}
