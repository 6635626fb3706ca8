//! State of a trial in a record and in a report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a trial: whether the trial has begun, has ended, and may be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrialState")]
pub enum TrialStatus {
    /// State of a trial: the trial has not begun.
    Pending,
    /// State of a trial: the trial has begun and not ended. If the run is killed, the trial keeps this state.
    Running,
    /// State of a trial: the trial ended, and its figures may be trusted.
    Valid,
    /// The trial ended, and its figures must not be trusted; the warnings give the reason.
    Invalid,
}
