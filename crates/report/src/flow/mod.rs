//! Flows: what a publisher sent, what of it reached each subscriber, how fast and how late.

mod axis;
mod cast;
mod csv;
mod figures;
mod growth;
mod latency;
mod table;
mod told;

pub(crate) use axis::{Line, Panel, Point as AxisPoint, Unit as AxisUnit, axis};
pub(crate) use csv::{HEADS as CSV_HEADS, cells as csv_cells};
pub(crate) use figures::{findings, of, of_trial, without_latency};
pub(crate) use growth::findings as growth;
pub(crate) use table::{FlowColumn, is_all, tables};
pub(crate) use told::notes;

use crate::condition::MetricReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A flow over all trials of a condition that its figures are made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowReport {
    /// How many publishers there were.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
    /// How many subscribers there were.
    pub subscribers: u32,
    /// Payloads in one message; each counts as a sample.
    pub pack: u32,
    /// Samples per second at the slowest subscriber of each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<Spread>,
    /// Mbit/s of payload at the slowest subscriber of each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_mbit_s: Option<Spread>,
    /// Mbit/s that the publisher's interface sent, frames included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_mbit_s: Option<Spread>,
    /// Share of the window that the publishers were blocked, in the mean: in calls of 100 us or longer, or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_share: Option<Spread>,
    /// CPU time of the publisher's process per sample sent, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher_cpu_ns: Option<Spread>,
    /// CPU time of a subscriber's process per sample received, ns, the mean of all subscribers; absent where it is the
    /// publisher's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_cpu_ns: Option<Spread>,
    /// From the first opening to the last match of all ends, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_ns: Option<Spread>,
    /// CPU time of the controller while the ends measured, as a share of one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_share: Option<Spread>,
    /// Samples sent in the windows.
    pub sent: u64,
    /// Samples lost, of all subscribers together.
    pub lost: u64,
    /// Samples that came after a later one, of all subscribers together.
    pub out_of_order: u64,
    /// Samples that came again, of all subscribers together.
    pub duplicates: u64,
    /// From send to receive at each subscriber; of fan-out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_way: Vec<SubscriberLatency>,
    /// From send until the last subscriber had it; of fan-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<MetricReport>,
    /// The same counted from when it was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_from_intended: Option<MetricReport>,
    /// Trial by trial.
    pub trials: Vec<FlowTrial>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(n: &u32) -> bool {
    *n == 1
}

/// A figure of several trials: their median, least and most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Least.
    pub low: f64,
    /// Most.
    pub high: f64,
}

/// How late messages reached one subscriber.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubscriberLatency {
    /// Its end: `pong`, `pong2` and so on.
    pub end: String,
    /// echo-in - send-begin.
    pub figures: MetricReport,
}

/// One trial of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowTrial {
    /// Trial.
    pub trial: usize,
    /// Sequence number of the first message of the window; of the first publisher.
    pub first: u64,
    /// Sequence number after its last; of the first publisher.
    pub end: u64,
    /// From the first to the last publisher's first message at most, ns; absent where one sends alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_within_ns: Option<i64>,
    /// Time from the first to the last message sent in it, ns.
    pub window_ns: i64,
    /// Samples sent in it, by all publishers.
    pub sent: u64,
    /// Calls that the driver refused in it.
    pub refused: u64,
    /// Time within calls that send, ns.
    pub send_ns: i64,
    /// Of it in calls of 100 us or longer, or refused, ns.
    pub blocked_ns: i64,
    /// The longest such call, ns.
    pub longest_ns: i64,
    /// CPU time of the publisher's process over the window, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<i64>,
    /// Octets that the publisher's interface sent for each message, over the whole trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_octets_per_message: Option<f64>,
    /// To whom its datagrams went; absent where none went, or nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cast: Option<FlowCast>,
    /// What the driver tells of the publisher's writer: batching, limits, retransmissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<serde_json::Value>,
    /// From opening the publisher until all its subscribers were matched, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_after_ns: Option<i64>,
    /// From the first opening to the last match of all ends, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_ns: Option<i64>,
    /// Samples sent in each whole second of the window.
    pub seconds: Vec<FlowSecond>,
    /// Each of them.
    pub subscribers: Vec<FlowSubscriber>,
}

/// To whom the datagrams of the publisher's network namespace were addressed, as IP counted them over the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowCast {
    /// `multicast`, `unicast` or `mixed`.
    pub way: String,
    /// Datagrams to a group, for each message.
    pub to_groups: f64,
    /// Datagrams to a single address, for each message.
    pub to_single: f64,
    /// Interface and group of those that the ends' namespaces have joined.
    pub groups: Vec<String>,
}

/// One subscriber of one trial. Counts are of samples of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSubscriber {
    /// Its end: `pong`, `pong2` and so on.
    pub end: String,
    /// Received, each once.
    pub received: u64,
    /// Sent and not received: sent = received + lost.
    pub lost: u64,
    /// Came after a later one.
    pub out_of_order: u64,
    /// Came again.
    pub duplicates: u64,
    /// Received per second, from the first to the last arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// The same in Mbit/s of payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_mbit_s: Option<f64>,
    /// CPU time of its process over the window, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<i64>,
    /// From opening until matched, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_after_ns: Option<i64>,
    /// Samples received in each whole second of the window.
    pub seconds: Vec<FlowSecond>,
}

/// One whole second of the monotonic clock within the window, in samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSecond {
    /// Its beginning after the window's, ns.
    pub after_ns: i64,
    /// Sent, or received.
    pub samples: u64,
    /// Passed over: lost, or still to come out of order.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// Came after a later one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub out_of_order: u64,
    /// Came again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duplicates: u64,
    /// Of a publisher: time that it was blocked, ns.
    #[serde(default, skip_serializing_if = "is_none_blocked")]
    pub blocked_ns: i64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_none_blocked(ns: &i64) -> bool {
    *ns == 0
}
