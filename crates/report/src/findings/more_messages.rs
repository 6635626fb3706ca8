//! Findings about quantiles that need more messages than were measured.

use crate::findings::finding::finding;
use crate::findings::rounding::round_up;
use tailbound_document::number::{THIN, count, label};
use tailbound_document::{ConditionReport, Finding, FindingLevel, QuantileReport, Report};

/// One sentence per quantile that needs more messages, with the setting that would provide them.
pub(crate) fn hints(report: &Report) -> Vec<Finding> {
    report.view.quantiles.iter().filter_map(|q| needs_more(report, *q)).collect()
}

fn needs_more(report: &Report, q: f64) -> Option<Finding> {
    let lacking: Vec<(&ConditionReport, u64)> = report
        .conditions
        .iter()
        // The number of pings of a flow follows from its messages, so no number of slots can be set.
        .filter(|c| c.flow.is_none())
        .filter_map(|c| match c.round_trip.as_ref()?.quantile(q)? {
            QuantileReport::Needs { needs, .. } => Some((c, *needs)),
            _ => None,
        })
        .collect();
    let needs = lacking.iter().map(|(_, needs)| *needs).max()?;
    let slots = |c: &ConditionReport, needs: u64| round_up(needs.div_ceil(c.used_trial_ids.len().max(1) as u64));
    let enough = lacking.iter().map(|(c, needs)| slots(c, *needs)).max()?;
    let (least, most) =
        lacking.iter().map(|(c, _)| c.counts.scheduled).fold((u64::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
    let has = match (lacking.len(), least == most) {
        (1, _) => format!("{} has {}", lacking[0].0.name, count(most)),
        (n, true) => format!("{} have {} each", conditions(n, report), count(most)),
        (n, false) => format!("{} have {} to {}", conditions(n, report), count(least), count(most)),
    };
    let duration = lacking.iter().filter_map(|(c, _)| per_slot_ns(c)).fold(0.0, f64::max) * enough as f64;
    let text = format!(
        "{} needs {} messages; {has}. `--set measure.slots={enough}` would give it ({} a trial).",
        label(q),
        count(needs),
        rough(duration)
    );
    let ids: Vec<usize> = lacking.iter().map(|(c, _)| c.id).collect();
    Some(Finding { evidence: "ladder".into(), ..finding(FindingLevel::Hint, "needs_more", text, &ids) })
}

fn conditions(n: usize, report: &Report) -> String {
    if n == report.conditions.len() { format!("the {n} conditions") } else { format!("{n} conditions") }
}

/// Time that one message takes in ns, to compute the duration of further messages: the period or, for stop-and-wait,
/// the mean round trip.
fn per_slot_ns(condition: &ConditionReport) -> Option<f64> {
    condition.period_ns.map(|p| p as f64).or_else(|| condition.round_trip.as_ref()?.mean_ns)
}

fn rough(ns: f64) -> String {
    match ns / 1e9 {
        s if s < 1.0 => "under a second".into(),
        s if s < 120.0 => format!("{}{THIN}s", s.round()),
        s if s < 7200.0 => format!("{}{THIN}min", (s / 60.0).round()),
        s => format!("{}{THIN}h", (s / 3600.0).round()),
    }
}
