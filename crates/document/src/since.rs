//! What changed since an earlier run of the same study.

use crate::comparison::Comparison;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Comparison of a record with the record of an earlier run of the same study, which lies in the same folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinceReport {
    /// Name of the directory of the earlier record.
    pub record: String,
    /// Comparison of the earlier record (side a) with this record (side b). The sides have the names of their
    /// directories, without the folder.
    pub comparison: Comparison,
}

/// Limit of a budget for the latency of some conditions, which figures of the report show as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitLine {
    /// Name of the budget that has the limit.
    pub budget: String,
    /// Indices of the conditions to which the limit applies.
    pub conditions: Vec<usize>,
    /// Key of the limited metric, e.g. `round_trip`.
    pub metric: String,
    /// Limited statistic of the metric: `p99` and the like, `max` or `mean`.
    pub statistic: String,
    /// Largest allowed value of the statistic, ns.
    pub limit_ns: i64,
}
