//! The format of a tool file, which describes a benchmark program.

use crate::command::{Values, WhatIsMissing};
use crate::error::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{PrintedLatency, Problem, ToolDefinition, ToolMetric, ToolWindow};

/// A benchmark program that runs in place of a driver, as its tool file describes it.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Name of the tool: a study writes this name under `driver`.
    pub tool: String,
    /// Description of the benchmark program in one line.
    pub about: String,
    /// Package of a Linux distribution that contains the benchmark program, if there is such a package.
    #[serde(default)]
    pub package: Option<String>,
    /// Whether somebody has tried this tool file with the program.
    pub evidence: Evidence,
    /// Kinds of measurement that the benchmark program can do.
    pub measures: Measures,
    /// Driver whose messages are equal to the tool's messages, for example `udp`. A report compares the tool with this
    /// driver only.
    #[serde(default)]
    pub like: Option<String>,
    /// How the program receives messages: `listener`, `block` or `spin`. A study that requests another receive mode
    /// cannot use the tool.
    #[serde(default)]
    pub receive: Option<Receives>,
    /// Smallest and largest payload that the program accepts, in bytes.
    #[serde(default)]
    #[serde(rename = "payload_octets")]
    pub payload_bytes: Option<(u64, u64)>,
    /// Whether the program needs a rate: if true, `rate: max` is refused.
    #[serde(default)]
    pub needs_rate: bool,
    /// The command that prints the program's version, and a pattern whose first group is the version.
    #[serde(default)]
    pub version: Option<Version>,
    /// How to run the end that answers or receives. If absent, the program measures alone.
    #[serde(default)]
    pub pong: Option<ToolEnd>,
    /// How to run the end that sends, or that measures alone.
    pub ping: ToolEnd,
    /// The end whose output contains the figures of the benchmark program.
    #[serde(default)]
    pub output: OutputOf,
    /// Meaning of the figures that the benchmark program prints.
    pub definition: Definition,
    /// Positions of the figures in the program's output.
    pub figures: Vec<Figure>,
}

/// Whether somebody has tried a tool file with its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Somebody has tried the tool file with its program.
    Tried,
    /// The tool file was tried only with output that was written by hand from the program's documentation.
    NeverRun,
}

/// Kinds of measurement that a benchmark program can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measures {
    /// The tool measures the latency of messages and their answers.
    PingPong,
    /// The benchmark program measures the number of samples per second.
    Throughput,
}

/// How a benchmark program receives messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Receives {
    /// The benchmark program receives messages in a callback.
    Listener,
    /// A thread of the program blocks until a message arrives.
    Block,
    /// A thread of the program polls for messages without pause.
    Spin,
}

/// How to get the version of a benchmark program: its command and a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Program and arguments of the command that prints the version of the benchmark program.
    pub command: Vec<String>,
    /// Pattern whose first group is the version in the command's output.
    #[serde(rename = "match")]
    pub pattern: String,
}

/// How one end of a benchmark program is run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolEnd {
    /// Program and arguments of this end. `{payload}`, `{payload+N}` (payload plus N bytes), `{seconds}`, `{messages}` (number of
    /// messages at the rate), `{rate_hz}`, `{period_us}`, `{period_s}` (with nine digits behind the point), `{bit_rate}` (0 means as
    /// fast as possible), `{address}` and `{interface}` of this end, `{peer}` (address of the other end), `{port}`, `{domain}`,
    /// `{priority}` (option `priority` of the driver in the study, or 0), and `{base_s}` and `{offset_s}` (begin on CLOCK_TAI and offset
    /// of the `stream` of the study, or 0, with nine digits behind the point) are replaced by values. If the rate is `max`, an argument
    /// with `{messages}`, `{rate_hz}`, `{period_us}` or `{period_s}` is left out. A tool without `{offset_s}` takes no `stream`.
    pub command: Vec<String>,
    /// Environment variables of this end's program. Names in braces are replaced as in `command`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Line that this end's program prints when the other end may start. If absent, the other end starts after 300 ms.
    #[serde(default)]
    pub ready: Option<String>,
    /// Whether the other end may start when this end's program listens at the TCP port `{port}`. For programs that print no line, or
    /// print one before they listen; not together with `ready`.
    #[serde(default)]
    pub ready_when_listening: bool,
    /// How this end's program is ended when the other end's program has finished. The program of the end that measures
    /// ends by itself.
    #[serde(default)]
    pub stop: StopBy,
}

