//! A warm-up that the analysis found: the begin of trials, if it is slower or faster than the rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Warm-up: messages at the beginning of trials that are slower or faster than the rest. These messages are part of all
/// figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WarmUpReport {
    /// Number of measured slots of the warm-up, in the trial with the longest warm-up.
    pub slots: u64,
    /// Number of measured slots of the trial with the longest warm-up.
    pub of: u64,
    /// Median round trip of the messages of the warm-up that was found, ns.
    pub before_ns: i64,
    /// Median round trip of the second half of the trial, ns.
    pub after_ns: i64,
    /// Number of trials in which such a warm-up was found.
    pub trials: u64,
}
