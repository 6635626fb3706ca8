//! Runs that end at a message: the condition, and the message that fulfilled it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{Nanos, UntilCondition, UntilTerm};

/// The request to end a run at a message, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Until {
    /// What must be true of a message so that the run ends at it, for example `round_trip > 20 ms`.
    pub condition: UntilCondition,
    /// Time for which the trials of the study are repeated at most; absent if they are not repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Nanos>,
    /// The message at which the run ended; absent if no message fulfilled the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<MatchedMessage>,
    /// For each trial that the run ended early: the number of its slots, with the warm-up, by trial id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ended_early: BTreeMap<usize, u64>,
}

/// The first message of a trial that fulfilled the condition at which a run ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedMessage {
    /// Id of the trial of the message.
    pub trial: usize,
    /// Number of the message's row of samples in the trial.
    pub row: u64,
    /// Number of the message's slot, counted from the begin of the warm-up.
    pub slot: u64,
    /// Time at which the message was due, ns (stop-and-wait: at which its send call began).
    pub due_ns: i64,
    /// Time at which the answer was received, ns; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_ns: Option<i64>,
    /// The term of the condition that the message fulfilled.
    pub term: UntilTerm,
    /// Value of the term's metric, ns; absent for a lost message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_ns: Option<i64>,
    /// Number of messages of the trial that fulfil the condition; this message is the first of them.
    pub matches: u64,
}
