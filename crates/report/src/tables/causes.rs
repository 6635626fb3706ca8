//! Lists the worst incidents with their causes for the terminal, Markdown and the HTML page.
//!
//! `tailbound-analysis` finds the causes; this module chooses which of them are listed.

use tailbound_document::number::{count, three_digits, time};
use tailbound_document::{
    ConditionReport, INCIDENTS_DESCRIBED, IncidentReport, LevelCost, Overhead, RecordingReport, Report,
};

/// The factor of a study that checks the cost of the recording.
const ATTRIBUTION: &str = "attribution";

/// The condition with the largest excess in its incidents, if any condition has incidents. A condition that the study
/// repeats without the recording of events has no causes, so that it comes last.
pub(crate) fn worst_condition(report: &Report) -> Option<&ConditionReport> {
    let checks = report.against.as_ref().filter(|against| against.factor == ATTRIBUTION);
    let watched = |c: &ConditionReport| checks.is_none_or(|off| c.levels.get(ATTRIBUTION) != Some(&off.level));
    let excess = |c: &&ConditionReport| (watched(c), c.incident_totals.map_or((0, 0), |t| (t.excess_ns, t.lost)));
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

/// One sentence for each way in which the events behind these incidents were recorded, with its cost, and one about the
/// trials without the recording, if the study has such trials.
pub(crate) fn recordings(report: &Report, condition: &ConditionReport) -> impl Iterator<Item = String> {
    condition.recordings.iter().map(recording).chain(checked(report, condition))
}

/// One sentence for each way in which events were recorded while flows ran, whose messages have no incidents.
pub(crate) fn recordings_of_flows(report: &Report) -> impl Iterator<Item = String> {
    let flows = report.conditions.iter().filter(|condition| condition.flow.is_some());
    let of = |c: &ConditionReport, r: &RecordingReport| format!("{}: {}", c.name, recording(r).replacen('R', "r", 1));
    flows.flat_map(move |condition| condition.recordings.iter().map(move |one| of(condition, one)))
}

/// Sentence about the round trips of the condition beside those of its trials without the recording.
fn checked(report: &Report, condition: &ConditionReport) -> Option<String> {
    let against = report.against.as_ref().filter(|against| against.factor == ATTRIBUTION)?;
    let row = against.rows.iter().find(|row| row.condition == condition.id)?;
    let round_trips = row.overheads.iter().filter(|o| o.metric == "round_trip");
    let figures: Vec<String> = round_trips.filter_map(ratio).collect();
    match (figures.is_empty(), &row.why) {
        (false, _) => Some(format!("Compared with trials without the recording: {}.", figures.join("; "))),
        (true, Some(why)) => Some(format!("The cost of the recording could not be checked: {why}.")),
        (true, None) => None,
    }
}

/// A ratio in words, e.g. `the p50 of the round trip is 1.03 times as long (95 %: 1.01 to 1.05)`.
fn ratio(overhead: &Overhead) -> Option<String> {
    let of = |per_cent: f64| three_digits(1.0 + per_cent / 100.0);
    let mut text = format!("the {} of the round trip is {} times as long", overhead.statistic, of(overhead.per_cent?));
    let within = if overhead.within_runs { ", within these runs only" } else { "" };
    if let Some([low, high]) = overhead.interval {
        text.push_str(&format!(" (95 %: {} to {}{within})", of(low), of(high)));
    }
    match overhead.more_trials {
        Some(1) => text.push_str("; a verdict needs 1 more trial of each"),
        Some(more) => text.push_str(&format!("; a verdict needs {more} more trials of each")),
        None => {}
    }
    Some(text)
}

fn recording(recording: &RecordingReport) -> String {
    let at = match recording.ends.join(" and ") {
        ends if ends.is_empty() => "on the host of the guests".to_owned(),
        ends => format!("at the {ends} end"),
    };
    let events = match recording.level.as_str() {
        "machine" => "context switches, wake-ups and interrupts",
        "packets" => "context switches, wake-ups, interrupts and the ways of messages through the kernel",
        _ => "context switches, but no interrupts",
    };
    let by = if recording.by == "bpf" { "BPF" } else { "perf events" };
    let mut text = format!("Recorded {at}: {events}, by {by}");
    if let (Some(cost), Some(unwatched)) = (recording.per_message_ns, recording.unwatched_ns) {
        let (cost, unwatched) = (time(cost.max(0) as f64), time(unwatched as f64));
        let of = if recording.ends.is_empty() { "Tailbound" } else { "the agent" };
        text.push_str(&format!(", which added {cost} to a round trip of {unwatched} between two threads of {of}"));
    }
    for LevelCost { level, per_message_ns, unwatched_ns } in &recording.others {
        let (cost, unwatched) = (time((*per_message_ns).max(0) as f64), time(*unwatched_ns as f64));
        text.push_str(&format!("; at the level `{level}`, the recording added {cost} to {unwatched}"));
    }
    if let Some(instead) = &recording.instead {
        text.push_str(&format!(" ({instead})"));
    }
    text.push('.');
    text.push_str(&records(recording));
    for (reason, datagrams) in &recording.not_followed {
        text.push_str(&format!(" {} datagrams were not followed: {}.", count(*datagrams), not_followed(reason)));
    }
    text
}

/// How many records there were, and how many of them are missing.
fn records(recording: &RecordingReport) -> String {
    let (Some(read), Some(dropped)) = (recording.records, recording.records_dropped) else { return String::new() };
    match dropped {
        0 => format!(" {} records, none dropped.", count(read)),
        _ => {
            let percent = three_digits(100.0 * dropped as f64 / (read + dropped) as f64);
            let (read, dropped) = (count(read), count(dropped));
            format!(
                " {read} records; the kernel dropped {dropped} more ({percent} % of all), because a ring buffer was full."
            )
        }
    }
}

/// Why datagrams were not followed, in words.
fn not_followed(reason: &str) -> &str {
    match reason {
        "in_pages" => "the kernel kept their contents in pages of their own, as it does with more than about 16 kB",
        "protected" => "they were encrypted or signed",
        "no_first_fragment" => "their first fragment was not seen",
        "divided" => {
            "the middleware divided one message among several datagrams, and the first one of them was not seen"
        }
        other => other,
    }
}
