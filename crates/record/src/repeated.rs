//! The request to repeat the trials of a study for a time (`tailbound run --for`).

use serde::{Deserialize, Serialize};
use tailbound_model::{ByteSize, Nanos};

/// The request to repeat the trials of a study, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    /// Time for which the trials of the study are repeated.
    pub time: Nanos,
    /// No trial begins after the record has this size; absent if its size has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<ByteSize>,
    /// Whether the run ended because the record had this size.
    #[serde(default)]
    pub disk_reached: bool,
}
