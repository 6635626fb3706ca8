//! The slots of a trial, summarised in as many columns as a chart has room for, so that every late message stays
//! visible.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailbound_model::Metric;

/// Lowest and highest value of the slots of a column, ns; null if no slot has a value.
pub type Range = Option<(i64, i64)>;

/// The measured slots of one trial in order; each column summarises `slots_per_column` slots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// M1: time from the moment at which the first slot was due (for stop-and-wait, at which it began) until the last
    /// answer was received or the last send call returned, whichever was later, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_time_ns: Option<i64>,
    /// Duration of the schedule, that is, number of slots times period, ns; absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_ns: Option<i64>,
    /// Number of measured slots of the trial.
    pub slots: u64,
    /// Number of consecutive slots per column; the last column may have fewer slots.
    pub slots_per_column: u64,
    /// Number of slots of each column that were lost or not sent.
    pub unanswered: Vec<u64>,
    /// Range of M2 in each column: time from the wake-up of the sender to the return of the send call.
    pub wake_to_sent: Vec<Range>,
    /// Range of M3, the round trip, among the slots of each column.
    pub round_trip: Vec<Range>,
    /// Range of M4 in each column: time from one wake-up of the sender to the next.
    pub wake_period: Vec<Range>,
}

impl Course {
    /// Ranges of this metric in each column; empty if the metric is not summarised.
    pub fn columns(&self, metric: Metric) -> &[Range] {
        match metric {
            Metric::WakeToSent => &self.wake_to_sent,
            Metric::RoundTrip => &self.round_trip,
            Metric::WakePeriod => &self.wake_period,
            _ => &[],
        }
    }
}
