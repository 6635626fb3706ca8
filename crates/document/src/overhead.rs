//! Overhead of each level of a factor relative to a baseline level, which the study names in `report.against`.
//!
//! The overheads in % are computed from the ratios and intervals that `tailbound compare` computes for the same two
//! levels.

use crate::comparison::VerdictWord;
use crate::factor::short_factor;
use crate::spread::Difference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Overhead of each condition relative to the condition that has the baseline level of one factor and is otherwise
/// equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstReport {
    /// Path, in the study, of the factor whose levels are compared, e.g. `place.network`.
    pub factor: String,
    /// Baseline level, with which the other levels of the factor are compared.
    pub level: String,
    /// One row for each condition with another level than the baseline level, in the order of the plan.
    pub rows: Vec<AgainstRow>,
}

/// Overheads of one condition relative to its baseline condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstRow {
    /// Index of the condition whose overheads are given.
    pub condition: usize,
    /// Index of the baseline condition; absent if there is no such condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<usize>,
    /// Reason why the condition has no overheads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Overheads of the condition over its baseline condition, one for each figure; empty if no overhead was computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overheads: Vec<Overhead>,
    /// Mean, standard deviation, minimum and maximum of each metric, compared with the baseline condition; empty if there is no
    /// baseline condition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
}

/// Overhead of a condition over its baseline condition, for one figure. A value above zero is a cost: lower throughput,
/// or later answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Metric of the compared figure: `throughput` or `round_trip`.
    pub metric: String,
    /// Statistic of the figure: `Mbit/s` of payload (`samples/s` if payloads differ), `p50`, `p99` or `mean`.
    pub statistic: String,
    /// Unit of the values `baseline` and `value`: `Mbit/s`, `1/s` or `ns`.
    pub unit: String,
    /// Geometric mean of the figure over the trials of the baseline condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// Geometric mean of the figure over the trials of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Overhead of the condition over its baseline condition in %: `100 (value / baseline - 1)` for times, `100 (1 -
    /// value / baseline)` for rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_cent: Option<f64>,
    /// Interval of the overhead of the condition over its baseline condition, in %. Unless `within_runs` is true, the
    /// confidence level applies to all intervals of one level together: in 95 % of reports, all of them contain their
    /// true overheads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// True if the interval describes only the measured runs and not further runs, because the differences between
    /// trials are unknown.
    pub within_runs: bool,
    /// Verdict: how the condition compares with its baseline condition.
    pub verdict: VerdictWord,
    /// Number of additional trials of each of the two conditions that a verdict needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_trials: Option<usize>,
    /// Reason why no overhead of the figure was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Key of one figure for which overheads are computed: metric, statistic, and true if larger values of the figure are
/// better.
pub type OverheadFigure = (&'static str, &'static str, bool);

/// Figures for which overheads relative to a baseline condition are computed.
pub const OVERHEAD_FIGURES: [OverheadFigure; 4] = [
    ("throughput", "samples/s", true),
    ("round_trip", "p50", false),
    ("round_trip", "p99", false),
    ("round_trip", "mean", false),
];

impl AgainstReport {
    /// Short name of the factor with the baseline level, e.g. `network host`.
    pub fn name(&self) -> String {
        self.name_of(&self.level)
    }

    /// Short name of the factor with the given level, e.g. `network host`.
    pub fn name_of(&self, level: &str) -> String {
        format!("{} {level}", short_factor(&self.factor))
    }
}

impl Overhead {
    /// True if the overhead belongs to the given entry of [`OVERHEAD_FIGURES`].
    pub fn is_of(&self, (metric, statistic, rate): OverheadFigure) -> bool {
        self.metric == metric && (rate || self.statistic == statistic)
    }
}
