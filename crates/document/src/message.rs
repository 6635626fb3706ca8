//! Single messages in a report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Times of one message of a trial: when it was due, sent and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Id of the trial of the message.
    pub trial: usize,
    /// Number of the message's slot in the trial, counted from the begin of the warm-up.
    pub slot: u64,
    /// Time at which the message was due, ns of the sender's monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_ns: Option<i64>,
    /// Time at which the send call of the message began, ns of the sender's monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_begin_ns: Option<i64>,
    /// Time at which the send call of the previous slot returned, ns of the sender's monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_send_end_ns: Option<i64>,
    /// Time from the moment at which the message was due to the receipt of its answer, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_intended_ns: Option<i64>,
    /// Round trip: time from the begin of the send call to the receipt of the answer, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ns: Option<i64>,
    /// Send lateness: time from the moment at which the message was due to the begin of the send call, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness_ns: Option<i64>,
    /// Duration of the message's send call, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_duration_ns: Option<i64>,
    /// M2: time from the wake-up of the sender to the return of the send call, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_to_sent_ns: Option<i64>,
    /// Leg from ping to pong: time from the begin of the send call to the receipt at the pong, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_ns: Option<i64>,
    /// Turnaround inside the pong: time from the receipt of the message to the end of the send call for the answer, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turnaround_ns: Option<i64>,
    /// Leg from pong to ping: time from the end of the pong's send call to the receipt of the answer, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_ns: Option<i64>,
    /// Smallest and largest possible value of `out_ns`, if the ends have different clocks, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_range_ns: Option<[i64; 2]>,
    /// Smallest and largest possible value of `back_ns`, if the ends have different clocks, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_range_ns: Option<[i64; 2]>,
    /// Time from the begin of the send call to the kernel's receive timestamp on the pong's host, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_network_ns: Option<i64>,
    /// Time from the end of the pong's send call to the kernel's receive timestamp on the ping's host, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_network_ns: Option<i64>,
    /// Smallest and largest possible value of `out_network_ns`, if the ends have different clocks, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_network_range_ns: Option<[i64; 2]>,
    /// Smallest and largest possible value of `back_network_ns`, if the ends have different clocks, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_network_range_ns: Option<[i64; 2]>,
}

/// Number of the worst messages of a condition of which the report describes where their time passed.
pub const WORST_DESCRIBED: usize = 10;
