//! Lists the causes of the worst messages for the terminal, Markdown and the HTML page.
//!
//! `tailbound-analysis` finds the causes; this module formats them.

use tailbound_document::{CAUSES_EXPLAINED, ConditionReport, Report};

/// The condition with the worst message, among the conditions for which causes were searched.
pub(crate) fn explained(report: &Report) -> Option<&ConditionReport> {
    let latest = |c: &&ConditionReport| c.worst.first().and_then(|m| m.from_intended_ns.or(m.round_trip_ns));
    report.conditions.iter().filter(|c| c.explained.is_some()).max_by_key(latest)
}

/// One sentence for each of the worst messages of a condition, the worst first.
pub(crate) fn sentences(report: &Report) -> impl Iterator<Item = &str> {
    explained(report)
        .into_iter()
        .flat_map(|c| c.worst.iter().take(CAUSES_EXPLAINED))
        .filter_map(|m| Some(m.cause.as_ref()?.text.as_str()))
}
