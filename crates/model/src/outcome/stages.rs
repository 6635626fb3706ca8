//! Stages that messages passed on one host: when the kernel and the network card had each of them.

use crate::NO_TIME;
use serde::{Deserialize, Serialize};

/// Times of the messages of one end that have the same sequence number: the message that the end sent, and the message that it received.
/// [`NO_TIME`] = there is no stamp of this stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageRow {
    /// Sequence number of the message: `stream << 48 | slot counter`.
    pub seq: u64,
    /// Time at which the message came to the queue discipline of the interface, ns.
    pub queued_ns: i64,
    /// Time at which the driver of the interface got the message, ns.
    pub sent_ns: i64,
    /// Time at which the network card sent the message, ns.
    pub card_ns: i64,
    /// Time at which the network card of this end received the message with this sequence number from the other end, ns.
    #[serde(default = "no_time", skip_serializing_if = "is_no_time")]
    pub card_rx_ns: i64,
    /// Time at which an executor at this end had taken the message with this sequence number of the other end from the middleware,
    /// monotonic ns.
    #[serde(default = "no_time", skip_serializing_if = "is_no_time")]
    pub taken_ns: i64,
}

impl StageRow {
    /// The row of a message without any stamp.
    pub fn without_stamps(seq: u64) -> StageRow {
        let [queued_ns, sent_ns, card_ns, card_rx_ns, taken_ns] = [NO_TIME; 5];
        StageRow { seq, queued_ns, sent_ns, card_ns, card_rx_ns, taken_ns }
    }
}

fn no_time() -> i64 {
    NO_TIME
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_no_time(ns: &i64) -> bool {
    *ns == NO_TIME
}

/// The stamps of the messages of one end in one trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageFact {
    /// Number of messages with at least one stamp.
    pub messages: u64,
    /// Number of stamps that the kernel gave for frames without a readable sequence number.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unread: u64,
    /// Number of stamps that were left out because there were too many.
    #[serde(default, skip_serializing_if = "is_none")]
    pub left_out: u64,
    /// Number of stamps whose time could not be converted to the monotonic clock.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unconverted: u64,
    /// Largest error of a stamp of the kernel, converted from CLOCK_REALTIME, ns; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_ns: Option<i64>,
    /// Largest error of a stamp of the network card, of sent and of received messages, converted from its own clock, ns; absent if
    /// there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_width_ns: Option<i64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(number: &u64) -> bool {
    *number == 0
}
