//! Predicted and measured waits for the gate of a traffic class (IEEE 802.1Q, time-aware shaping).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Waits of the messages of a condition for the gate on the interface by which an end sends. A wait is predicted for each
/// message, from the schedule that the kernel reported and the time at which the send call began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateReport {
    /// Name of the end that sends through the gate.
    pub end: String,
    /// Name of the traffic class of the messages.
    pub class: String,
    /// Length of the frame of a message without headers of the middleware, in bytes, with the Ethernet header and without the
    /// checksum.
    pub frame_bytes: u64,
    /// Time after which the schedule repeats, ns.
    pub cycle_ns: i64,
    /// Predicted mean wait for the gate of frames that are ready at any time of the cycle, ns; absent if the frame fits into no
    /// window of the class, as are the other predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_wait_ns: Option<f64>,
    /// Longest predicted wait for the gate, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_wait_ns: Option<u64>,
    /// Share of the times of the cycle at which a frame does not wait for the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_without_wait: Option<f64>,
    /// Messages by their predicted wait for the gate: those without a wait, and four equal parts of the longest wait. Parts
    /// without messages are left out.
    pub waits: Vec<GateWaits>,
    /// First and last time of each window at which a frame may be sent, ns after the begin of a cycle, in the order of time. The
    /// last one can end after the cycle.
    pub permitted: Vec<[i64; 2]>,
    /// The messages by the time in the cycle at which their send call began: equal parts of the cycle, in the order of time. Parts
    /// without messages are left out.
    pub phases: Vec<GatePhase>,
    /// Number of messages that arrived less than one cycle after their gate permitted them, less than two cycles, and later.
    pub cycles_later: [u64; 3],
    /// Number of messages that left, or arrived, before their gate permitted them.
    pub outside: u64,
    /// When the messages left, by the stamps of the kernel or of the network card; absent if they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<GateLeft>,
    /// The traffic classes of the interface, by their numbers from 0 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<GateClassReport>,
    /// The messages that waited longest from their due times until they left, or, without a stamp, until they arrived, and the worst
    /// messages of the condition; the one that waited longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<GateMessage>,
    /// Number of messages that cannot be among `messages`, because the clock of the schedule was not known to within a quarter of the
    /// cycle when they left.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_placed: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A traffic class of the interface of an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateClassReport {
    /// Name of the class in the study, or its number.
    pub name: String,
    /// Begin and end of each time in which the gate of the class is open, ns after the begin of a cycle, in the order of time. The
    /// last one can end after the cycle; a gate that never closes is open from 0 to the cycle.
    pub open: Vec<[i64; 2]>,
}

/// A message with its times in the cycle of its gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateMessage {
    /// Id of the trial of the message.
    pub trial: usize,
    /// Number of the slot of the message in the trial, counted from the begin of the warm-up.
    pub slot: u64,
    /// Place of the message among the worst messages of the condition (`worst`), from 1 on; absent if it is not one of the first ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<usize>,
    /// Time in the cycle at which the message was due (answers and stop-and-wait: at which its send call began), ns after the begin
    /// of the cycle.
    pub due_phase_ns: i64,
    /// Largest error of the time in the cycle, ns: the clock of the schedule is known within bounds.
    pub within_ns: i64,
    /// Time from the due time to the begin of the send call, ns.
    pub sent_after_ns: i64,
    /// Time from the due time until the message was ready for its gate, ns: its arrival at the queue discipline, or, without this
    /// stamp, the begin of the send call.
    pub ready_after_ns: i64,
    /// Time from the due time until the gate first permitted the message, ns, by the schedule; absent if it fits into no window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permitted_after_ns: Option<i64>,
    /// Time from the due time until the message left, ns, by the stamp of the network card or of the driver of the interface; absent
    /// without a stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_after_ns: Option<i64>,
    /// Time from the due time to the receipt of the message, ns; absent if the ends have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_after_ns: Option<i64>,
}

impl GateMessage {
    /// Time from the due time until the message had left, ns: by its stamp, or, without one, by its receipt.
    pub fn waited_ns(&self) -> i64 {
        self.left_after_ns.or(self.received_after_ns).unwrap_or(0)
    }
}

/// Messages whose stamps show when they left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateLeft {
    /// Number of messages with such a stamp.
    pub messages: u64,
    /// Number of them that certainly left after the last time of their window at which they might begin.
    pub late: u64,
    /// Longest time by which one certainly left after this time, ns.
    pub late_max_ns: i64,
}

/// Messages whose send calls began in the same part of a cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatePhase {
    /// Begin of the part, ns after the begin of the cycle.
    pub from_ns: i64,
    /// Number of messages whose send calls began in this part of the cycle.
    pub messages: u64,
    /// Shortest time from the begin of the send call to the receipt, ns.
    pub way_min_ns: i64,
    /// Longest time from the begin of the send call to the receipt, ns.
    pub way_max_ns: i64,
}

/// Messages with similar predicted waits for their gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateWaits {
    /// The predicted waits of these messages are above this time, ns; the same as `up_to_ns` = they are this time.
    pub above_ns: i64,
    /// Longest time up to which the predicted waits of these messages are, ns.
    pub up_to_ns: i64,
    /// Number of messages with these predicted waits.
    pub messages: u64,
    /// Mean of the predicted waits of these messages, ns.
    pub predicted_ns: f64,
    /// Mean of the measured times from the begin of the send call to the receipt, ns.
    pub way_ns: f64,
    /// Median of the time by which the measured time was longer than the predicted wait, ns. It contains the send call, other
    /// frames of the class before the message, and the way behind the gate.
    pub beyond_p50_ns: i64,
    /// 99th percentile of the time beyond the predicted wait, ns.
    pub beyond_p99_ns: i64,
    /// Longest time beyond the predicted wait, ns.
    pub beyond_max_ns: i64,
}
