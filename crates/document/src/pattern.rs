//! Effect of a load on each trial, as a pattern. The pattern is decided from the discovery time, M1, M2, M3, M4 and run
//! delays, in comparison with the trials of the same study without a load, or otherwise with the trial's own schedule.
//! The requests of the study play no part in the decision.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Effect that a load had on a trial, as one of several named patterns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternReport {
    /// Name of the pattern of the load's effect in words, e.g. `publish blocked`.
    pub name: String,
    /// The figures from which the pattern of the load's effect was decided, in words.
    pub evidence: String,
}
