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
    /// The limits.
    pub limits: Vec<Limit>,
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
    /// The share of messages that are never answered; `None` = not one of the record.
    Lost(Option<f64>),
}

impl AtMost {
    /// The statistic's key.
    pub fn key(&self) -> &str {
        match self {
            AtMost::Quantile(label, _) => label,
            AtMost::Max(_) => "max",
            AtMost::Lost(_) => "lost",
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
    /// Metric and statistics, as `compare` names them.
    pub statistics: Vec<(Metric, Vec<String>)>,
}

/// Statistics that `compare` tells of each metric, by the names that it gives them.
pub const COMPARED_STATISTICS: [&str; 4] = ["p50", "p99", "p99.9", "mean"];
