//! Report of flows: samples that publishers sent, samples that each subscriber received, rates and latencies.

use crate::metric::MetricReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of a flow over all used trials of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowReport {
    /// Number of publishers of the flow.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
    /// Number of subscribers of the flow.
    pub subscribers: u32,
    /// Number of payloads in one message; each payload counts as a sample.
    pub pack: u32,
    /// Received samples per second at the slowest subscriber of each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<Spread>,
    /// Received payload in Mbit/s at the slowest subscriber of each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_mbit_s: Option<Spread>,
    /// Rate at which the publisher's interface sent, in Mbit/s, including frame headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_mbit_s: Option<Spread>,
    /// Time of slow send calls as a share of the flow's window, on average over the publishers. A call is slow if it took
    /// 100 us or longer, or was refused. The record does not show whether the publisher slept in the call, waited for a
    /// CPU, or worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_calls_share: Option<Spread>,
    /// CPU time of the publisher's process per sent sample, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher_cpu_ns: Option<Spread>,
    /// CPU time of a subscriber's process per received sample in ns, averaged over all subscribers; absent if publisher
    /// and subscriber share one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_cpu_ns: Option<Spread>,
    /// Duration of discovery: time from the opening of the first end until all ends had found each other, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_ns: Option<Spread>,
    /// CPU time of the controller during the measurement, as a share of one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_share: Option<Spread>,
    /// Number of samples that were sent in the windows of the flow, in all trials together.
    pub sent: u64,
    /// Number of samples that were lost, summed over all subscribers.
    pub lost: u64,
    /// Number of samples that arrived after a later sample, summed over all subscribers.
    pub out_of_order: u64,
    /// Number of samples that arrived more than once, summed over all subscribers.
    pub duplicates: u64,
    /// Latency from the begin of the send call to the receipt at each subscriber; only for fan-out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_way: Vec<SubscriberLatency>,
    /// Latency from the begin of the send call until the last subscriber had received the message; only for fan-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<MetricReport>,
    /// Time from the moment at which a message was due until the last subscriber had received the message; only for
    /// fan-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_from_intended: Option<MetricReport>,
    /// Figures of each trial of the flow.
    pub trials: Vec<FlowTrial>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(n: &u32) -> bool {
    *n == 1
}

/// A figure over several trials: median, smallest and largest value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Median of the figure over the trials.
    pub median: f64,
    /// Smallest value of the figure among the trials.
    pub low: f64,
    /// Largest value of the figure among the trials.
    pub high: f64,
}

/// Latency of messages from a publisher to one subscriber.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubscriberLatency {
    /// Name of the subscriber's end: `pong`, `pong2` and so on.
    pub end: String,
    /// Figures of the time from the begin of the publisher's send call to the receipt at the subscriber.
    pub figures: MetricReport,
}

/// Figures of one trial of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowTrial {
    /// Id of the trial of the flow.
    pub trial: usize,
    /// Sequence number of the first message of the flow's window; only messages of the first publisher.
    pub first: u64,
    /// Sequence number after the last message of the flow's window; only messages of the first publisher.
    pub end: u64,
    /// Largest possible time from the first message of the publisher that began first to the first message of the
    /// publisher that began last, ns; absent if there is only one publisher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_within_ns: Option<i64>,
    /// Time from the first to the last message that was sent in the window of the flow, ns.
    pub window_ns: i64,
    /// Number of samples that all publishers sent in the window of the flow.
    pub sent: u64,
    /// Number of send calls in the window of the flow that the driver refused.
    pub refused: u64,
    /// Total time of the send calls in the window of the flow, ns.
    pub send_ns: i64,
    /// Time of the send calls in the window of the flow that took 100 us or longer, or that were refused, ns.
    pub slow_calls_ns: i64,
    /// Duration of the longest send call in the window of the flow, ns.
    pub longest_ns: i64,
    /// CPU time of the publishers' processes during the window of the flow, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<i64>,
    /// Number of bytes that the publisher's interface sent per message, over the whole trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "wire_octets_per_message")]
    pub wire_bytes_per_message: Option<f64>,
    /// Addresses to which the publisher's datagrams were sent; absent if no datagrams were sent or they were not
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cast: Option<FlowCast>,
    /// Description of the publisher's writer as the driver reports it: batching, limits, retransmissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<serde_json::Value>,
    /// Time from the opening of the publisher until the publisher had found all subscribers, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_after_ns: Option<i64>,
    /// Duration of discovery: time from the opening of the first end until all ends had found each other, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_ns: Option<i64>,
    /// Number of samples that were sent in each whole second of the flow's window.
    pub seconds: Vec<FlowSecond>,
    /// Figures of each subscriber of the flow in this trial.
    pub subscribers: Vec<FlowSubscriber>,
}

/// Addresses of the datagrams that were sent from the publisher's network namespace, as counted by IP over the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowCast {
    /// Kind of the addresses to which datagrams were sent: `multicast`, `unicast` or `mixed`.
    pub way: String,
    /// Number of datagrams to multicast groups for each message of the publisher.
    pub to_groups: f64,
    /// Number of datagrams to single addresses for each message of the publisher.
    pub to_single: f64,
    /// Multicast groups that programs in the network namespaces of the ends have joined, each with its interface.
    pub groups: Vec<String>,
}

/// Figures of one subscriber in one trial. All counts are numbers of samples that were sent in the window of the flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSubscriber {
    /// Name of the subscriber's end: `pong`, `pong2` and so on.
    pub end: String,
    /// Number of samples that the subscriber received, without duplicates.
    pub received: u64,
    /// Number of samples that were sent and not received: sent = received + lost.
    pub lost: u64,
    /// Number of samples that arrived at the subscriber after a sample that was sent later.
    pub out_of_order: u64,
    /// Number of samples that arrived at the subscriber more than once.
    pub duplicates: u64,
    /// Received samples per second, from the first to the last arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// Received payload in Mbit/s, from the first to the last arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_mbit_s: Option<f64>,
    /// CPU time of the subscriber's process during the window of the flow, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<i64>,
    /// Time from the opening of the subscriber until it had found its publishers, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_after_ns: Option<i64>,
    /// Number of samples that were received in each whole second of the flow's window.
    pub seconds: Vec<FlowSecond>,
}

/// Counts of samples in one whole second of the monotonic clock within the window of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSecond {
    /// Time from the begin of the flow's window to the begin of the second, ns.
    pub after_ns: i64,
    /// Number of samples that the publisher sent, or that the subscriber received, in this second.
    pub samples: u64,
    /// Number of samples that were skipped in this second: these samples were lost, or arrived later, out of order.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// Number of samples of this second that arrived after a sample that was sent later.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub out_of_order: u64,
    /// Number of samples of this second that arrived more than once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duplicates: u64,
    /// For a publisher: time of the send calls that took 100 us or longer, or that were refused, ns.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub slow_calls_ns: i64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_no_time(ns: &i64) -> bool {
    *ns == 0
}
