//! Budgets: limits that the results in a record must keep.

use crate::{Metric, MissWindow, Nanos};
use std::collections::BTreeMap;

/// A budget: absolute limits, and limits relative to a baseline record.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// Name of the budget, as in the budget file.
    pub name: String,
    /// Absolute limits of the budget, in the order of the budget file.
    pub limits: Vec<LimitSet>,
    /// Limits of the budget relative to a baseline record.
    pub baseline: Option<BaselineBudget>,
}

/// Limits of a budget that apply to some conditions of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitSet {
    /// Level of each named factor that a condition must have so that the limits apply to the condition; if empty, the
    /// limits apply to every condition.
    pub levels: BTreeMap<String, String>,
    /// Limits for the latency and loss of messages in the conditions that have these levels.
    pub limits: Vec<Limit>,
    /// Limits for statistics of flows in the conditions that have these levels.
    pub throughput: Vec<FlowLimit>,
    /// Limits for runs of late and lost messages in the conditions that have these levels.
    pub misses: Option<MissesLimits>,
    /// Limits for the topics of a capture, as the only level `topic` names them; a record of a study has no topics.
    pub on_wire: Vec<WireLimit>,
}

/// A limit of a budget for the samples of a topic on the wire, in a capture.
#[derive(Debug, Clone, PartialEq)]
pub enum WireLimit {
    /// A quantile or the maximum of the lateness, or the share of lost samples; never the mean.
    AtMost(AtMost),
    /// Smallest allowed number of samples per second of all writers together.
    SamplesPerSecond(f64),
}

impl WireLimit {
    /// Key of the limited statistic in a budget file, e.g. `p99`.
    pub fn key(&self) -> &str {
        match self {
            WireLimit::AtMost(at_most) => at_most.key(),
            WireLimit::SamplesPerSecond(_) => SAMPLES_PER_SECOND,
        }
    }
}

/// Limits of a budget for runs of late and lost messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissesLimits {
    /// A message whose latency is above this limit is late; if absent, the rule of the record's report applies.
    pub late_above: Option<Nanos>,
    /// The windows for which late and lost messages are counted, and the number of messages on time that ends a
    /// recovery.
    pub window: MissWindow,
    /// The limits, in the order of the budget file.
    pub limits: Vec<MissesLimit>,
}

/// A limit of a budget for one statistic of runs of late and lost messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissesLimit {
    /// Largest allowed number of consecutive messages that are late or lost.
    LongestRun(u64),
    /// Largest allowed number of windows with too many late or lost messages.
    ViolatedWindows(u64),
    /// Longest allowed time from the first late or lost message to the first of `k` consecutive messages on time.
    Recovery(Nanos),
}

impl MissesLimit {
    /// Key of the limited statistic in a budget file, e.g. `longest_run`.
    pub fn key(self) -> &'static str {
        match self {
            MissesLimit::LongestRun(_) => "longest_run",
            MissesLimit::ViolatedWindows(_) => "m_of_k",
            MissesLimit::Recovery(_) => "recovery",
        }
    }
}

/// A limit of a budget for one statistic of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The metric whose statistic is limited.
    pub metric: Metric,
    /// The limited statistic of the metric, with its largest allowed value.
    pub at_most: AtMost,
}

/// A statistic of a metric, and the largest value that a budget allows.
#[derive(Debug, Clone, PartialEq)]
pub enum AtMost {
    /// Label of a quantile, e.g. `p99.9`, and the largest allowed value of this quantile.
    Quantile(String, Nanos),
    /// Largest allowed value of the maximum, over the answered messages.
    Max(Nanos),
    /// Largest allowed value of the mean, over the answered messages.
    Mean(Nanos),
    /// Largest allowed share of messages that are never answered; `None` means that no message of the record may be
    /// lost.
    Lost(Option<f64>),
}

/// A limit of a budget for one statistic of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowLimit {
    /// Smallest allowed number of samples per second at the slowest subscriber.
    SamplesPerSecond(f64),
    /// Smallest allowed payload rate in Mbit/s at the slowest subscriber.
    PayloadMbitPerSecond(f64),
    /// Largest allowed share of lost samples, over all subscribers together; `None` means that no sample may be lost.
    Lost(Option<f64>),
}

impl FlowLimit {
    /// Key of the limited statistic in a budget file, e.g. `lost`.
    pub fn key(self) -> &'static str {
        match self {
            FlowLimit::SamplesPerSecond(_) => SAMPLES_PER_SECOND,
            FlowLimit::PayloadMbitPerSecond(_) => "Mbit/s",
            FlowLimit::Lost(_) => LOST,
        }
    }
}

impl AtMost {
    /// Key of the limited statistic in a budget file, e.g. `lost`.
    pub fn key(&self) -> &str {
        match self {
            AtMost::Quantile(label, _) => label,
            AtMost::Max(_) => "max",
            AtMost::Mean(_) => "mean",
            AtMost::Lost(_) => LOST,
        }
    }
}

/// Limits relative to a baseline record: statistics that may not become worse than in that record.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineBudget {
    /// Path of the baseline record, relative to the directory of the budget file.
    pub record: Option<String>,
    /// Allowed relative change of each statistic against the baseline; 0.05 means 5 %.
    pub tolerance: f64,
    /// Each limited metric with its limited statistics: names of [`COMPARED_STATISTICS`], or [`LOST`].
    pub statistics: Vec<(Metric, Vec<String>)>,
    /// Names of the limited statistics of flows, from [`FLOW_STATISTICS`].
    pub throughput: Vec<String>,
}

/// Key of the statistics of flows in a budget file.
pub const THROUGHPUT: &str = "throughput";

/// Key of the smallest allowed number of samples per second in a budget file.
const SAMPLES_PER_SECOND: &str = "samples/s";

/// Key of the limits for the topics of a capture in a budget file.
pub const ON_WIRE: &str = "on_wire";

/// Key of the limits for runs of late and lost messages in a budget file.
pub const MISSES: &str = "misses";

/// Key, in a budget file, of the share of messages that were sent and never arrived.
pub const LOST: &str = "lost";

/// Names of the statistics of flows that a budget can limit.
pub const FLOW_STATISTICS: [&str; 3] = ["samples/s", "Mbit/s", LOST];

/// Names of the statistics that `tailbound compare` computes for each metric.
pub const COMPARED_STATISTICS: [&str; 4] = ["p50", "p99", "p99.9", "mean"];
