//! Stages of messages on their way: what a one-way latency consists of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of the one-way latency of the messages that one end sent and the other received, from the stamps of the kernel and of the
/// network card, and from the times at which an executor took messages. The parts of a message follow each other and add up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageReport {
    /// Name of the end that sent the messages.
    pub end: String,
    /// Number of messages that were sent and received, without the warm-up.
    pub messages: u64,
    /// Parts of the latency, in the order in which a message passes them. Messages with different stamps have different parts.
    pub parts: Vec<StagePart>,
    /// Number of these messages without a stamp at the queue discipline.
    pub without_queued: u64,
    /// Number of these messages without a stamp of the driver of the interface.
    pub without_sent: u64,
    /// Number of these messages without a stamp of the network card; absent if the card stamped none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_card: Option<u64>,
    /// Number of these messages without a stamp of the receiver's network card; absent if it stamped none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_card_rx: Option<u64>,
    /// Number of these messages without a receive timestamp of the kernel. Documents of earlier releases do not have it if the ends have
    /// different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_received: Option<u64>,
    /// Number of these messages for which it is not known when the receiver's executor took them; absent if this is known of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_taken: Option<u64>,
    /// Whether the ends have different clocks, so that the time from the sender to the first stamp of the receiver is no part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clocks_differ: bool,
    /// Time from the stamp with which a message left its sender to the receiver's network card, between two clocks; absent if the ends
    /// have one clock, or the receiver's card stamped none of these messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_range: Option<WireRange>,
    /// Number of messages with the stamps for a range of the wire, but without one: a clock changed, or its bounds are not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_wire: u64,
    /// Number of stamps that the kernel gave in vain: their frame did not show to which message they belong, there were too many,
    /// or their time could not be converted.
    pub unused: u64,
    /// Largest error of a stamp of the kernel, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_ns: Option<i64>,
    /// Largest error of a stamp of the network card, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_width_ns: Option<i64>,
    /// Largest error of a stamp of the receiver's network card, ns; absent if it stamped none of these messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_card_width_ns: Option<i64>,
}

/// Time on the wire between two clocks: every message has a smallest and a largest possible time, which the times of all messages prove.
/// The errors of the stamps are included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WireRange {
    /// Figures of the smallest possible times, rounded down.
    pub low: StagePart,
    /// Figures of the largest possible times, rounded up.
    pub high: StagePart,
}

impl From<[StagePart; 2]> for WireRange {
    fn from([low, high]: [StagePart; 2]) -> WireRange {
        WireRange { low, high }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One part of the latency, over all messages whose stamps divide it in this way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StagePart {
    /// The stages from one stamp to the next. There are several if the stamps between them are missing.
    pub stages: Vec<StageWord>,
    /// Number of messages with this part.
    pub messages: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns, rounded up to a bucket of the histogram.
    pub p50_ns: i64,
    /// 99th percentile, ns, rounded up to a bucket of the histogram.
    pub p99_ns: i64,
    /// Longest time, ns.
    pub max_ns: i64,
    /// Histogram of the part that consists of the stage `thread` alone: `[low_ns, high_ns, count]` of each bucket that is not empty, in
    /// rising order; both bounds belong to the bucket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(i64, i64, u64)>,
    /// Largest error of each of these times, ns: the errors of the stamps at both ends of the part. Absent if the part begins or ends at
    /// a time that a gate or a launch time decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_ns: Option<i64>,
}

/// A stage of a message on its way. The chapter "How the numbers are made" has the definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageWord {
    /// From the due time (answers and stop-and-wait: from the begin of the send call) to the queue discipline.
    HostLateness,
    /// From then to the launch time.
    LaunchWait,
    /// From then to the first time at which the gate permits the message, by the schedule.
    GateWait,
    /// From then until the message before this one, of the same class, had left.
    OwnClassQueue,
    /// From the permitted time to the stamp of the network card, or, without one, of the driver of the interface.
    ReleaseLateness,
    /// From then to the network card of the receiver.
    Wire,
    /// From there to the receive timestamp of the kernel.
    ReceivePath,
    /// From there to the thread that received the message. With an executor, to the time at which it had taken the message from the
    /// middleware.
    Thread,
    /// From then to the begin of the callback.
    Executor,
}
