//! Finding about the patterns of the trials under load. A pattern is one word for the effect of the load on a trial.

use crate::findings::finding::finding;
use crate::tables::patterns::Table;
use tailbound_document::{Finding, FindingLevel, Report};

/// One sentence with the number of trials under load that have each pattern.
pub(crate) fn finding_of(report: &Report) -> Option<Finding> {
    let table = Table::of(report)?;
    let ids: Vec<usize> = table.measured.iter().map(|(c, _)| c.id).collect();
    let total = |head: &&'static str| -> (&'static str, u64) {
        (*head, table.measured.iter().filter_map(|(_, c)| c.get(*head)).sum::<u64>())
    };
    let parts: Vec<(&str, u64)> = table.heads.iter().map(total).filter(|(_, n)| *n > 0).collect();
    let trials: u64 = parts.iter().map(|(_, n)| n).sum();
    let parts: Vec<String> = parts.iter().map(|(head, n)| format!("{head} {n}")).collect();
    let plural = if trials == 1 { "" } else { "s" };
    let text = format!("Patterns of {trials} trial{plural} under load: {}.", parts.join(", "));
    Some(Finding { evidence: "patterns".into(), ..finding(FindingLevel::Caution, "patterns", text, &ids) })
}
