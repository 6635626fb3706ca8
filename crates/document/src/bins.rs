//! Types for the table of latencies in bins of equal width that a study asks for, and for published results of other
//! people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{Nanos, Published, PublishedFigures};

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
    /// Mean, standard deviation and maximum of one metric, as the publication gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<PublishedFiguresReport>,
}

impl From<&Published> for PublishedReport {
    fn from(p: &Published) -> Self {
        let patterns = p.patterns.iter().map(|(pattern, n)| (pattern.words().to_owned(), *n)).collect();
        PublishedReport {
            name: p.name.clone(),
            text: p.text.clone(),
            histogram: p.histogram.clone(),
            patterns,
            figures: p.figures.as_ref().map(Into::into),
        }
    }
}

/// Figures of one metric that other people published, on other hardware: each pair holds the smallest and the largest
/// published value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedFiguresReport {
    /// Metric of this report that comes nearest to the published latency.
    pub metric: String,
    /// Published mean, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<[i64; 2]>,
    /// Published mean minus the mean of the publication's baseline, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_above_ns: Option<[i64; 2]>,
    /// Published standard deviation, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stddev_ns: Option<[i64; 2]>,
    /// Published maximum, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<[i64; 2]>,
}

impl From<&PublishedFigures> for PublishedFiguresReport {
    fn from(p: &PublishedFigures) -> Self {
        let ns = |of: Option<[Nanos; 2]>| of.map(|pair| pair.map(|n| n.0));
        PublishedFiguresReport {
            metric: p.metric.key().into(),
            mean_ns: ns(p.mean),
            mean_above_ns: ns(p.mean_above),
            stddev_ns: ns(p.stddev),
            max_ns: ns(p.max),
        }
    }
}
