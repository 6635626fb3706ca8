//! How events of the kernel were recorded in the trials of a condition, and what the recording cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One way in which the agent of one or more ends recorded events of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingReport {
    /// Names of the ends whose agent recorded these events; empty if the controller recorded them on the host of the guests in
    /// which the ends run.
    pub ends: Vec<String>,
    /// Level of the recording: `threads` (context switches and wake-ups), `machine` (also interrupts) or
    /// `packets` (also the ways of messages through the kernel).
    pub level: String,
    /// Facility of the kernel that recorded: `bpf` or `perf`.
    pub by: String,
    /// Reason why BPF or a higher level was not used, in the first of these trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// Time that the recording added to a round trip, ns, as measured before each trial; the median of the trials.
    /// Absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_message_ns: Option<i64>,
    /// Round trip without the recording in the same measurements, ns; the median of the trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwatched_ns: Option<i64>,
    /// Costs of other levels, which were measured before each trial too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<LevelCost>,
    /// Numbers of datagrams in these trials that were not followed through the kernel, by the reason: `in_pages`,
    /// `protected`, `no_first_fragment` or `divided`.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub not_followed: std::collections::BTreeMap<String, u64>,
    /// Number of records of events and packets that the agents read in these trials; absent in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Number of records that the kernel dropped in these trials, because a ring buffer was full; absent as `records`. The times in
    /// which it dropped some are `not_seen_ns` of the incidents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records_dropped: Option<u64>,
    /// Number of trials in which events were recorded in this way.
    pub trials: u64,
}

/// What a recording would have cost at another level, as measured before each trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelCost {
    /// Level of the recording whose cost was measured: `threads`, `machine` or `packets`.
    pub level: String,
    /// Time that the recording added to a round trip, ns; the median of the trials.
    pub per_message_ns: i64,
    /// Round trip without the recording in the same measurements, ns; the median of the trials.
    pub unwatched_ns: i64,
}
