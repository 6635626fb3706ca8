//! The tool file.

use crate::{ToolError, Values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{PrintedLatency, ToolDefinition, ToolMetric, ToolWindow};

/// A benchmark program that runs in place of a driver.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name: what a study writes under `driver`.
    pub tool: String,
    /// What it is, in a line.
    pub about: String,
    /// The package that brings it, where a distribution has one.
    #[serde(default)]
    pub package: Option<String>,
    /// Whether this file was ever tried with the program.
    pub evidence: Evidence,
    /// The measures that it can take the place of.
    pub measures: Measures,
    /// The driver whose messages are like its own, e.g. `udp`: only with that one a report compares it.
    #[serde(default)]
    pub like: Option<String>,
    /// How it receives: `listener`, `block` or `spin`. A study that asks for another way cannot have it.
    #[serde(default)]
    pub receive: Option<Receives>,
    /// Least and most octets of payload that it can be given.
    #[serde(default)]
    pub payload_octets: Option<(u64, u64)>,
    /// It cannot go without a rate: `rate: max` is refused.
    #[serde(default)]
    pub needs_rate: bool,
    /// The command that prints its version, and the pattern whose first group is the version.
    #[serde(default)]
    pub version: Option<Version>,
    /// The end that answers or receives; without it the program measures alone.
    #[serde(default)]
    pub pong: Option<ToolEnd>,
    /// The end that sends, or measures alone.
    pub ping: ToolEnd,
    /// The end whose output holds the figures.
    #[serde(default)]
    pub output: OutputOf,
    /// What its figures mean.
    pub definition: Definition,
    /// Where they are.
    pub figures: Vec<Figure>,
}

/// Whether a tool file was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// With the program itself.
    Tried,
    /// Only with output written by hand after the program's documentation.
    NeverRun,
}

/// What a tool can take the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measures {
    /// Latency of messages and answers.
    PingPong,
    /// Samples in a second.
    Throughput,
}

/// How a program receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Receives {
    /// In a callback.
    Listener,
    /// A thread blocks until something is there.
    Block,
    /// A thread asks without pause.
    Spin,
}

/// How a version is found out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its first group is the version.
    #[serde(rename = "match")]
    pub pattern: String,
}

/// How one end is run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolEnd {
    /// Program and arguments. `{payload}`, `{payload+N}` (N octets more), `{seconds}`, `{rate_hz}`, `{period_us}`, `{bit_rate}` (0 = as fast as it can),
    /// `{address}` and `{interface}` of this end, `{peer}` of the other, `{port}`, `{domain}` are filled in; an
    /// argument with `{rate_hz}` or `{period_us}` is left out where the rate is `max`.
    pub command: Vec<String>,
    /// Variables of its environment, filled in likewise.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// A line that it prints once the other end may be started; without it that is after 300 ms.
    #[serde(default)]
    pub ready: Option<String>,
    /// How it is ended once the other end is through. The end that measures ends by itself.
    #[serde(default)]
    pub stop: StopBy,
}

/// How a program is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopBy {
    /// SIGTERM.
    #[default]
    Terminate,
    /// SIGINT, as Ctrl-C sends it: many programs print their summary then.
    Interrupt,
    /// It ends by itself; SIGTERM after 5 s.
    Itself,
}

/// The end whose output holds the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputOf {
    /// The one that sends.
    #[default]
    Ping,
    /// The one that receives.
    Pong,
}

/// What the figures mean.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What it calls latency: `round-trip`, `half-round-trip` (doubled when it is taken over), `one-way`, `wake-up`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub latency: Option<PrintedLatency>,
    /// `whole-run`, or `each-second`: it has no figure of the whole run.
    #[schemars(with = "String")]
    pub window: ToolWindow,
    /// What its figures leave out or bend, a sentence each.
    #[serde(default)]
    pub leaves_out: Vec<String>,
}

/// One figure and where it is.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// `latency`, `jitter`, `samples-per-s`, `sent-per-s`, `payload-rate`, `samples`, `lost`, `duplicates`, `out-of-order`.
    pub is: FigureKind,
    /// `mean`, `min`, `max`, `p50`, `p99.9` ...; of counts `total`.
    #[serde(default = "total")]
    pub statistic: String,
    /// `ns`, `us`, `ms`, `s`; `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`; nothing for counts.
    #[serde(default)]
    pub unit: String,
    /// Where it is.
    pub at: FigureSource,
    /// An output without it is whole too.
    #[serde(default)]
    pub optional: bool,
}

fn total() -> String {
    "total".into()
}

