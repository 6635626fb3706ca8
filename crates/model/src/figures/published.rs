//! Results that other people published about the question of a study, and the figures of a report that stand beside
//! them.

use super::metric::Metric;
use super::pattern::Pattern;
use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A result that other people published, measured on other hardware.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Published {
    /// Name of the result in the publication: a row of a published table, or a case.
    pub name: String,
    /// Where the result was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Text with which the publication describes the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Number of messages that the publication gives for each bin; the last number belongs to the bin without an upper
    /// end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<u64>,
    /// Number of runs that the publication gives for each pattern of a load's effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patterns: BTreeMap<Pattern, u64>,
    /// Mean, standard deviation and maximum of one metric, as the publication gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<PublishedFigures>,
    /// Table of published numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<PublishedTable>,
    /// Differences between the published measurement and the one of this study: hardware, versions, definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// Figures of one metric that other people published, each from the smallest to the largest published value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedFigures {
    /// Metric of this report that comes nearest to the published latency.
    pub metric: Metric,
    /// Smallest and largest published mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<[Nanos; 2]>,
    /// Smallest and largest difference of a published mean to the mean of the publication's baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_above: Option<[Nanos; 2]>,
    /// Smallest and largest published standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stddev: Option<[Nanos; 2]>,
    /// Smallest and largest published maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<[Nanos; 2]>,
}

/// ChosenLevels of factors, by the path of the factor: a condition belongs to them if it has one of the levels of each factor.
pub type ChosenLevels = BTreeMap<String, Vec<String>>;

/// A table of published numbers. Its columns have units; each of its cells is one published number, beside which one
/// figure of the report can stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedTable {
    /// What the rows of the table are, e.g. `payload`: the head of the column with the names of the rows.
    pub axis: String,
    /// Columns of the published table, without the column with the names of the rows.
    pub columns: Vec<PublishedColumn>,
    /// Rows of the published table.
    pub rows: Vec<PublishedRow>,
}

/// A column of a table of published numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedColumn {
    /// Name of the column in the publication.
    pub name: String,
    /// Unit of all numbers of the column.
    pub unit: FigureUnit,
    /// ChosenLevels of the conditions whose figures stand in this column.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: ChosenLevels,
    /// Figure of the report that is shown beside the published numbers of the column; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<OwnFigure>,
}

/// A row of a table of published numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Name of the row in the publication.
    pub name: String,
    /// ChosenLevels of the conditions whose figures stand in this row.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: ChosenLevels,
    /// The repetition of the condition, from 1, whose figures stand in this row; `None` = all repetitions together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// One number for each column; `None` where the publication gives none.
    pub cells: Vec<Option<PublishedNumber>>,
}

/// A published number: a value, a range, or a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PublishedNumber {
    /// Smallest published value; `None` if the publication gives only an upper limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Largest published value; `None` if the publication gives only a lower limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// A figure of the report that is shown beside published numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFigure {
    /// What is measured.
    pub metric: FigureMetric,
    /// Statistic of the metric.
    pub statistic: FigureStatistic,
    /// How the figure is compared with the same figure of a baseline condition.
    #[serde(default)]
    pub compared: FigureCompared,
    /// ChosenLevels that the baseline condition has in place of the levels of the condition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub baseline: BTreeMap<String, String>,
}

/// What a figure beside a published number is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureMetric {
    /// A latency of each message.
    Latency(Metric),
    /// Received payload per second at the slowest subscriber, one value for each trial.
    Throughput,
    /// M1: time from the first slot to the last answer, one value for each trial.
    TotalTime,
    /// Time until the ends had found each other, and then M1, one value for each trial.
    TotalWithDiscovery,
}

impl FigureMetric {
    /// True if the metric has one value for each trial, and not one for each message.
    pub fn is_of_trials(self) -> bool {
        !matches!(self, FigureMetric::Latency(_))
    }
}

/// Statistic of a figure beside a published number: of all messages of a condition or, if the metric has one value for
/// each trial, of its trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureStatistic {
    /// Mean of the values.
    Mean,
    /// Standard deviation of the values.
    Sd,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Quantile, as decimal text such as `0.99`.
    Quantile(String),
}

/// How a figure is compared with the same figure of a baseline condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureCompared {
    /// The figure itself, without a baseline.
    #[default]
    Alone,
    /// Figure minus baseline.
    Difference,
    /// Change in %: `100 (figure / baseline - 1)`.
    Change,
    /// Overhead in %, above zero for a cost: the change of a time, the decrease of a throughput.
    Overhead,
}

/// Unit of published numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FigureUnit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// Microseconds.
    #[serde(rename = "us")]
    Us,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Ms,
    /// Seconds.
    #[serde(rename = "s")]
    S,
    /// Per cent of a baseline.
    #[serde(rename = "%")]
    PerCent,
    /// Megabits of payload per second.
    #[serde(rename = "Mbit/s")]
    MbitPerS,
    /// Samples per second.
    #[serde(rename = "1/s")]
    PerS,
}

impl FigureUnit {
    /// All units of published numbers.
    pub const ALL: [FigureUnit; 7] = [
        FigureUnit::Ns,
        FigureUnit::Us,
        FigureUnit::Ms,
        FigureUnit::S,
        FigureUnit::PerCent,
        FigureUnit::MbitPerS,
        FigureUnit::PerS,
    ];

    /// Symbol of the unit, as study files and reports write it.
    pub fn symbol(self) -> &'static str {
        ["ns", "us", "ms", "s", "%", "Mbit/s", "1/s"][self as usize]
    }

    /// Number of nanoseconds in the unit; `None` if it is no unit of time.
    pub fn nanoseconds(self) -> Option<f64> {
        [1.0, 1e3, 1e6, 1e9].get(self as usize).copied()
    }
}
