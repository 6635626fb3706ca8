//! Messages with launch times (SO_TXTIME): when they arrived, and which launch times the kernel refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arrivals of the messages of the ping in comparison with their launch times, at a pong that has the same clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchReport {
    /// Time before its launch time at which a message is due at the ping, ns.
    pub lead_ns: i64,
    /// Time before the launch time at which the queue gives a message to the device, ns.
    pub ahead_ns: i64,
    /// Whether launch times are deadlines, so that messages may leave earlier.
    pub deadline: bool,
    /// Number of messages that arrived, without the warm-up.
    pub messages: u64,
    /// Number of messages that arrived before their launch time, so that they left before it.
    pub early: u64,
    /// Longest time by which a message arrived before its launch time, ns; 0 = none did.
    pub early_max_ns: i64,
    /// Median of the times from the launch time to the arrival, ns; negative = before it. Absent if no message arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_p50_ns: Option<i64>,
    /// 99th percentile of the times from the launch time to the arrival, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_p99_ns: Option<i64>,
    /// Longest time from the launch time to the arrival, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_max_ns: Option<i64>,
    /// Number of messages, with the warm-up, that the kernel did not send because their launch time had passed when they reached
    /// the queue, or did not fit the queue.
    pub refused_invalid: u64,
    /// Number of messages, with the warm-up, that the kernel did not send because their launch time passed in the queue.
    pub refused_missed: u64,
    /// Whether more messages than these may have been refused, because the kernel had no room for reports, or the record for more
    /// slots.
    #[serde(default)]
    pub refused_incomplete: bool,
}