/// What a figure is of, as a tool file writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Of the kind that `definition.latency` says.
    Latency,
    /// What changes between neighbours of a stream.
    Jitter,
    /// Received in a second.
    SamplesPerS,
    /// Sent in a second, whatever arrives of it.
    SentPerS,
    /// Payload received in a second.
    PayloadRate,
    /// How many the figures are made of.
    Samples,
    /// Sent and not received.
    Lost,
    /// Received more than once.
    Duplicates,
    /// Received after a later one.
    OutOfOrder,
}

impl FigureKind {
    /// As a tool file writes it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            FigureKind::Latency => "latency",
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

/// Where a figure is in the output.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureSource {
    /// First group of a regular expression, tried on every line.
    Line(String),
    /// JSON Pointer (RFC 6901) into the JSON document that the output holds.
    Json(String),
    /// Column of the CSV table that the output holds, by its head.
    Column(String),
}

impl Tool {
    /// Reads and checks a tool file; `name` is what errors call it.
    ///
    /// # Errors
    /// Not YAML, not of this form, or a pattern that is none: where and why.
    pub fn read(name: &str, text: &str) -> Result<Tool, ToolError> {
        let bad = |reason: String| ToolError::File { file: name.into(), reason };
        let tool: Tool = serde_saphyr::from_str(text).map_err(|e| bad(e.to_string()))?;
        tool.check().map_err(bad)?;
        Ok(tool)
    }

    fn check(&self) -> Result<(), String> {
        let of_lines = self.figures.iter().filter_map(|f| match &f.at {
            FigureSource::Line(pattern) => Some(pattern),
            _ => None,
        });
        let ready = [&self.ping, self.pong.as_ref().unwrap_or(&self.ping)].map(|e| e.ready.as_ref());
        let with_group = of_lines.chain(self.version.iter().map(|v| &v.pattern)).map(|p| (p, 2));
        for (pattern, groups) in with_group.chain(ready.into_iter().flatten().map(|p| (p, 1))) {
            let found = regex::Regex::new(pattern).map_err(|e| format!("the pattern `{pattern}`: {e}"))?;
            if found.captures_len() < groups {
                return Err(format!("the pattern `{pattern}` has no group: put brackets around the figure"));
            }
        }
        for end in [Some(&self.ping), self.pong.as_ref()].into_iter().flatten() {
            if end.command.is_empty() {
                return Err("a command is empty".into());
            }
            Tool::command(end, &Values::default()).map_err(|e| e.to_string())?;
        }
        if self.figures.is_empty() {
            return Err("it has no figures".into());
        }
        if self.output == OutputOf::Pong && self.pong.is_none() {
            return Err("`output: pong`, but there is no `pong`".into());
        }
        self.figures.iter().try_for_each(|f| self.scale(f).map(|_| ()))
    }

    /// What a figure is kept as, and what its number is multiplied by.
    pub(crate) fn scale(&self, figure: &Figure) -> Result<(ToolMetric, f64), String> {
        let time = || match figure.unit.as_str() {
            "ns" => Ok(1.0),
            "us" => Ok(1e3),
            "ms" => Ok(1e6),
            "s" => Ok(1e9),
            other => Err(format!("`{other}` is no unit of time: ns, us, ms or s")),
        };
        let count = |metric| match figure.unit.as_str() {
            "" => Ok((metric, 1.0)),
            other => Err(format!("`{}` is a count and has no unit such as `{other}`", figure.is.word())),
        };
        match figure.is {
            FigureKind::Latency => match self.definition.latency {
                Some(PrintedLatency::RoundTrip) => Ok((ToolMetric::RoundTripNs, time()?)),
                Some(PrintedLatency::HalfRoundTrip) => Ok((ToolMetric::RoundTripNs, 2.0 * time()?)),
                Some(PrintedLatency::OneWay) => Ok((ToolMetric::OneWayNs, time()?)),
                Some(PrintedLatency::WakeUp) => Ok((ToolMetric::WakeUpNs, time()?)),
                None => Err("it has a latency, and `definition.latency` does not say what that is".into()),
            },
            FigureKind::Jitter => Ok((ToolMetric::JitterNs, time()?)),
            FigureKind::PayloadRate => {
                let scale = match figure.unit.as_str() {
                    "bit/s" => 1e-6,
                    "kbit/s" => 1e-3,
                    "Mbit/s" => 1.0,
                    "Gbit/s" => 1e3,
                    other => return Err(format!("`{other}` is no unit of a rate: bit/s, kbit/s, Mbit/s or Gbit/s")),
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

    /// The definition as a record keeps it.
    pub fn definition(&self) -> ToolDefinition {
        let Definition { latency, window, leaves_out } = self.definition.clone();
        ToolDefinition { like: self.like.clone(), latency, window, leaves_out }
    }
}
