//! What other programs printed, with the definitions that they printed it by.

use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use crate::number::{count, three_digits, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{PrintedLatency, ToolFigure, ToolMetric, ToolProcess, ToolSummary, ToolWindow};
use tailbound_record::Manifest;

/// The output of one run of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReport {
    /// Name of the tool.
    pub tool: String,
    /// Condition and trial in whose place it ran; absent where its output was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<usize>,
    /// What it is called: that of its condition, or of the file.
    pub name: String,
    /// The output was made elsewhere and taken over.
    pub imported: bool,
    /// What whoever imported it says of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<String, String>,
    /// What cannot be known of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// What it says of its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The command of each end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, String>,
    /// How the process of each end ran, where Tailbound ran it: policy, CPUs, time, CPU time, end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<String, String>,
    /// What the study asks for and the program has in its own way, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What its figures mean, a sentence each.
    pub definition: Vec<String>,
    /// Its figures.
    pub figures: Vec<ToolFigureReport>,
}

/// One figure of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFigureReport {
    /// What it is a figure of, with its unit: `round_trip_ns`, `samples_per_s`, `payload_mbit_per_s`, `lost` ...
    pub what: String,
    /// `mean`, `p50`, `p99.9`, `max` ...; `total` of counts.
    pub statistic: String,
    /// One, or one per second.
    pub values: Vec<f64>,
    /// In words, with its unit.
    pub text: String,
}

/// All of a record.
pub(crate) fn of(manifest: &Manifest, names: &[String]) -> Vec<ToolReport> {
    let ran = manifest.trials.iter().filter_map(|trial| {
        let condition = manifest.plan.trials.iter().find(|t| t.id == trial.id)?.condition;
        let name = names.get(condition).cloned().unwrap_or_default();
        Some(ToolReport { trial: Some(trial.id), ..report(trial.summary.as_ref()?, name) })
    });
    let imported = manifest.imported.iter().map(|i| ToolReport {
        imported: true,
        known: i.known.clone(),
        unknown: i.unknown.clone(),
        ..report(&i.summary, i.file.clone())
    });
    ran.chain(imported).collect()
}

fn report(summary: &ToolSummary, name: String) -> ToolReport {
    let mut definition = Vec::new();
    match summary.definition.latency {
        Some(PrintedLatency::HalfRoundTrip) => {
            definition.push("It prints half a round trip, which is doubled here.".into());
        }
        Some(latency) => definition.push(format!("Its latency is {latency}.")),
        None => {}
    }
    if summary.definition.window == ToolWindow::EachSecond {
        definition.push("Its figures are of a second each; it has none of the whole run.".into());
    }
    definition.extend(summary.definition.leaves_out.iter().cloned());
    ToolReport {
        tool: summary.tool.clone(),
        trial: None,
        name,
        imported: false,
        known: BTreeMap::new(),
        unknown: Vec::new(),
        version: summary.version.clone(),
        commands: summary.commands.keys().map(|end| (end.clone(), command(summary, end))).collect(),
        processes: summary.processes.iter().map(|(end, process)| (end.clone(), ran(process))).collect(),
        remarks: summary.remarks.clone(),
        definition,
        figures: summary.figures.iter().map(figure).collect(),
    }
}

/// `NAME=value program arguments`, quoted as a shell takes it.
fn command(summary: &ToolSummary, end: &str) -> String {
    let quoted = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
        match !word.is_empty() && word.chars().all(plain) {
            true => word.to_owned(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    };
    let variables = summary.environment.get(end).into_iter().flatten();
    let variables = variables.map(|(name, value)| format!("{name}={}", quoted(value)));
    let words = summary.commands.get(end).into_iter().flatten().map(|word| quoted(word));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn ran(process: &ToolProcess) -> String {
    let (ran, cpu) = (time((process.ended_ns - process.began_ns) as f64), time(process.cpu_ns as f64));
    let how = format!("{}, CPU {}", process.policy, process.cpus);
    format!("{how}, {ran}, of it {cpu} of CPU time ({})", process.ended)
}

/// As JSON has it.
pub(crate) fn key(metric: ToolMetric) -> String {
    serde_json::to_value(metric).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn figure(figure: &ToolFigure) -> ToolFigureReport {
    let set = |value: f64| match figure.what {
        metric if metric.is_time() => time(value),
        ToolMetric::PayloadMbitPerS => format!("{} Mbit/s", three_digits(value)),
        _ => count(value.round().max(0.0) as u64),
    };
    let all = || figure.values.iter().copied();
    let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
    let text = match figure.statistic.as_str() {
        _ if figure.values.is_empty() => String::new(),
        // Of these, that of the whole follows from those of its parts.
        "total" => set(all().sum()),
        "max" => set(most),
        "min" => set(least),
        _ if set(least) == set(most) => set(most),
        _ => format!("{} to {}", set(least), set(most)),
    };
    let what = key(figure.what);
    ToolFigureReport { what, statistic: figure.statistic.clone(), values: figure.values.clone(), text }
}

/// Its first kind of figures, in a line; `None` without any.
pub(crate) fn glance(summary: &ToolSummary) -> Option<String> {
    let first = report(summary, String::new()).lines().into_iter().next()?;
    Some(format!("{} says {first}", summary.tool))
}

impl ToolReport {
    /// `round trip: p50 11.4 us, p99 81.5 us`, one for each thing that it has figures of.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<(String, Vec<String>)> = Vec::new();
        for figure in &self.figures {
            let metric = serde_json::from_value::<ToolMetric>(figure.what.clone().into());
            let what = metric.map_or_else(|_| figure.what.clone(), |m| m.words().to_owned());
            let text = if figure.statistic == "total" {
                figure.text.clone()
            } else {
                format!("{} {}", figure.statistic, figure.text)
            };
            match lines.iter_mut().find(|(w, _)| *w == what) {
                Some((_, texts)) => texts.push(text),
                None => lines.push((what, vec![text])),
            }
        }
        lines.into_iter().map(|(what, texts)| format!("{what}: {}", texts.join(", "))).collect()
    }

    /// What the figures mean, and what is not known of them.
    pub(crate) fn notes(&self) -> String {
        let mut notes = [self.definition.as_slice(), self.remarks.as_slice()].concat();
        if !self.unknown.is_empty() {
            notes.push(format!("Not known: {}.", self.unknown.join(", ")));
        }
        notes.join(" ")
    }

    /// What is known of how it came about.
    pub(crate) fn origin(&self) -> String {
        let version = self.version.as_ref().map_or(String::new(), |v| format!(" {v}"));
        let known: Vec<String> = self.known.iter().map(|(k, v)| format!("{k} {v}")).collect();
        let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
        let how = if self.imported { ", imported" } else { "" };
        format!("{}: {}{version}{how}{known}", self.name, self.tool)
    }
}

/// A sentence for each tool, in the order of the record.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    // One without figures is told by what went wrong with it.
    let told = |tool: &&ToolReport| !tool.figures.is_empty();
    let of = |tool: &ToolReport| {
        let text =
            format!("{}, not measured by Tailbound: {}. {}", tool.origin(), tool.lines().join("; "), tool.notes());
        let of_trial = tool.trial.and_then(|t| report.trial(t)).map(|t| t.condition);
        let conditions: Vec<usize> = of_trial.into_iter().collect();
        Finding { evidence: "tools".into(), ..finding(FindingLevel::Result, "tool", text, &conditions) }
    };
    report.tools.iter().filter(told).map(of).collect()
}
