//! Course of one message of an incident: where it was and what it waited for, from its due time to its answer.

use crate::cause::{CauseWord, CausedBy, Evidence};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Course of the most delayed message of an incident. All times are ns after the message was due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaterfallReport {
    /// The parts of the way of the message, in the order of time.
    pub legs: Vec<LegSpan>,
    /// The time spans of the message, in the order of time. Together they cover all legs.
    pub spans: Vec<HopSpan>,
    /// Smallest and largest time by which all time spans at the pong can have been later than shown, ns (negative:
    /// earlier); present only if the pong has another clock and is followed. The lengths of time spans within the pong do
    /// not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pong_shift_ns: Option<[i64; 2]>,
}

/// A part of the way of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LegSpan {
    /// Part of the way of a message: `send_lateness`, `out`, `turnaround`, `back` or `round_trip`.
    pub leg: String,
    /// Begin of the part, ns after the message was due.
    pub from_ns: i64,
    /// End of the part, ns after the message was due.
    pub to_ns: i64,
    /// Mean duration of this part for ordinary messages of the trial, ns; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_ns: Option<i64>,
}

/// A time span in which a message was at one place, with the cause of the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopSpan {
    /// Place of the message.
    pub hop: Hop,
    /// Single place of the message in the kernel, at the level `packets`; absent at other places, and if the message was
    /// at several places for a short time each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<KernelPlace>,
    /// Part of the way of a message: `send_lateness`, `out`, `turnaround`, `back` or `round_trip`.
    pub leg: String,
    /// Begin of the time span, ns after the message was due.
    pub from_ns: i64,
    /// End of the time span, ns after the message was due.
    pub to_ns: i64,
    /// Name of the end whose thread had the message, or whose thread should have received it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Name of the thread that had the message or should have received it, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Number of the CPU on which the thread ran or for which it waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Cause of the time; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseWord>,
    /// The thread or interrupt that had the CPU in this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<CausedBy>,
    /// Kind of the evidence for the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Number of short time spans at the same place that are part of this one; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<u64>,
    /// Time of the cause itself, ns; present only if time spans with other causes are merged into this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause_ns: Option<i64>,
}

impl HopSpan {
    /// A time span of a part of the way, ns after the message was due, of which only the place is known.
    pub fn new(hop: Hop, leg: &str, (from_ns, to_ns): (i64, i64)) -> HopSpan {
        HopSpan {
            hop,
            at: None,
            leg: leg.to_owned(),
            from_ns,
            to_ns,
            end: None,
            thread: None,
            cpu: None,
            cause: None,
            by: None,
            evidence: None,
            merged: None,
            cause_ns: None,
        }
    }
}

/// A single place of a message in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelPlace {
    /// Kind of the place.
    pub kind: PlaceKind,
    /// Name of the network device; absent at a socket, and if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// Kinds of single places of a message in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// Kind of a place: the queue discipline of a device.
    QueueDiscipline,
    /// Kind of a place: a device, from its driver to the device that receives the message.
    Device,
    /// Kind of a place: the soft interrupt that receives packets, or the wait for it, at the device that received the
    /// message. Bridges of the kernel pass packets on in it.
    Receive,
    /// Kind of a place: the receive buffer of a socket.
    Socket,
}

/// Places of a message on its way, in the order in which it passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hop {
    /// Place of the message: the sending thread, before its send call.
    Sender,
    /// Place of the message: the send call of the sending thread.
    SendCall,
    /// Place of the message: on the way to the pong, with no thread of an end.
    WayOut,
    /// Place of the message: at the thread of the pong that receives it.
    PongReceiver,
    /// Place of the message: in the pong, from its receipt to the end of the send call for the answer.
    Turnaround,
    /// Place of the message: its answer is on the way back, with no thread of an end.
    WayBack,
    /// Place of the message: between the ends and in the pong; only if the ends have different clocks and
    /// the pong is not followed.
    AwayFromPing,
    /// Place of the message: its answer is at the thread of the ping that receives it.
    PingReceiver,
}
