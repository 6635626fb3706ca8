//! The JSON document of a comparison, which `tailbound compare --format json` prints.
//!
//! Each ratio is the value of side b divided by the value of side a. A member that does not apply is absent.

use crate::status::{FormatVersion, ReportStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Major version of the comparison document; the version rises if a member changes its meaning or is removed.
pub const COMPARISON_MAJOR: u32 = 1;

/// Minor version of the comparison document; the version rises if members are added.
pub const COMPARISON_MINOR: u32 = 0;

/// A comparison of two sides, which are records or levels of a factor, condition by condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of the format of the comparison document.
    pub format: FormatVersion,
    /// Release of Tailbound that computed the comparison.
    pub tailbound: String,
    /// What is compared: two records, or two levels of a factor.
    pub of: ComparisonOf,
    /// Side a of the comparison, the baseline of all ratios.
    pub a: Side,
    /// Side b of the comparison, which is compared with side a.
    pub b: Side,
    /// Sentence that restricts all verdicts; present if the sides are separate runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Differences between separate runs other than the measured values, e.g. in the kernel version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
    /// Conditions that are not compared because the other side of the comparison has no counterpart whose figures have
    /// the same definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<NotCompared>,
    /// Margin of equality: ratios from 1 / (1 + margin) to 1 + margin count as equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Sentences about the results of the comparison.
    pub findings: Vec<String>,
    /// The compared pairs of conditions, the largest difference first.
    pub pairs: Vec<Pair>,
}

/// What is compared: two records, or two levels of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonOf {
    /// The compared sides are two records.
    Records,
    /// The compared sides are two levels of a factor within one record.
    Levels,
}

/// One side of a comparison, with the run that measured it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Name of this side of the comparison: the directory of the record, or the level.
    pub name: String,
    /// Directory of the record of this side of the comparison.
    pub record: String,
    /// Name of the study that was run for this side of the comparison.
    pub study: String,
    /// Unique id of the run that measured this side of the comparison.
    pub run_id: String,
    /// Wall-clock time of the beginning of the run, ns since 1970.
    pub began_unix_ns: i64,
    /// Whether the record may be trusted; only valid trials are compared.
    pub status: ReportStatus,
    /// Reason why the figures of this side show only that the system works, not how fast it is; absent if there is no
    /// such restriction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functional_only: Option<String>,
}

/// A circumstance, e.g. a fact about a host, that differs between the two sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Name of the circumstance that differs between the two runs, e.g. `kernel.release`.
    pub what: String,
    /// Value of the circumstance in the run of side a.
    pub a: String,
    /// Value of the circumstance in the run of side b.
    pub b: String,
}

/// A condition that is left out of the comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotCompared {
    /// Name of the condition that is not compared.
    pub condition: String,
    /// Reason why the condition is not compared.
    pub why: String,
}

/// A condition of side a and the same condition of side b.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Name of the pair of conditions, made of the levels that both conditions have in common.
    pub name: String,
    /// Levels of the factors that both conditions have in common.
    pub levels: BTreeMap<String, String>,
    /// The condition of side a of the comparison, with its numbers of slots.
    pub a: OneSide,
    /// The condition of side b of the comparison, with its numbers of slots.
    pub b: OneSide,
    /// Comparisons of the two conditions, one for each statistic of each metric.
    pub statistics: Vec<Compared>,
}

/// The condition of one side of a compared pair, with its trials and counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OneSide {
    /// Index of the condition in the plan of its record.
    pub condition: usize,
    /// Ids of the valid trials, from which the figures are computed.
    pub trials: Vec<usize>,
    /// Ids of the trials that are left out because they are invalid or did not end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<usize>,
    /// Number of measured slots in the valid trials of the condition.
    pub scheduled: u64,
    /// Number of slots of the condition that were lost.
    pub lost: u64,
    /// Number of slots of the condition that were not sent.
    pub not_sent: u64,
}

/// Comparison of one statistic of one metric between the two compared conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Key of the metric, e.g. `round_trip`; for flows, `throughput` or `publisher_cpu`.
    pub metric: String,
    /// Name of the statistic: `p50`, `p99`, `p99.9` or `mean`; for flows, `samples/s` or `CPU/sample`.
    pub statistic: String,
    /// Unit of the values `a` and `b`: `ns` or `1/s`.
    pub unit: String,
    /// Geometric mean of the statistic over the trials of side a of the comparison; absent if some trial has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<f64>,
    /// Geometric mean of the statistic over the trials of side b of the comparison; absent if some trial has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<f64>,
    /// Ratio of the value of side b to the value of side a.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Interval of the ratio of side b to side a. Unless `within_runs` is true, the confidence level applies to all
    /// intervals of a comparison together: in 95 % of comparisons, all intervals contain their true ratios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// True if the interval describes only the measured runs and not further runs, because the differences between
    /// trials are unknown.
    pub within_runs: bool,
    /// Verdict for this statistic: how side b of the comparison compares with side a.
    pub verdict: VerdictWord,
    /// True if the interval of the ratio lies within the margin of equality.
    pub within_margin: bool,
    /// Number of additional trials per side of the comparison that a verdict needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_trials: Option<usize>,
    /// Approximate number of trials per side of the comparison that are needed to show equality within the margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_for_margin: Option<usize>,
    /// Reason why the statistic has no ratio of side b to side a.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Verdict for one statistic: how side b of a comparison compares with side a.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    /// Verdict: side b of the comparison is better than side a.
    Faster,
    /// Verdict: side b of the comparison is worse than side a.
    Slower,
    /// Verdict: no difference between the two sides of the comparison could be shown.
    NoDifferenceFound,
    /// Verdict: a difference between the two sides that is larger than the margin of equality is excluded.
    Equal,
    /// Verdict: there are too few trials, or too few messages in the trials.
    NotEnoughData,
}
