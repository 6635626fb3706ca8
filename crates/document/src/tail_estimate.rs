//! Tail estimate: extrapolation to messages that are rarer than the measured messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tail estimate, or the reason why there is no estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TailReport {
    /// The estimate: one message in `one_in` is later than about `level_ns`. The estimate is never a bound.
    Estimate {
        /// Rarity of the late messages: one message in this number.
        one_in: u64,
        /// Estimated latency that one message in `one_in` exceeds (the return level), ns.
        level_ns: i64,
        /// Lower end of the 95 % interval of the estimated latency, ns.
        low_ns: i64,
        /// Upper end of the 95 % interval of the estimated latency, ns.
        high_ns: i64,
        /// Threshold of the tail in ns: messages that are later than the threshold belong to the tail.
        threshold_ns: i64,
        /// Number of messages above the threshold of the tail.
        exceedances: u64,
        /// Number of clusters of messages above the threshold of the tail.
        clusters: u64,
        /// Extremal index: 1 if late messages come one by one, 0.1 if about ten late messages come together.
        extremal_index: f64,
        /// Shape of the fitted generalised Pareto distribution: above 0 the tail is heavier than exponential, below 0
        /// it is bounded.
        shape: f64,
        /// Scale of the generalised Pareto distribution that was fitted to the tail, ns.
        scale_ns: i64,
        /// Anderson-Darling statistic, computed from the latest message of each cluster.
        anderson_darling: f64,
        /// Critical value of the Anderson-Darling statistic: the statistic exceeds this value in one of ten cases
        /// although the distribution fits.
        critical: f64,
        /// Back-test: number of clusters above a level that the first half of the record predicts for the second half.
        held_out_expected: f64,
        /// Back-test: number of clusters that the second half of the record has above the level that the first half
        /// predicts.
        held_out_found: u64,
        /// Points of the fitted tail above the threshold: rarity, estimated latency, lower and upper end of the
        /// interval, in ns.
        #[serde(default)]
        course: Vec<(f64, i64, i64, i64)>,
    },
    /// No tail estimate could be computed.
    NotApplicable {
        /// Rarity of the late messages: one message in this number.
        one_in: u64,
        /// Reason why no tail estimate could be computed.
        not_applicable: String,
    },
}
