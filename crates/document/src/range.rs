//! Figures for a chosen time range of every trial, and numbers of messages above a latency limit.
//!
//! These figures are separate types and tables, so that nobody can mistake figures of the range for figures of the
//! whole trials.

use crate::metric::{LegRange, MetricReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures of the messages that were due in a chosen time range of each trial (for stop-and-wait, messages whose send
/// call began in the range).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChosenReport {
    /// Begin of the range: time after slot 0 was due, ns.
    pub from_ns: i64,
    /// End of the range: time after slot 0 was due, ns; the end itself is not included.
    pub to_ns: i64,
    /// Number of measured slots in the range, in all used trials.
    pub messages: u64,
    /// Number of measured slots in the whole trials, inside and outside the time range.
    pub of: u64,
    /// Figures of the messages in the time range, by metric, without histograms.
    pub metrics: BTreeMap<String, MetricReport>,
    /// Smallest and largest possible figures of legs between two ends with different clocks, by metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leg_ranges: BTreeMap<String, LegRange>,
    /// Numbers of messages of the range above the latency limit of the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<AboveReport>,
}

/// Numbers of messages whose latency is above a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AboveReport {
    /// Latency limit above which messages are counted, ns.
    pub limit_ns: i64,
    /// Numbers of messages above the limit, by metric. For a leg between two ends with different clocks, e.g. `out`,
    /// `out_low` is the smallest and `out_high` is the largest possible number.
    pub metrics: BTreeMap<String, AboveCount>,
}

/// Number of messages above the latency limit, and number of messages with a value. Lost messages and messages that
/// were not sent have no value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AboveCount {
    /// Number of messages whose latency is above the limit.
    pub messages: u64,
    /// Number of messages that have a value of the metric.
    pub of: u64,
    /// Share of the messages above the latency limit, among the messages with a value.
    pub share: f64,
}
