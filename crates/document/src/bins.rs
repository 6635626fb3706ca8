//! Type for the table of latencies in bins of equal width that a study asks for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Numbers of messages of one condition in latency bins of equal width.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BinsReport {
    /// Key of the metric whose values are counted, e.g. `round_trip`.
    pub metric: String,
    /// Width of a bin in ns: bin k counts values from k widths (included) to k + 1 widths (excluded).
    pub bin_ns: i64,
    /// Number of values in each bin; the last bin has no upper end, and the first bin also counts values below zero.
    pub counts: Vec<u64>,
    /// Number of slots without a value, which are in no bin.
    pub without: u64,
}
