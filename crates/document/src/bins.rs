//! Types for the table of latencies in bins of equal width that a study asks for, and for published results of other
//! people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::Published;

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

/// A published result of other people, measured on other hardware.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedReport {
    /// Name of the published result: a row of a published table, or a case.
    pub name: String,
    /// Text with which the publication describes the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Numbers of messages that the publication gives for the latency bins of the report's table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<u64>,
    /// Number of runs that the publication gives for each pattern of a load's effect, by the pattern's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patterns: BTreeMap<String, u64>,
}

impl From<&Published> for PublishedReport {
    fn from(p: &Published) -> Self {
        let patterns = p.patterns.iter().map(|(pattern, n)| (pattern.words().to_owned(), *n)).collect();
        PublishedReport { name: p.name.clone(), text: p.text.clone(), histogram: p.histogram.clone(), patterns }
    }
}
