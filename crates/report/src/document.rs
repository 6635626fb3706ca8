//! The JSON document: `tailbound report --format json`, and what the page draws from.
//!
//! Times are nanoseconds of the sender's monotonic clock. A member that does not apply is absent.

use crate::against::AgainstReport;
use crate::bins::PublishedReport;
use crate::circumstances::{Clock, Host, LoadReport, PathReport, RunReport, ThreadReport, TrialReport};
use crate::condition::ConditionReport;
use crate::host_settings::HostSettingsReport;
use crate::nodes::NodeReport;
use crate::side_by_side::SideBySide;
use crate::tools::ToolReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Major version of the document; a higher one means that a member changed its meaning or went away.
pub const FORMAT_MAJOR: u32 = 1;
/// Minor version of the document; a higher one means that members were added.
pub const FORMAT_MINOR: u32 = 0;

/// A report: everything that is computed from one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this document.
    pub format: FormatVersion,
    /// Release that made the report.
    pub tailbound: String,
    /// Name of the study.
    pub study: String,
    /// Its question.
    pub question: String,
    /// Whether the record may be trusted.
    pub status: ReportStatus,
    /// The figures are good for function only, and why; absent = they are good for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functional_only: Option<String>,
    /// What the figures say, in sentences, the worst news first.
    pub findings: Vec<Finding>,
    /// Everything that was raised while measuring and while computing.
    pub warnings: Vec<ReportWarning>,
    /// How the report is to be shown.
    pub view: View,
    /// What others found, as the study gives it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedReport>,
    /// What each level of a factor costs against one of them, where the study asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstReport>,
    /// Combinations of levels, in the order of the plan.
    pub conditions: Vec<ConditionReport>,
    /// Runs of the conditions, by id.
    pub trials: Vec<TrialReport>,
    /// How the record came about.
    pub run: RunReport,
    /// Facts of the hosts.
    pub facts: Vec<Host>,
    /// Threads of every measuring process, before the first slot and after the last.
    pub threads: Vec<ThreadReport>,
    /// What each load of each trial really did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadReport>,
    /// Settings of the host that trials ran under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_settings: Vec<HostSettingsReport>,
    /// What was found on the path before the driver started.
    pub path: Vec<PathReport>,
    /// The nodes of a cluster that ends were on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeReport>,
    /// The clocks that times were taken from.
    pub clocks: Vec<Clock>,
    /// Each driver as it describes itself.
    pub drivers: BTreeMap<String, serde_json::Value>,
    /// What other programs printed: nothing of it was measured by Tailbound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolReport>,
    /// Other programs beside drivers, and beside each other: what of it is comparable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_by_side: Vec<SideBySide>,
}

/// Version of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormatVersion {
    /// Incompatible changes.
    pub major: u32,
    /// Additions.
    pub minor: u32,
}

/// Whether a record may be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    /// Every trial may.
    Valid,
    /// At least one trial may not.
    Invalid,
    /// The run did not end by itself.
    Incomplete,
}

/// A sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What kind of news.
    pub level: FindingLevel,
    /// Stable word, e.g. `latency`, `never_answered`, `needs_more`.
    pub code: String,
    /// The sentence.
    pub text: String,
    /// Id of the part of the page that holds the evidence.
    pub evidence: String,
    /// Conditions that it is about.
    pub conditions: Vec<usize>,
}

/// Kinds of news, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingLevel {
    /// Figures that are not to be trusted.
    Untrusted,
    /// The system under test failed.
    Failed,
    /// What was measured.
    Result,
    /// A limit of what the figures say.
    Caution,
    /// What would give more.
    Hint,
}

/// A warning, as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportWarning {
    /// Stable word.
    pub code: String,
    /// How bad.
    pub severity: WarningSeverity,
    /// What and where.
    pub text: String,
    /// What to do; may be empty.
    pub mend: String,
    /// Trial, or all.
    pub trial: Option<usize>,
    /// End, or all.
    pub end: Option<String>,
}

/// How bad a warning is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningSeverity {
    /// Worth knowing.
    Note,
    /// The figure may be other than on a well set up machine.
    Warning,
    /// The trial is invalid.
    Invalid,
}

/// How the study wants to be shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct View {
    /// Title of the page.
    pub title: String,
    /// Factor on the x axis of the main figure.
    pub x: String,
    /// Quantiles shown.
    pub quantiles: Vec<f64>,
    /// The study asks for a tail estimate: where there is none, findings say why.
    #[serde(default)]
    pub tail_asked: bool,
}
