//! The JSON document of a comparison: `tailbound compare --format json`.
//!
//! A ratio is side b to side a. A member that does not apply is absent.

use crate::document::{FormatVersion, ReportStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Major version of the document; a higher one means that a member changed its meaning or went away.
pub const COMPARISON_MAJOR: u32 = 1;
/// Minor version of the document; a higher one means that members were added.
pub const COMPARISON_MINOR: u32 = 0;

/// A comparison of two sides, condition by condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of this document.
    pub format: FormatVersion,
    /// Release that made the comparison.
    pub tailbound: String,
    /// What the sides are.
    pub of: ComparisonOf,
    /// The side that ratios are taken to.
    pub a: Side,
    /// The side that ratios are taken of.
    pub b: Side,
    /// What limits all verdicts; present when the sides are separate runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// What else differs between separate runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
    /// Conditions that have no counterpart, or none that is the same thing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<NotCompared>,
    /// Ratios from 1 / (1 + margin) to 1 + margin count as equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// What the table says, in sentences.
    pub findings: Vec<String>,
    /// Conditions, the largest difference first.
    pub pairs: Vec<Pair>,
}

/// What the sides are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonOf {
    /// Two records.
    Records,
    /// Two levels of a factor inside one record.
    Levels,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// What it is called here: the record's directory, or the level.
    pub name: String,
    /// The record.
    pub record: String,
    /// Its study.
    pub study: String,
    /// Identity of its run.
    pub run_id: String,
    /// Wall-clock time of its beginning, ns since 1970.
    pub began_unix_ns: i64,
    /// Whether the record may be trusted; only valid trials are compared.
    pub status: ReportStatus,
    /// The figures are good for function only, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functional_only: Option<String>,
}

/// A circumstance that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Its name, e.g. `kernel.release`.
    pub what: String,
    /// On side a.
    pub a: String,
    /// On side b.
    pub b: String,
}

/// A condition that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotCompared {
    /// Its name.
    pub condition: String,
    /// Why.
    pub why: String,
}

/// A condition on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// What both have in common.
    pub name: String,
    /// Levels that both have.
    pub levels: BTreeMap<String, String>,
    /// On side a.
    pub a: OneSide,
    /// On side b.
    pub b: OneSide,
    /// Metric by metric, statistic by statistic.
    pub statistics: Vec<Compared>,
}

/// One side of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OneSide {
    /// Index of the condition within its plan.
    pub condition: usize,
    /// Valid trials, which the figures are of.
    pub trials: Vec<usize>,
    /// Trials that are left out because they are invalid or did not end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<usize>,
    /// Measured slots of the valid trials.
    pub scheduled: u64,
    /// Those never answered.
    pub lost: u64,
    /// Those never sent.
    pub not_sent: u64,
}

/// One statistic on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Metric, e.g. `round_trip`; `throughput` and `publisher_cpu` of flows.
    pub metric: String,
    /// Statistic: `p50`, `p99`, `p99.9`, `mean`; of flows `samples/s`, `CPU/sample`.
    pub statistic: String,
    /// Unit of `a` and `b`: `ns` or `1/s`.
    pub unit: String,
    /// Geometric mean over the trials of side a; absent where a trial has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<f64>,
    /// The same of side b.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<f64>,
    /// `b` to `a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Interval of the ratio. Unless `within_runs`, all intervals of the document hold together in 95 % of documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The interval is of these very runs only: it knows nothing of how one trial differs from the next.
    pub within_runs: bool,
    /// The verdict.
    pub verdict: VerdictWord,
    /// The interval lies inside the margin.
    pub within_margin: bool,
    /// How many more trials a side a verdict takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_trials: Option<usize>,
    /// About how many trials a side it takes to tell equality within the margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_for_margin: Option<usize>,
    /// Why there is no ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What is said about side b.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    /// Better than a.
    Faster,
    /// Worse than a.
    Slower,
    /// Neither could be shown.
    NoDifferenceFound,
    /// Neither, and it cannot be more than the margin.
    Equal,
    /// Too few trials, or too few messages in them.
    NotEnoughData,
}
