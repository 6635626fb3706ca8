//! The events of a run, which are stored in `events.jsonl`: one JSON object per line.

use serde::{Deserialize, Serialize};
use tailbound_model::Warning;

/// One line of `events.jsonl`, the list of the events of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventLine {
    /// Wall-clock time of the event of the run, ns since 1970.
    pub at_unix_ns: i64,
    /// The event that this line of `events.jsonl` describes.
    pub event: Event,
}

/// Kinds of events of a run. Programs that read the events skip kinds that they do not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// Event: the run began.
    RunBegan {
        /// Number of trials of the run.
        trials: usize,
    },
    /// Event: the lab of a block of trials was built.
    LabUp {
        /// Number of the block of trials for which the lab was built.
        block: usize,
        /// Description, for people, of the lab that was built.
        what: String,
    },
    /// Event: the lab of a block of trials was removed.
    LabDown {
        /// Number of the block of trials whose lab was removed.
        block: usize,
    },
    /// Event: host settings were applied for a block of trials.
    HostSet {
        /// Number of the block of trials for which host settings were applied.
        block: usize,
        /// One description, for people, of each host setting that was applied.
        what: Vec<String>,
    },
    /// Event: host settings were restored, or were left as they are because somebody else had changed the settings.
    HostPutBack {
        /// One description, for people, of each host setting that was restored, or left as it is.
        what: Vec<String>,
    },
    /// Event: a trial began.
    TrialBegan {
        /// Id of the trial that began.
        trial: usize,
        /// Id of the condition that the trial runs.
        condition: usize,
    },
    /// Event: a trial ended.
    TrialEnded {
        /// Id of the trial that ended.
        trial: usize,
        /// Number of scheduled slots of the trial, including the warm-up.
        scheduled: u64,
        /// Number of answers that arrived in the trial, within the timeout or after it.
        answered: u64,
    },
    /// Event: the run raised a warning.
    Warned(Warning),
    /// Event: the run ended.
    RunEnded {
        /// Status of the record at the end of the run: valid or invalid.
        status: super::Status,
    },
}
