//! Single messages in a report, and the causes of the lateness of the worst messages.

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
    /// Cause of the lateness of the message; given only for the worst messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// Number of worst messages for which the report explains the lateness in sentences; the report lists more messages.
pub const CAUSES_EXPLAINED: usize = 10;

/// Cause of the lateness of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// The part of the message's time with the largest excess over its median: `send_lateness`, `out`, `turnaround` or
    /// `back`.
    pub leg: String,
    /// Time by which the part of the message's time that `leg` names is longer than its median, ns.
    pub excess_ns: i64,
    /// Part of the message's excess time that the cause explains, ns.
    pub explained_ns: i64,
    /// Kind of the cause of the lateness.
    pub kind: CauseKind,
    /// Name of the thread whose delay made the message late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Name of the end to which the delayed thread belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Number of the CPU for which the delayed thread waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Name of the thread that ran on the CPU while the delayed thread waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// The cause of the message's lateness as a sentence.
    pub text: String,
}

/// Kinds of causes of the lateness of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// A thread was ready to run and did not get a CPU.
    Waited,
    /// Cause of the lateness: the whole measuring process was stopped, e.g. by SIGSTOP.
    Stopped,
    /// A measured thread slept in a call into the driver.
    Blocked,
    /// Cause of the lateness: unknown, because no observed event explains it.
    Unexplained,
}

/// Excess time of the ten worst messages over the medians, summed over these messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// Sum of the excess time of the ten worst messages, ns.
    pub excess_ns: i64,
    /// Part of the excess time that has an observed cause, ns.
    pub explained_ns: i64,
}
