//! The request to repeat the trials of a study for a time (`tailbound run --for`), and which trials were removed again
//! (`--rolling`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{ByteSize, Nanos};

/// The request to repeat the trials of a study, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    /// Time for which the trials of the study are repeated.
    pub time: Nanos,
    /// No trial begins after the record has this size; absent if its size has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<ByteSize>,
    /// Whether the run ended because the record had this size.
    #[serde(default)]
    pub disk_reached: bool,
    /// What was removed to keep the record below its largest size; absent if nothing was to be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling: Option<Rolling>,
}

/// The removal of old trials, and what is known about all trials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rolling {
    /// Ids of the trials that are older than the trials whose figures are reported, and were kept because of their
    /// incidents.
    pub kept: Vec<usize>,
    /// What is known about the trials that were removed, by the number of the condition.
    pub removed: BTreeMap<usize, RemovedTrials>,
    /// When and how long all trials measured, also those that were removed.
    pub measured: Measured,
}

/// Sums over trials that were removed from a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedTrials {
    /// Number of trials.
    pub trials: u64,
    /// Number of these trials that were not valid; the other members do not contain them.
    pub not_valid: u64,
    /// Number of measured messages that were to be sent; those that were not answered were lost or not sent.
    pub scheduled: u64,
    /// Number of messages that were answered.
    pub answered: u64,
    /// Number of late messages.
    pub late: u64,
    /// Number of incidents.
    pub incidents: u64,
    /// Longest time from the due time of a late message to its answer, ns; absent if no message was late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_latency_ns: Option<i64>,
}

/// Times of measurements, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Time from the begin of the first measurement to the end of the last one.
    pub span_ns: i64,
    /// Sum of the times of all measurements.
    pub sum_ns: i64,
    /// Longest time between two measurements.
    pub longest_gap_ns: i64,
}

impl Measured {
    /// The times of these measurements, each with its begin and its end, in the order of time.
    pub fn of(spans: &[(i64, i64)]) -> Measured {
        let gap_ns = |pair: &[(i64, i64)]| pair[1].0 - pair[0].1;
        Measured {
            span_ns: spans.first().zip(spans.last()).map_or(0, |(first, last)| last.1 - first.0),
            sum_ns: spans.iter().map(|(from_ns, to_ns)| to_ns - from_ns).sum(),
            longest_gap_ns: spans.windows(2).map(gap_ns).max().unwrap_or(0).max(0),
        }
    }
}
