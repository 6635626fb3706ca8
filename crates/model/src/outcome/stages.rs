//! Stages that messages passed on the host that sent them: when the kernel and the network card had each of them.

use serde::{Deserialize, Serialize};

/// Times of one sent message. [`NO_TIME`](crate::NO_TIME) = the message has no stamp of this stage.
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
    /// Largest error of a stamp of the network card, converted from its own clock, ns; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_width_ns: Option<i64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(number: &u64) -> bool {
    *number == 0
}