/// How Tailbound ends a benchmark program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopBy {
    /// Tailbound ends the program with SIGTERM.
    #[default]
    Terminate,
    /// The program gets SIGINT, which Ctrl-C sends: many programs then print their summary.
    Interrupt,
    /// The program ends by itself. If the program still runs 5 s after the other end's program has finished, it gets
    /// SIGTERM.
    Itself,
}

/// The end of a benchmark program whose output contains the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputOf {
    /// The figures are in the output of the end that sends.
    #[default]
    Ping,
    /// The figures are in the output of the end that receives.
    Pong,
}

/// Meaning of the figures of a benchmark program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Quantity that the program calls latency: `round-trip`, `half-round-trip` (Tailbound doubles the value),
    /// `one-way`, `one-way-from-due` (from the time at which a message was due), `wake-up`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub latency: Option<PrintedLatency>,
    /// Period of one figure: `whole-run`, or `each-second` if the program prints no figure for the whole run.
    #[schemars(with = "String")]
    pub window: ToolWindow,
    /// What the program's figures leave out or distort, one sentence for each point.
    #[serde(default)]
    pub leaves_out: Vec<String>,
}

/// One figure that a benchmark program prints, and the position of the figure in the program's output.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Quantity of the figure: `latency`, `path-delay`, `jitter`, `samples-per-s`, `sent-per-s`, `payload-rate`, `samples`, `lost`,
    /// `duplicates`, `out-of-order`.
    pub is: FigureKind,
    /// Statistic of the figure: `mean`, `min`, `max`, `p50`, `p99.9` ...; for counts, `total`.
    #[serde(default = "total")]
    pub statistic: String,
    /// Unit of the figure: `ns`, `us`, `ms`, `s`; `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`; empty for counts.
    #[serde(default)]
    pub unit: String,
    /// Position at which the benchmark program's output contains the figure.
    pub at: FigureSource,
    /// Whether the figure may be absent from the benchmark program's output.
    #[serde(default)]
    pub optional: bool,
}

fn total() -> String {
    "total".into()
}

/// Quantity that a figure measures, as a tool file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Latency of the kind that `definition.latency` of the tool file names.
    Latency,
    /// Figure of a benchmark program: time of messages between the network cards of both ends, by the stamps of the cards.
    PathDelay,
    /// Figure of a benchmark program: difference between the latencies of consecutive messages.
    Jitter,
    /// Figure of a benchmark program: number of samples received per second.
    SamplesPerS,
    /// Figure of a benchmark program: number of samples sent per second, received or not.
    SentPerS,
    /// Figure of a benchmark program: amount of payload received per second.
    PayloadRate,
    /// Figure of a benchmark program: number of samples from which its other figures are computed.
    Samples,
    /// Figure of a benchmark program: number of samples that were sent and not received.
    Lost,
    /// Figure of a benchmark program: number of samples that were received more than once.
    Duplicates,
    /// Number of samples that were received after a sample with a higher sequence number.
    OutOfOrder,
}

impl FigureKind {
    /// Name of the quantity as a tool file writes it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            FigureKind::Latency => "latency",
            FigureKind::PathDelay => "path-delay",
            FigureKind::Jitter => "jitter",
            FigureKind::SamplesPerS => "samples-per-s",
            FigureKind::SentPerS => "sent-per-s",
            FigureKind::PayloadRate => "payload-rate",
            FigureKind::Samples => "samples",
            FigureKind::Lost => "lost",
            FigureKind::Duplicates => "duplicates",
            FigureKind::OutOfOrder => "out-of-order",
        }
    }
}

