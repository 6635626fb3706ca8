//! Reports the figures that other benchmark programs (tools) printed, with their definitions.

use std::collections::BTreeMap;
use tailbound_document::number::{count, three_digits, time};
use tailbound_document::{ToolFigureReport, ToolReport};
use tailbound_model::{PrintedLatency, ToolFigure, ToolMetric, ToolProcess, ToolSummary, ToolWindow};
use tailbound_record::Manifest;

/// Reports the figures of all benchmark programs that ran in a record or whose output was imported into it.
pub(crate) fn of(manifest: &Manifest, names: &[String]) -> Vec<ToolReport> {
    let ran = manifest.trials.iter().filter_map(|trial| {
        let condition = manifest.plan.trials.iter().find(|t| t.id == trial.id)?.condition;
        let name = names.get(condition).cloned().unwrap_or_default();
        Some(ToolReport { trial: Some(trial.id), ..tool_report(trial.summary.as_ref()?, name) })
    });
    let imported = manifest.imported.iter().map(|i| ToolReport {
        imported: true,
        known: i.known.clone(),
        unknown: i.unknown.clone(),
        ..tool_report(&i.summary, i.file.clone())
    });
    ran.chain(imported).collect()
}

/// Makes the document with the figures that a benchmark program printed in one run; `name` is the name of the run.
pub fn tool_report(summary: &ToolSummary, name: String) -> ToolReport {
    let mut definition = Vec::new();
    match summary.definition.latency {
        Some(PrintedLatency::HalfRoundTrip) => {
            definition.push("The program prints half round trips; this report doubles them.".into());
        }
        Some(latency) => definition.push(format!("Its latency is {latency}.")),
        None => {}
    }
    if summary.definition.window == ToolWindow::EachSecond {
        definition.push("The program prints figures for each second, and no figures for the whole run.".into());
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

/// Formats a command as `NAME=value program arguments`, quoted for a shell.
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

/// Name of a metric of a tool, as it is spelled in JSON.
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
        // For these statistics, the value of the whole run follows from the values of its parts.
        "total" => set(all().sum()),
        "max" => set(most),
        "min" => set(least),
        _ if set(least) == set(most) => set(most),
        _ => format!("{} to {}", set(least), set(most)),
    };
    let what = key(figure.what);
    ToolFigureReport { what, statistic: figure.statistic.clone(), values: figure.values.clone(), text }
}
