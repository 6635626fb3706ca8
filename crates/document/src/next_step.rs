//! Next steps: what to try against the late and lost messages of a condition, and what it should gain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of next steps of a condition.
pub const NEXT_STEPS: usize = 2;

/// A change that answers a cause of late or lost messages which was seen or counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextStep {
    /// Key of the rule that gives the step, as in `tailbound advice --list`.
    pub rule: String,
    /// What to change and why, as one sentence.
    pub text: String,
    /// Settings of a study that make the change, as for `--set`; empty if the change can be made by hand only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// Command that runs the study with the change, quoted for a shell; absent if the change can be made by hand only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Command that tries changes one after the other and keeps what helps, quoted for a shell; absent if the change can be made
    /// by hand only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tune: Option<String>,
    /// Metric of the quantile: `from_intended`, or with stop-and-wait `round_trip`; absent if there is no estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Fraction of the quantile for which the gain is estimated, e.g. 0.999 for p99.9, or 1 for the maximum; absent if there is
    /// no estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<f64>,
    /// Measured value of the quantile, ns; absent if there is no estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now_ns: Option<i64>,
    /// Estimate of the quantile without the cause, ns: what the change can gain at most. Absent if there is no estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then_ns: Option<i64>,
    /// What must be started again for the change to take effect: `live`, `restart` (the program) or `reboot` (the host).
    pub scope: String,
}
