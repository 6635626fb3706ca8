//! Makes the finding about a run whose trials were repeated for a time (`--for`): how much of this time was measured.

use crate::findings::finding::finding;
use tailbound_document::number::{count, time};
use tailbound_document::{Finding, FindingLevel, RemovedReport, RepeatedReport, Report};
use tailbound_model::ByteSize;

/// The finding about the repetition of the trials; `None` if they were not repeated.
pub(crate) fn findings(report: &Report) -> Option<Finding> {
    let repeated = report.run.repeated.as_ref()?;
    Some(Finding {
        evidence: "conditions".into(),
        ..finding(FindingLevel::Result, "repeated", text(repeated, report.trials.len()), &[])
    })
}

fn text(of: &RepeatedReport, trials: usize) -> String {
    let time = |ns: i64| time(ns as f64);
    let removed: u64 = of.removed.iter().flatten().map(|condition| condition.trials).sum();
    let trials = self::trials(trials as u64 + removed);
    let mut text = format!(
        "The trials were repeated for {} (`--for`): {trials} measured for {} of {}. The longest time between two trials, in \
         which nothing was measured, was {}.",
        time(of.for_ns),
        time(of.measured_ns),
        time(of.span_ns),
        time(of.longest_gap_ns)
    );
    if let Some(removed) = &of.removed {
        text.push_str(&older(removed, of));
    }
    if let Some(bytes) = of.disk_limit_bytes.filter(|_| of.disk_reached) {
        text.push_str(&format!(" The run ended because the record had {} (`--disk`).", ByteSize(bytes)));
    }
    text
}

fn trials(number: u64) -> String {
    if number == 1 { "1 trial".to_owned() } else { format!("{} trials", count(number)) }
}

fn were(number: u64) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

/// What happened to older trials, so that the record stayed below its largest size.
fn older(removed: &[RemovedReport], of: &RepeatedReport) -> String {
    let sum = |member: fn(&RemovedReport) -> u64| removed.iter().map(member).sum::<u64>();
    let gone = sum(|condition| condition.trials);
    if gone == 0 && of.kept_trial_ids.is_empty() {
        return " No trial was removed (`--rolling`).".to_owned();
    }
    let mut text = format!(" {} {} removed (`--rolling`)", trials(gone), were(gone));
    let not_valid = sum(|condition| condition.not_valid);
    if not_valid > 0 {
        text.push_str(&format!(", {} of them not valid", count(not_valid)));
    }
    let (scheduled, answered) = (sum(|condition| condition.scheduled), sum(|condition| condition.answered));
    if scheduled > 0 {
        text.push_str(&format!(
            ": {} of the {} messages of the valid ones were answered, {} were late, in {} incidents",
            count(answered),
            count(scheduled),
            count(sum(|condition| condition.late)),
            count(sum(|condition| condition.incidents))
        ));
    }
    if let Some(longest) = removed.iter().filter_map(|condition| condition.longest_latency_ns).max() {
        text.push_str(&format!(", the longest after {}", time(longest as f64)));
    }
    text.push('.');
    let kept = of.kept_trial_ids.len() as u64;
    if kept > 0 {
        text.push_str(&format!(
            " {}, older than the others, {} kept because of {} incidents, which are listed.",
            trials(kept),
            were(kept),
            if kept == 1 { "its" } else { "their" }
        ));
    }
    text.push_str(" Latencies, counts of messages and sums of causes are from the newest trials only.");
    text
}
