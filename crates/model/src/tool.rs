//! What another measuring program printed: figures with the definition that they were printed by.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Figures of one run of a tool. Nothing here was measured by Tailbound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolSummary {
    /// Name of the tool.
    pub tool: String,
    /// What it says of its version; `None` = not known.
    pub version: Option<String>,
    /// The command of each end, as it was run; empty = not known.
    pub commands: BTreeMap<String, Vec<String>>,
    /// The variables that were set for each end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, BTreeMap<String, String>>,
    /// The process of each end, where Tailbound ran it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<String, ToolProcess>,
    /// What the study asks for and this program has in its own way, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What its figures mean.
    pub definition: ToolDefinition,
    /// The figures, in the order of the tool's file.
    pub figures: Vec<ToolFigure>,
}

/// A program in the place of an end, as it ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolProcess {
    /// Policy of its first thread as the kernel had it.
    pub policy: String,
    /// CPUs of its first thread as the kernel had them.
    pub cpus: String,
    /// When it began, monotonic ns.
    pub began_ns: i64,
    /// When it ended.
    pub ended_ns: i64,
    /// CPU time of it and of the children it waited for, ns.
    pub cpu_ns: u64,
    /// How it ended.
    pub ended: String,
}

/// What a tool's figures mean: without it they compare with nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The driver whose messages are like its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// What a latency of it is, as it prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<PrintedLatency>,
    /// What one of its figures is about.
    pub window: ToolWindow,
    /// What its figures leave out or bend, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves_out: Vec<String>,
}

/// What a tool calls latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrintedLatency {
    /// To the other end and back.
    RoundTrip,
    /// Half of that.
    HalfRoundTrip,
    /// From one end to the other, by one clock.
    OneWay,
    /// From the time that a thread was to run to the time that it ran.
    WakeUp,
}

impl fmt::Display for PrintedLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PrintedLatency::RoundTrip => "a round trip",
            PrintedLatency::HalfRoundTrip => "half a round trip",
            PrintedLatency::OneWay => "one way",
            PrintedLatency::WakeUp => "a wake-up",
        })
    }
}

/// What one figure of a tool is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolWindow {
    /// The whole run.
    #[default]
    WholeRun,
    /// One second (or whatever the tool's interval is): there is no figure of the whole run.
    EachSecond,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFigure {
    /// What it is a figure of.
    pub what: ToolMetric,
    /// `mean`, `p50`, `p99.9`, `max` ...; `total` of counts.
    pub statistic: String,
    /// In the unit of `what`; one per window.
    pub values: Vec<f64>,
}

/// What a tool measures, in the unit that its figures are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolMetric {
    /// There and back, ns; half round trips are doubled.
    RoundTripNs,
    /// One way, ns.
    OneWayNs,
    /// A thread's lateness, ns.
    WakeUpNs,
    /// What changes between neighbours of a stream, ns.
    JitterNs,
    /// Samples, messages or datagrams received in a second.
    SamplesPerS,
    /// Those sent in a second, whatever arrives of them.
    SentPerS,
    /// Of payload received, Mbit/s.
    PayloadMbitPerS,
    /// Samples that a figure is made of.
    Samples,
    /// Sent and not received.
    Lost,
    /// Received more than once.
    Duplicates,
    /// Received after a later one.
    OutOfOrder,
}

impl ToolMetric {
    /// Figures in nanoseconds.
    pub fn is_time(self) -> bool {
        use ToolMetric::*;
        matches!(self, RoundTripNs | OneWayNs | WakeUpNs | JitterNs)
    }

    /// As a table's head calls it.
    pub fn words(self) -> &'static str {
        match self {
            ToolMetric::RoundTripNs => "round trip",
            ToolMetric::OneWayNs => "one way",
            ToolMetric::WakeUpNs => "wake-up",
            ToolMetric::JitterNs => "jitter",
            ToolMetric::SamplesPerS => "samples/s",
            ToolMetric::SentPerS => "sent/s",
            ToolMetric::PayloadMbitPerS => "payload Mbit/s",
            ToolMetric::Samples => "samples",
            ToolMetric::Lost => "lost",
            ToolMetric::Duplicates => "duplicates",
            ToolMetric::OutOfOrder => "out of order",
        }
    }
}

/// An output file of a tool that was taken over: all that is known of how it came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// Its name.
    pub file: String,
    /// Hash of its text, hex.
    pub sha256: String,
    /// What whoever imported it says of it, e.g. `payload` -> `64 B`.
    pub known: BTreeMap<String, String>,
    /// What cannot be known of it.
    pub unknown: Vec<String>,
    /// What it holds.
    pub summary: ToolSummary,
}
