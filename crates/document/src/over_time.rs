//! A trial over time, summarised in narrow columns: each column has the lowest, the median and the highest value of
//! consecutive slots, so that every late message stays visible.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All slots of one trial in order, beginning with the warm-up. No column contains both warm-up and measured slots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverTime {
    /// Number of slots of the trial's warm-up.
    pub warm_up_slots: u64,
    /// Number of all slots of the trial, including the warm-up.
    pub slots: u64,
    /// Number of slots per column; the last column of the warm-up and the last column of the trial may have fewer.
    pub slots_per_column: u64,
    /// `[column, number of slots]`: number of slots that were lost or not sent, for each column that has such slots.
    pub unanswered: Vec<(usize, u64)>,
    /// Time from the sending of the trial's first slot to the sending of the first slot of each column, ns; absent if
    /// the slots have a schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begin_ns: Vec<i64>,
    /// Lowest, median and highest round trip of the slots in each column.
    pub round_trip: ColumnValues,
    /// Lowest, median and highest time from intended (time from the moment at which a message was due to its answer) of
    /// the slots in each column; absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_intended: Option<ColumnValues>,
}

/// Values of one metric for each column; null if no slot of the column has a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnValues {
    /// Lowest value of the metric among the slots of each column, ns.
    pub min_ns: Vec<Option<i64>>,
    /// Median of each column in ns: of n values, the value of rank ceil(n / 2).
    pub median_ns: Vec<Option<i64>>,
    /// Highest value of the metric among the slots of each column, ns.
    pub max_ns: Vec<Option<i64>>,
}
