//! Figures that other benchmark programs (tools) printed, with the definitions of the figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Output of one run of a tool, that is, of another benchmark program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReport {
    /// Name of the tool (another benchmark program).
    pub tool: String,
    /// Id of the trial in which the tool ran; absent if the tool's output was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<usize>,
    /// Name of the condition in which the tool ran, or of the imported file.
    pub name: String,
    /// True if the tool's output was imported from a file.
    pub imported: bool,
    /// Circumstances of the measurement that the user named when importing the output.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<String, String>,
    /// Circumstances of the imported measurement whose values are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Version of the tool, as the tool reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Command line with which the tool was started at each end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, String>,
    /// Scheduling policy, CPUs, duration, CPU time and exit of the tool's process at each end, in words, if Tailbound
    /// started the process.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<String, String>,
    /// One sentence for each setting of the study that the tool handles differently from a driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Sentences about the definition of the tool's figures: what the figures measure.
    pub definition: Vec<String>,
    /// Figures that were read from the tool's output.
    pub figures: Vec<ToolFigureReport>,
}

/// One figure that was read from a tool's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFigureReport {
    /// Measured quantity with its unit: `round_trip_ns`, `samples_per_s`, `payload_mbit_per_s`, `lost` ...
    pub what: String,
    /// Statistic of the figure: `mean`, `p50`, `p99.9`, `max` ...; `total` for counts.
    pub statistic: String,
    /// Values of the figure: one value for the whole run, or one value per second.
    pub values: Vec<f64>,
    /// The tool's figure as text, with its unit.
    pub text: String,
}
