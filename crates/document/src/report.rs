//! The JSON document of a report, which `tailbound report --format json` prints.
//!
//! Times are nanoseconds of the sender's monotonic clock. A member that does not apply is absent.

use crate::budget::BudgetReport;
use crate::circumstances::{Clock, Host, LoadReport, PathReport, RunReport, ThreadReport, TrialReport};
use crate::clock_history::ClockHistoryReport;
use crate::condition::ConditionReport;
use crate::nodes::NodeReport;
use crate::overhead::AgainstReport;
use crate::published::PublishedReport;
use crate::side_by_side::SideBySide;
use crate::since::{LimitLine, SinceReport};
use crate::status::{FormatVersion, ReportStatus};
use crate::tools::ToolReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{HostSettings, TrialStatus, Warning};

/// Major version of the report document; the version rises if a member changes its meaning or is removed.
pub const FORMAT_MAJOR: u32 = 1;

/// Minor version of the report document; the version rises if members are added.
pub const FORMAT_MINOR: u32 = 0;

/// A report: all figures and sentences that are computed from one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of the format of the report document.
    pub format: FormatVersion,
    /// Release of Tailbound that made the report.
    pub tailbound: String,
    /// Name of the study that was run.
    pub study: String,
    /// The question that the study answers, in words.
    pub question: String,
    /// Whether the record from which the report was computed may be trusted.
    pub status: ReportStatus,
    /// Reason why the figures show only that the system works, not how fast it is; absent if the figures have no such
    /// restriction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functional_only: Option<String>,
    /// Findings: sentences about what the figures mean, the most serious finding first.
    pub findings: Vec<Finding>,
    /// Warnings of the measurement and of the analysis of the record.
    pub warnings: Vec<Warning>,
    /// How the study wants the report to be shown.
    pub view: View,
    /// Results that other people published, as the study quotes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedReport>,
    /// Overhead of each level of a factor relative to a baseline level; absent if the study does not ask for overheads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstReport>,
    /// Reports of the conditions, in the order of the plan.
    pub conditions: Vec<ConditionReport>,
    /// Reports of the trials of all conditions, in the order of their ids.
    pub trials: Vec<TrialReport>,
    /// How the record was made: command, time, study and order of the trials.
    pub run: RunReport,
    /// Facts of the hosts on which the ends ran.
    pub facts: Vec<Host>,
    /// Threads of every measuring process, before the first slot and after the last slot.
    pub threads: Vec<ThreadReport>,
    /// What each load did in each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadReport>,
    /// Host settings that the study asked for, with the trials that ran under these settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_settings: Vec<HostSettings>,
    /// Results of the path check, which ran before the driver started.
    pub path: Vec<PathReport>,
    /// Kubernetes nodes on which ends of the trials ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeReport>,
    /// Clocks of the hosts, from which the timestamps were taken.
    pub clocks: Vec<Clock>,
    /// Histories of the clocks of hosts during the trials, if the study asks for the state of the clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock_history: Vec<ClockHistoryReport>,
    /// Description of each driver, by name of the driver, as the driver reports it.
    pub drivers: BTreeMap<String, serde_json::Value>,
    /// Figures that other benchmark programs printed; Tailbound measured none of these figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolReport>,
    /// Comparisons of other benchmark programs with drivers and with each other, as far as their figures have the same
    /// definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_by_side: Vec<SideBySide>,
    /// What changed since the last run of the study; absent if no record of an earlier run lies in the folder of this
    /// record, or if their figures cannot be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<SinceReport>,
    /// Limits of a budget that figures of the report show as lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitLine>,
    /// Checks of the record against the limits of a budget; absent if no budget was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetReport>,
}

/// A finding: a sentence about what was measured or what failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Kind of the finding, e.g. a measured result or a caution.
    pub level: FindingLevel,
    /// Code of the finding for programs, which does not change, e.g. `latency`, `never_answered`, `needs_more`.
    pub code: String,
    /// Text of the finding, one sentence.
    pub text: String,
    /// Id of the part of the HTML page that shows the evidence.
    pub evidence: String,
    /// Indices of the conditions that the finding is about.
    pub conditions: Vec<usize>,
}

/// Kinds of findings, the most serious first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingLevel {
    /// Kind of finding: some figures must not be trusted.
    Untrusted,
    /// Kind of finding: the system under test failed.
    Failed,
    /// Kind of finding: a measured result.
    Result,
    /// Kind of finding: a caution about what the figures do not show.
    Caution,
    /// Kind of finding: advice on how to get more figures.
    Hint,
}

/// How the report is shown, as the study asks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct View {
    /// Title of the report.
    pub title: String,
    /// Factor on the x axis of the report's main chart.
    pub x: String,
    /// Quantiles that the report's tables and charts show.
    pub quantiles: Vec<f64>,
    /// True if the study asks for a tail estimate; findings then give the reason for each missing estimate.
    #[serde(default)]
    pub tail_asked: bool,
}

impl Report {
    /// The report of the trial with this id.
    pub fn trial(&self, id: usize) -> Option<&crate::circumstances::TrialReport> {
        self.trials.iter().find(|t| t.id == id)
    }

    /// Ids of the trials that ended and whose figures must not be trusted.
    pub fn invalid_trials(&self) -> impl Iterator<Item = usize> + '_ {
        self.trials.iter().filter(|t| t.status == TrialStatus::Invalid).map(|t| t.id)
    }
}
