//! What ordinary messages spend their time on.

use crate::{CauseWord, CausedBy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the ordinary messages of a condition spend their time on: means over up to 40 messages of each trial, spread over the trial,
/// whose events were recorded. No late message is one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsualReport {
    /// Number of these messages, of all trials.
    pub messages: u64,
    /// Mean time from the due time of a message until its answer was received, ns.
    pub mean_ns: i64,
    /// Parts of this time, the longest first.
    pub parts: Vec<UsualPart>,
    /// Mean time without a known cause, ns.
    pub unexplained_ns: i64,
}

/// A part of the time of ordinary messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsualPart {
    /// What the time was spent on: the words of causes of late messages.
    pub cause: CauseWord,
    /// Leg in which the time passed: `out`, `turnaround`, `back` or others, as for incidents.
    pub leg: String,
    /// Name of the end at which it passed; absent if it passed between the ends.
    pub end: Option<String>,
    /// Name of the thread that ran, or had to wait; absent if there was none.
    pub thread: Option<String>,
    /// The thread or interrupt that had the CPU; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<CausedBy>,
    /// Mean over all these messages, ns.
    pub mean_ns: i64,
}
