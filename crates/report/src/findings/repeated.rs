//! Makes the finding about a run whose trials were repeated for a time (`--for`): how much of this time was measured.

use crate::findings::finding::finding;
use tailbound_document::number::{count, time};
use tailbound_document::{Finding, FindingLevel, RepeatedReport, Report};
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
    let trials = if trials == 1 { "1 trial".to_owned() } else { format!("{} trials", count(trials as u64)) };
    let mut text = format!(
        "The trials were repeated for {} (`--for`): {trials} measured for {} of {}. The longest time between two trials, in \
         which nothing was measured, was {}.",
        time(of.for_ns),
        time(of.measured_ns),
        time(of.span_ns),
        time(of.longest_gap_ns)
    );
    if let Some(bytes) = of.disk_limit_bytes.filter(|_| of.disk_reached) {
        text.push_str(&format!(" The run ended because the record had {} (`--disk`).", ByteSize(bytes)));
    }
    text
}
