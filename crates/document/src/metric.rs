//! Figures of one metric, e.g. the round trip, and quantiles of the metric.

use crate::tail_estimate::TailReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of a leg between two ends with different clocks. For each message, the shortest and the longest possible
/// time are known, because the messages limit the offset between the clocks. Each quantile of the true times lies
/// between the quantile of the shortest and the quantile of the longest possible times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegRange {
    /// Figures computed from the shortest possible time of each message.
    pub low: MetricReport,
    /// Figures computed from the longest possible time of each message.
    pub high: MetricReport,
}

/// Figures of one metric over the slots of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricReport {
    /// Number of slots with a value; mean, standard deviation, minimum and maximum are computed from these slots.
    pub n: u64,
    /// Number of slots from which quantiles are computed: the slots with a value, and the slots without an answer,
    /// which count as later than every value.
    pub scheduled: u64,
    /// Mean of the metric over the slots with a value, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Standard deviation of the values in ns (with n - 1 in the denominator); absent if there are fewer than two
    /// values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stddev_ns: Option<f64>,
    /// Smallest value of the metric, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<i64>,
    /// Largest value of the metric, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// Number of independent messages that would say as much about the maximum as the measured messages: the smallest
    /// effective sample size of the quantiles from p90 on. Absent if some slot was not answered, or if messages depend
    /// on each other over longer times than the trials show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub independent_n: Option<u64>,
    /// Rule of three: upper limit, with 95 % confidence, of the share of all messages that are later than the maximum:
    /// 3 divided by `independent_n`; absent if `independent_n` is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_of_three: Option<f64>,
    /// Quantiles of the metric over the scheduled slots.
    pub quantiles: Vec<QuantileReport>,
    /// Tail estimate: latency that one message in a large number exceeds, extrapolated beyond the measured messages; it
    /// is an estimate, never a bound. Only for `round_trip` and `from_intended`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailReport>,
    /// Histogram: `[low_ns, high_ns, count]` of each bucket that is not empty, in rising order; both bounds belong to
    /// the bucket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(i64, i64, u64)>,
}

impl MetricReport {
    /// Quantile of the metric for the fraction `q` of the slots, if the quantile was computed.
    pub fn quantile(&self, q: f64) -> Option<&QuantileReport> {
        self.quantiles.iter().find(|e| (e.q() - q).abs() < 5e-16)
    }
}

/// One quantile: its value, or the reason why it has no value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum QuantileReport {
    /// The quantile has a value, which is given with its interval.
    Value {
        /// Fraction of the scheduled slots for which the quantile is computed, e.g. 0.99 for p99.
        q: f64,
        /// Value of the quantile in ns: the exact value of rank ceil(q n) among n scheduled slots.
        value_ns: i64,
        /// Lower end of the quantile's 95 % interval in ns, rounded down to the bound of a histogram bucket.
        low_ns: i64,
        /// Upper end of the quantile's 95 % interval in ns, rounded up to the bound of a histogram bucket; null if the
        /// upper end lies among the slots without an answer.
        high_ns: Option<i64>,
        /// Outcome of the slots at the upper end of the interval; present if `high_ns` is null.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high_beyond: Option<Beyond>,
        /// Autocorrelation, within trials, of whether consecutive messages exceed the value (lag 1); null if the
        /// autocorrelation is not defined.
        autocorrelation: Option<f64>,
        /// Effective sample size: number of independent messages that would be as informative as the scheduled
        /// messages; the interval is computed from this number.
        effective_n: u64,
        /// True if the interval is narrower than it should be, for one of three reasons: messages depend on each other
        /// over longer times than a trial can show; trials differ; or the effective sample size is smaller than the
        /// quantile needs.
        too_narrow: bool,
    },
    /// The quantile has no value because there are too few messages.
    Needs {
        /// Fraction of the scheduled slots for which the quantile is computed, e.g. 0.99 for p99.
        q: f64,
        /// Number of messages that are needed to compute the quantile.
        needs: u64,
    },
    /// The quantile has no value because it falls among the slots without an answer.
    Beyond {
        /// Fraction of the scheduled slots for which the quantile is computed, e.g. 0.99 for p99.
        q: f64,
        /// Value of the quantile: always null, because the quantile has no value.
        value_ns: (),
        /// Outcome of the slots among which the quantile falls.
        beyond: Beyond,
    },
}

impl QuantileReport {
    /// Fraction of the scheduled slots for which the quantile is computed, e.g. 0.99 for p99.
    pub fn q(&self) -> f64 {
        match self {
            QuantileReport::Value { q, .. } | QuantileReport::Needs { q, .. } | QuantileReport::Beyond { q, .. } => *q,
        }
    }

    /// Value of the quantile in ns, if the quantile has a value.
    pub fn value_ns(&self) -> Option<i64> {
        match self {
            QuantileReport::Value { value_ns, .. } => Some(*value_ns),
            _ => None,
        }
    }
}

/// Outcome of slots that count as later than every value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// The slots that count as later than every value were sent and never answered.
    Lost,
    /// The slots that count as later than every value were not sent.
    NotSent,
    /// The slots that count as later than every value were lost or not sent.
    LostOrNotSent,
}

impl Beyond {
    /// The outcome of the slots in words, e.g. `not sent`.
    pub fn words(self) -> &'static str {
        match self {
            Beyond::Lost => "lost",
            Beyond::NotSent => "not sent",
            Beyond::LostOrNotSent => "lost or not sent",
        }
    }
}
