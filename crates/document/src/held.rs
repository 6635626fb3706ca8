//! Messages that were held on their way and released together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bursts of messages on one way: they were sent one period apart and received together, so that each took about one period less
/// than the message before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldReport {
    /// Leg of the messages: `out` or `back`.
    pub leg: String,
    /// Number of bursts.
    pub bursts: u64,
    /// Number of messages of all bursts.
    pub messages: u64,
    /// Number of messages of the burst with the most messages.
    pub most_messages: u64,
    /// Longest time for which a message was held, that is, by how much it took longer than usual, ns.
    pub longest_ns: i64,
    /// True if the writer was reliable in one of the trials: messages that were lost and sent again together look like messages that
    /// were held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub perhaps_sent_again: bool,
    /// The bursts with the longest holds, at most 20, in the order of trials and time.
    pub longest: Vec<HeldBurstReport>,
}

/// Messages that were received together although they were sent one period apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBurstReport {
    /// Id of the trial.
    pub trial: usize,
    /// Number of the first slot whose message was held.
    pub first_slot: u64,
    /// Number of the last slot whose message was held.
    pub last_slot: u64,
    /// Time at which the first message was due, after slot 0 was due, ns.
    pub from_ns: i64,
    /// Time at which the last message was due, after slot 0 was due, ns.
    pub to_ns: i64,
    /// Number of messages that were held and received.
    pub messages: u64,
    /// Time for which the first message was held, ns.
    pub held_ns: i64,
    /// Time from the receipt of the first message to the receipt of the last one, ns.
    pub received_within_ns: i64,
}
