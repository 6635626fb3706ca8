//! What moved the times on the ways of a trial slowly.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A slow movement of the times on the ways of a trial, by the medians of at most 240 consecutive parts of the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MovementReport {
    /// Id of the trial.
    pub trial: usize,
    /// What moved the times, with the evidence.
    #[serde(flatten)]
    pub kind: MovementKind,
}

/// What moved the times on the ways of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MovementKind {
    /// Messages on one way waited for something periodic, e.g. a gate, whose cycle drifts against the period of the messages: the
    /// wait changes steadily between nothing and the worst wait, and then jumps. The other way rests, or between two clocks, moves at a
    /// steady rate.
    PhaseSweep {
        /// Way of the messages: `out` or `back`; or `round_trip`, if only the sum of both ways shows the sweep: both ways moved.
        leg: String,
        /// Change of the wait over time, parts per million.
        ppm: f64,
        /// Largest wait beyond the shortest time on this way, or on both ways together, ns.
        worst_wait_ns: i64,
        /// Number of steady changes of the wait, each between two jumps or times without a wait.
        ramps: u64,
    },
    /// The difference between the clocks of the ends changed, not at a steady rate: both ways moved by the same time in opposite
    /// directions, and their sum rests.
    ClockError {
        /// Largest difference between two times of the trial by which the clocks moved against a steady rate, ns.
        moved_ns: i64,
        /// Fastest change of the difference between the clocks over a tenth of the trial, parts per million.
        ppm: f64,
        /// Largest change of the sum of both ways, ns.
        sum_moved_ns: i64,
    },
}
