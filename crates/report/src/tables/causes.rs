//! Lists the worst incidents with their causes for the terminal, Markdown and the HTML page.
//!
//! `tailbound-analysis` finds the causes; this module chooses which of them are listed.

use tailbound_document::{ConditionReport, INCIDENTS_DESCRIBED, IncidentReport, Report};

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
