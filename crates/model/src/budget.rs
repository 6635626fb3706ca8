//! What a result must keep.

use crate::{Metric, Nanos};
use std::collections::BTreeMap;

/// A budget: limits, and what may not become worse than a baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// Absolute limits, in the order of the file.
    pub limits: Vec<LimitSet>,
    /// Limits relative to another record.
    pub baseline: Option<BaselineBudget>,
}

/// Limits of some conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitSet {
    /// Levels that a condition must have; none = every condition.
    pub levels: BTreeMap<String, String>,
    /// Limits of messages.
    pub limits: Vec<Limit>,
    /// Limits of flows.
    pub throughput: Vec<FlowLimit>,
}

/// One limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Of what.
    pub metric: Metric,
    /// How much at most.
    pub at_most: AtMost,
}

/// A statistic and what it may be at most.
#[derive(Debug, Clone, PartialEq)]
pub enum AtMost {
    /// A quantile by its label, e.g. `p99.9`.
    Quantile(String, Nanos),
    /// The maximum of the answered messages.
    Max(Nanos),
    /// The mean of the answered messages.
    Mean(Nanos),
    /// The share of messages that are never answered; `None` = not one of the record.
    Lost(Option<f64>),
}

/// What a flow must keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowLimit {
    /// At least so many samples per second at the slowest subscriber.
    SamplesPerSecond(f64),
    /// At least so many Mbit/s of payload at the slowest subscriber.
    PayloadMbitPerSecond(f64),
    /// At most this share of the samples lost, of all subscribers together; `None` = not one of the record.
    Lost(Option<f64>),
}

impl FlowLimit {
    /// The statistic's key.
    pub fn key(self) -> &'static str {
        match self {
            FlowLimit::SamplesPerSecond(_) => "samples/s",
            FlowLimit::PayloadMbitPerSecond(_) => "Mbit/s",
            FlowLimit::Lost(_) => LOST,
        }
    }
}

impl AtMost {
    /// The statistic's key.
    pub fn key(&self) -> &str {
        match self {
            AtMost::Quantile(label, _) => label,
            AtMost::Max(_) => "max",
            AtMost::Mean(_) => "mean",
            AtMost::Lost(_) => LOST,
        }
    }
}

/// What may not become worse.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineBudget {
    /// The baseline record as written, relative to the budget's file.
    pub record: Option<String>,
    /// By how much it may be worse; 0.05 for 5 %.
    pub tolerance: f64,
    /// Metric and statistics, as `compare` names them, or [`LOST`].
    pub statistics: Vec<(Metric, Vec<String>)>,
    /// Statistics of flows: of [`FLOW_STATISTICS`].
    pub throughput: Vec<String>,
}

/// The metric of flows.
pub const THROUGHPUT: &str = "throughput";

/// The share of what was sent and never arrived.
pub const LOST: &str = "lost";

/// Statistics of flows that a budget knows.
pub const FLOW_STATISTICS: [&str; 3] = ["samples/s", "Mbit/s", LOST];

/// Statistics that `compare` tells of each metric, by the names that it gives them.
pub const COMPARED_STATISTICS: [&str; 4] = ["p50", "p99", "p99.9", "mean"];
