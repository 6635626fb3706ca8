//! Lists the worst incidents with their causes for the terminal, Markdown and the HTML page.
//!
//! `tailbound-analysis` finds the causes; this module chooses which of them are listed.

use tailbound_document::number::time;
use tailbound_document::{ConditionReport, INCIDENTS_DESCRIBED, IncidentReport, RecordingReport, Report};

/// The condition with the largest excess in its incidents, if any condition has incidents.
pub(crate) fn worst_condition(report: &Report) -> Option<&ConditionReport> {
    let excess = |c: &&ConditionReport| c.incident_totals.map_or((0, 0), |t| (t.excess_ns, t.lost));
    report.conditions.iter().filter(|c| !c.incidents.is_empty()).max_by_key(excess)
}

/// The incidents of a condition that are described one by one, the worst first.
pub(crate) fn described(condition: &ConditionReport) -> &[IncidentReport] {
    &condition.incidents[..condition.incidents.len().min(INCIDENTS_DESCRIBED)]
}

/// One description for each of the worst incidents of the condition with the largest excess, the worst first.
pub(crate) fn sentences(report: &Report) -> impl Iterator<Item = &str> {
    worst_condition(report).into_iter().flat_map(described).map(|i| i.text.as_str())
}

/// One sentence for each way in which the events behind these incidents were recorded, with its cost.
pub(crate) fn recordings(condition: &ConditionReport) -> impl Iterator<Item = String> {
    condition.recordings.iter().map(recording)
}

fn recording(recording: &RecordingReport) -> String {
    let ends = recording.ends.join(" and ");
    let events = match recording.level.as_str() {
        "machine" => "context switches, wake-ups and interrupts",
        _ => "context switches, but no interrupts",
    };
    let by = if recording.by == "bpf" { "BPF" } else { "perf events" };
    let mut text = format!("Recorded at the {ends} end: {events}, by {by}");
    if let (Some(cost), Some(unwatched)) = (recording.per_message_ns, recording.unwatched_ns) {
        let (cost, unwatched) = (time(cost.max(0) as f64), time(unwatched as f64));
        text.push_str(&format!(", which added {cost} to a round trip of {unwatched} between two threads of the agent"));
    }
    if let Some(instead) = &recording.instead {
        text.push_str(&format!(" ({instead})"));
    }
    text.push('.');
    text
}
