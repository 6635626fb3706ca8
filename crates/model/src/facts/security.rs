//! What was found about the DDS Security of a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// DDS Security of a trial: what the participants got, and what their drivers read back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SecurityReport")]
pub struct SecurityFacts {
    /// Word of the study for the governance document of the participants.
    pub governance: String,
    /// Protection of each part of messages in this document, as in `rtps ENCRYPT, discovery NONE`.
    pub protections: String,
    /// Whose certificates the participants have: `made for the run`, or the directory of the user.
    pub certificates: String,
    /// What the driver of each end reports about the protection that is in force, by the name of the end.
    pub in_force: BTreeMap<String, String>,
}
