//! Results of other benchmark programs: figures, together with the definition by which the program computes them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Figures from one run of a tool (another benchmark program). Tailbound measured none of these figures itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolSummary {
    /// Name of the tool (another benchmark program).
    pub tool: String,
    /// Version of the tool, as the tool reports it; `None` if the version is not known.
    pub version: Option<String>,
    /// Command line of the tool at each end; empty if the command lines are not known.
    pub commands: BTreeMap<String, Vec<String>>,
    /// Environment variables that were set for the tool at each end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, BTreeMap<String, String>>,
    /// The tool's process at each end, if Tailbound started the process.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<String, ToolProcess>,
    /// One sentence for each setting of the study that the tool handles differently from a driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Definition of the tool's figures: what the figures measure.
    pub definition: ToolDefinition,
    /// Figures of the tool, in the order of the tool file.
    pub figures: Vec<ToolFigure>,
}

/// The process of a tool that ran in place of an end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolProcess {
    /// Scheduling policy of the process's first thread, as the kernel reported it.
    pub policy: String,
    /// CPUs of the process's first thread, as the kernel reported them.
    pub cpus: String,
    /// Monotonic time at which the tool's process started, ns.
    pub began_ns: i64,
    /// Monotonic time at which the tool's process ended, ns.
    pub ended_ns: i64,
    /// CPU time of the process and of the child processes that it waited for, ns.
    pub cpu_ns: u64,
    /// How the tool's process ended, in words.
    pub ended: String,
}

/// Definition of a tool's figures: what they measure. Figures can be compared only if they have the same definition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Name of the driver that sends the same messages as the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// Kind of time that the tool means by latency, e.g. a round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<PrintedLatency>,
    /// Time span that one value of a tool's figure covers.
    pub window: ToolWindow,
    /// One sentence for each thing that the tool's figures leave out or distort.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves_out: Vec<String>,
}

/// Kind of time that a tool means by latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrintedLatency {
    /// Latency of the tool: time to the other end and back.
    RoundTrip,
    /// Latency of the tool: half of the time to the other end and back.
    HalfRoundTrip,
    /// Latency of the tool: time from one end to the other, measured with one clock.
    OneWay,
    /// Latency of the tool: time from the moment at which a message was due until the other end had it, measured with one clock.
    OneWayFromDue,
    /// Latency of the tool: time from the intended wake-up of a thread to its actual wake-up.
    WakeUp,
}

impl fmt::Display for PrintedLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PrintedLatency::RoundTrip => "a round trip",
            PrintedLatency::HalfRoundTrip => "half a round trip",
            PrintedLatency::OneWay => "one way",
            PrintedLatency::OneWayFromDue => "one way, from the time at which a message was due",
            PrintedLatency::WakeUp => "a wake-up",
        })
    }
}

/// Time span that one value of a tool's figure covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolWindow {
    /// One value of the tool's figure covers the whole run.
    #[default]
    WholeRun,
    /// One value of the tool's figure covers one second or another interval of the tool; there is no value for the
    /// whole run.
    EachSecond,
}

/// One figure that a tool reports, with its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFigure {
    /// Quantity that the tool's figure measures.
    pub what: ToolMetric,
    /// Statistic of the figure: `mean`, `p50`, `p99.9`, `max` ...; `total` for counts.
    pub statistic: String,
    /// Values of the figure in the unit of its quantity (`what`), one value for each time span.
    pub values: Vec<f64>,
}

/// Quantity that a tool measures, with the unit in which a record keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolMetric {
    /// Quantity: round trip, ns; half round trips of a tool are doubled.
    RoundTripNs,
    /// Quantity: latency of messages in one direction, ns.
    OneWayNs,
    /// Quantity: latency of messages in one direction, from the time at which they were due, ns.
    OneWayFromDueNs,
    /// Quantity: time from the transmit stamp of the sender's network card to the receive stamp of the receiver's network card, ns.
    PathDelayNs,
    /// Quantity: lateness of a thread's wake-up, ns.
    WakeUpNs,
    /// Quantity: difference between the latencies of consecutive messages, ns.
    JitterNs,
    /// Quantity: samples, messages or datagrams received per second.
    SamplesPerS,
    /// Samples, messages or datagrams sent per second, whether they were received or not.
    SentPerS,
    /// Quantity: rate of received payload, Mbit/s.
    PayloadMbitPerS,
    /// Quantity: number of samples from which a figure of the tool is computed.
    Samples,
    /// Quantity: number of samples that were sent and not received.
    Lost,
    /// Quantity: number of samples that were received more than once.
    Duplicates,
    /// Number of samples that were received after a later sample.
    OutOfOrder,
}

impl ToolMetric {
    /// True if the quantity is a time in nanoseconds.
    pub fn is_time(self) -> bool {
        use ToolMetric::*;
        matches!(self, RoundTripNs | OneWayNs | OneWayFromDueNs | PathDelayNs | WakeUpNs | JitterNs)
    }

    /// Name of the quantity for the header of a table in a report.
    pub fn words(self) -> &'static str {
        match self {
            ToolMetric::RoundTripNs => "round trip",
            ToolMetric::OneWayNs => "one way",
            ToolMetric::OneWayFromDueNs => "one way from the due time",
            ToolMetric::PathDelayNs => "path delay",
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

/// An imported output file of a tool, with everything that is known about its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// Name of the imported output file of a tool.
    pub file: String,
    /// SHA-256 hash of the text of the imported file, in hexadecimal digits.
    pub sha256: String,
    /// Circumstances of the measurement that the user named at the import, e.g. `payload` -> `64 B`.
    pub known: BTreeMap<String, String>,
    /// Circumstances of the tool's measurement that are not known.
    pub unknown: Vec<String>,
    /// Figures that were read from the imported output file.
    pub summary: ToolSummary,
}
