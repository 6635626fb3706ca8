//! A change that may help, and what it should bring.

use serde::{Deserialize, Serialize};

/// A change that answers a cause of late messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Name of the candidate, unique within a run of `tune`: letters, digits and hyphens.
    pub key: String,
    /// Key of the rule that made the candidate.
    pub rule: String,
    /// Description of the change in one sentence.
    pub text: String,
    /// Settings of the study, each `key=value` as for `--set`.
    pub settings: Vec<String>,
    /// The cause that the change answers, in words.
    pub answers: String,
    /// When the change takes effect: `live`, `restart` or `reboot`.
    pub scope: String,
    /// How the change is undone.
    pub undo: String,
    /// True if the rule says that the change can cost CPU time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watches_cpu_time: bool,
    /// What the figure should be with the change; absent if no estimate exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Prediction>,
}

/// Estimate of the figure without a cause, from the record of the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The measured figure, ns.
    pub now_ns: f64,
    /// Estimate of the figure without the cause, ns.
    pub then_ns: f64,
}
