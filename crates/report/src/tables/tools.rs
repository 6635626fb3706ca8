//! Formats the figures that other benchmark programs printed, with their definitions.

use tailbound_document::ToolReport;
use tailbound_model::ToolMetric;

/// Figures of a program as text, one text for each kind of figure, for example `round trip: p50 11.4 us, p99 81.5 us`.
pub(crate) fn lines(tool: &ToolReport) -> Vec<String> {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for figure in &tool.figures {
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

/// Text about the meaning of the figures that a program prints, and about what is not known of them.
pub(crate) fn notes(tool: &ToolReport) -> String {
    let mut notes = [tool.definition.as_slice(), tool.remarks.as_slice()].concat();
    if !tool.unknown.is_empty() {
        notes.push(format!("Not known: {}.", tool.unknown.join(", ")));
    }
    notes.join(" ")
}

/// Text about what is known of a run of a benchmark program.
pub(crate) fn origin(tool: &ToolReport) -> String {
    let version = tool.version.as_ref().map_or(String::new(), |v| format!(" {v}"));
    let known: Vec<String> = tool.known.iter().map(|(k, v)| format!("{k} {v}")).collect();
    let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
    let how = if tool.imported { ", imported" } else { "" };
    format!("{}: {}{version}{how}{known}", tool.name, tool.tool)
}