/// Position of a figure in the output of a benchmark program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureSource {
    /// The figure is the first group of a regular expression, which is tried on every line.
    Line(String),
    /// The figure is at a JSON Pointer (RFC 6901) in the JSON document that the output contains.
    Json(String),
    /// The figure is in a column of the CSV table in the output; the column is named by its header.
    Column(String),
    /// The program prints two times of each message: the figure is the statistic (`min`, `mean`, `max`, `p99` ...) of the differences
    /// between the second and the first group of a regular expression, over all lines that match. The times have at most nine digits
    /// behind the point.
    Difference(String),
    /// The figure is the number of lines that match a regular expression.
    Count(String),
}

fn wrong(what: impl Into<String>) -> Problem {
    Problem::new("tool_file", what, "")
}

impl Tool {
    /// Reads and checks a tool file; error messages use `name` as the name of the file.
    ///
    /// # Errors
    /// The text is not YAML, does not have the format of a tool file, or contains an invalid pattern; the error
    /// contains the place and the reason.
    pub fn read(name: &str, text: &str) -> Result<Tool, ToolError> {
        let bad = |reason: String| ToolError::File { file: name.into(), reason };
        let tool: Tool = serde_saphyr::from_str(text).map_err(|e| bad(e.to_string()))?;
        tool.check().map_err(|problem| bad(problem.what))?;
        Ok(tool)
    }

    fn check(&self) -> Result<(), Problem> {
        let of_lines = self.figures.iter().filter_map(|f| match &f.at {
            FigureSource::Line(pattern) => Some((pattern, 2)),
            FigureSource::Difference(pattern) => Some((pattern, 3)),
            FigureSource::Count(pattern) => Some((pattern, 1)),
            FigureSource::Json(_) | FigureSource::Column(_) => None,
        });
        let ready = [&self.ping, self.pong.as_ref().unwrap_or(&self.ping)].map(|e| e.ready.as_ref());
        let with_group = of_lines.chain(self.version.iter().map(|v| (&v.pattern, 2)));
        for (pattern, groups) in with_group.chain(ready.into_iter().flatten().map(|p| (p, 1))) {
            let found = regex::Regex::new(pattern).map_err(|e| wrong(format!("the pattern `{pattern}`: {e}")))?;
            if found.captures_len() < groups && groups == 3 {
                return Err(wrong(format!(
                    "the pattern `{pattern}` needs two groups: put parentheses around both times"
                )));
            }
            if found.captures_len() < groups {
                let text = format!("the pattern `{pattern}` has no group: put parentheses around the value to read");
                return Err(wrong(text));
            }
        }
        for end in [Some(&self.ping), self.pong.as_ref()].into_iter().flatten() {
            if end.command.is_empty() {
                return Err(wrong("a command is empty"));
            }
            if end.ready.is_some() && end.ready_when_listening {
                return Err(wrong("an end has `ready` and `ready_when_listening`: remove one of them"));
            }
            Tool::command(end, &Values::default()).map_err(|e| wrong(e.to_string()))?;
        }
        if self.figures.is_empty() {
            return Err(wrong("the tool file has no figures"));
        }
        if self.output == OutputOf::Pong && self.pong.is_none() {
            return Err(wrong("the tool file has `output: pong`, but no key `pong`"));
        }
        self.figures.iter().try_for_each(|f| self.scale(f).map(|_| ()))
    }

    /// True if one of the tool's commands contains the placeholder `{name}` or `{name+N}`.
    pub fn takes(&self, name: &str) -> bool {
        let (alone, with_more) = (format!("{{{name}}}"), format!("{{{name}+"));
        let ends = [Some(&self.ping), self.pong.as_ref()].into_iter().flatten();
        let mut words = ends.flat_map(|e| e.command.iter().chain(e.environment.values()));
        words.any(|word| word.contains(&alone) || word.contains(&with_more))
    }

