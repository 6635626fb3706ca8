//! The stream of events: what happened when, one JSON object per line.

use serde::{Deserialize, Serialize};
use tailbound_model::Warning;

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventLine {
    /// Wall-clock time, ns since 1970.
    pub at_unix_ns: i64,
    /// What.
    pub event: Event,
}

/// What can happen. Readers skip what they do not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// The run began.
    RunBegan {
        /// Number of trials.
        trials: usize,
    },
    /// The lab of a block stands.
    LabUp {
        /// Block.
        block: usize,
        /// For people.
        what: String,
    },
    /// The lab of a block is gone.
    LabDown {
        /// Block.
        block: usize,
    },
    /// Settings of the host were made for a block.
    HostSet {
        /// Block.
        block: usize,
        /// For people, one each.
        what: Vec<String>,
    },
    /// They were put back, or left where somebody else had changed them.
    HostPutBack {
        /// For people, one each.
        what: Vec<String>,
    },
    /// A trial began.
    TrialBegan {
        /// Trial.
        trial: usize,
        /// Condition.
        condition: usize,
    },
    /// A trial ended.
    TrialEnded {
        /// Trial.
        trial: usize,
        /// Scheduled slots, warm-up included.
        scheduled: u64,
        /// Answered in time or late.
        answered: u64,
    },
    /// A warning was raised.
    Warned(Warning),
    /// The run ended.
    RunEnded {
        /// valid or invalid.
        status: super::Status,
    },
}
