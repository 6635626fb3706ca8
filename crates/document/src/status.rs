//! Members at the begin of every document: the version of the document's format, and whether the record may be trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the format of a document that Tailbound writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormatVersion {
    /// Major version of the document's format, which rises with incompatible changes.
    pub major: u32,
    /// Minor version of the document's format, which rises if members are added.
    pub minor: u32,
}

/// Whether the record from which a report was computed may be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    /// The record is valid: every trial may be trusted.
    Valid,
    /// The record is invalid: at least one trial must not be trusted.
    Invalid,
    /// The record is incomplete, because the run was interrupted.
    Incomplete,
}