    /// Whether the tool runs as long as a study asks: it takes the time, or the number of messages.
    pub fn takes_time(&self) -> bool {
        self.takes("seconds") || self.takes("messages")
    }

    /// Program, arguments and environment of an end, with the values of the trial.
    ///
    /// # Errors
    /// The command of the tool contains an unknown name in braces.
    pub fn command(end: &ToolEnd, values: &Values) -> Result<(Vec<String>, BTreeMap<String, String>), WhatIsMissing> {
        let filled: Result<Vec<_>, _> = end.command.iter().map(|word| values.fill(word)).collect();
        let environment = end.environment.iter().map(|(k, v)| Ok((k.clone(), values.fill(v)?.unwrap_or_default())));
        Ok((filled?.into_iter().flatten().collect(), environment.collect::<Result<_, _>>()?))
    }

    /// The quantity under which a record keeps a figure of the tool, and the factor from the printed number to the unit
    /// of the record.
    pub(crate) fn scale(&self, figure: &Figure) -> Result<(ToolMetric, f64), Problem> {
        let time = || match figure.unit.as_str() {
            "ns" => Ok(1.0),
            "us" => Ok(1e3),
            "ms" => Ok(1e6),
            "s" => Ok(1e9),
            other => Err(wrong(format!("`{other}` is not a known unit of time; the units are ns, us, ms and s"))),
        };
        let count = |metric| match figure.unit.as_str() {
            "" => Ok((metric, 1.0)),
            other => Err(wrong(format!("`{}` is a count and has no unit such as `{other}`", figure.is.word()))),
        };
        match figure.is {
            FigureKind::Latency => match self.definition.latency {
                Some(PrintedLatency::RoundTrip) => Ok((ToolMetric::RoundTripNs, time()?)),
                Some(PrintedLatency::HalfRoundTrip) => Ok((ToolMetric::RoundTripNs, 2.0 * time()?)),
                Some(PrintedLatency::OneWay) => Ok((ToolMetric::OneWayNs, time()?)),
                Some(PrintedLatency::OneWayFromDue) => Ok((ToolMetric::OneWayFromDueNs, time()?)),
                Some(PrintedLatency::WakeUp) => Ok((ToolMetric::WakeUpNs, time()?)),
                None => Err(wrong("a figure of kind `latency` needs the key `definition.latency`, e.g. `round-trip`")),
            },
            FigureKind::PathDelay => Ok((ToolMetric::PathDelayNs, time()?)),
            FigureKind::Jitter => Ok((ToolMetric::JitterNs, time()?)),
            FigureKind::PayloadRate => {
                let scale = match figure.unit.as_str() {
                    "bit/s" => 1e-6,
                    "kbit/s" => 1e-3,
                    "Mbit/s" => 1.0,
                    "Gbit/s" => 1e3,
                    other => {
                        return Err(wrong(format!(
                            "`{other}` is not a known unit of a rate; the units are bit/s, kbit/s, Mbit/s and Gbit/s"
                        )));
                    }
                };
                Ok((ToolMetric::PayloadMbitPerS, scale))
            }
            FigureKind::SamplesPerS => count(ToolMetric::SamplesPerS),
            FigureKind::SentPerS => count(ToolMetric::SentPerS),
            FigureKind::Samples => count(ToolMetric::Samples),
            FigureKind::Lost => count(ToolMetric::Lost),
            FigureKind::Duplicates => count(ToolMetric::Duplicates),
            FigureKind::OutOfOrder => count(ToolMetric::OutOfOrder),
        }
    }

    /// Meaning of the tool's figures, in the form that a record keeps.
    pub fn definition(&self) -> ToolDefinition {
        let Definition { latency, window, leaves_out } = self.definition.clone();
        ToolDefinition { like: self.like.clone(), latency, window, leaves_out }
    }
}
