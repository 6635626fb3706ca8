//! Makes the finding about the worst messages of a condition: how much of the time that they took beyond the medians is
//! explained by causes, and by which causes.

use crate::findings::finding::finding;
use crate::tables::causes::explained;
use std::collections::BTreeMap;
use tailbound_document::number::time;
use tailbound_document::{CAUSES_EXPLAINED, Cause, CauseKind, ConditionReport, Finding, FindingLevel, Report};

/// Finding about the causes of the worst messages, for the condition with the worst message.
pub(crate) fn findings(report: &Report) -> Option<Finding> {
    let condition = explained(report)?;
    let text = total(condition)?;
    Some(Finding { evidence: "legs".into(), ..finding(FindingLevel::Caution, "causes", text, &[condition.id]) })
}

/// Finding about the causes of the worst messages of one condition.
pub(crate) fn total(condition: &ConditionReport) -> Option<String> {
    let explained = condition.explained?;
    let causes: Vec<&Cause> = condition.worst.iter().take(CAUSES_EXPLAINED).filter_map(|m| m.cause.as_ref()).collect();
    let share = 100.0 * explained.explained_ns as f64 / explained.excess_ns.max(1) as f64;
    let mut text = format!(
        "{}: of the {} that the worst {} took beyond the medians, {share:.0} % are explained, {:.0} % are not",
        condition.name,
        time(explained.excess_ns as f64),
        condition.worst.len().min(CAUSES_EXPLAINED),
        100.0 - share,
    );
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for cause in causes.iter().filter(|c| c.kind != CauseKind::Unexplained) {
        *counts.entry(short(cause)).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let counts: Vec<String> = counts
        .iter()
        .map(|(what, n)| if *n == 1 { format!("once {what}") } else { format!("{n} times {what}") })
        .collect();
    if !counts.is_empty() {
        text.push_str(&format!(". Causes: {}", counts.join(", ")));
    }
    text.push('.');
    Some(text)
}

fn short(cause: &Cause) -> String {
    let thread = cause.thread.as_deref().unwrap_or("a thread");
    let end = cause.end.as_deref().unwrap_or("an");
    match cause.kind {
        CauseKind::Waited => {
            let cpu = cause.cpu.map_or(String::new(), |c| format!(" CPU {c}"));
            let instead = cause.instead.as_ref().map_or(String::new(), |i| format!(", which `{i}` had"));
            format!("`{thread}` of the {end} end waited for{cpu}{instead}")
        }
        CauseKind::Stopped => format!("the process of the {end} end was stopped"),
        CauseKind::Blocked => format!("`{thread}` of the {end} end was blocked in the driver"),
        CauseKind::Unexplained => "nothing that was seen".into(),
    }
}
