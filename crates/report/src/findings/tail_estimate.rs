//! Findings about tail estimates, for example how late one message in a million is.

use crate::findings::finding::finding;
use tailbound_document::number::{Unit, count};
use tailbound_document::{ConditionReport, Finding, FindingLevel, Report, TailReport};

/// Findings about the tail estimates, with numbers for the condition with the longest tail. If an estimate is missing,
/// its reason is given only if the study asks for a tail estimate.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let mut told: Vec<(i64, &ConditionReport, String)> = Vec::new();
    let mut without: Vec<(&ConditionReport, u64, &str)> = Vec::new();
    for condition in &report.conditions {
        match condition.round_trip.as_ref().and_then(|m| m.tail.as_ref()) {
            Some(TailReport::Estimate { one_in, level_ns, low_ns, high_ns, clusters, .. }) => {
                let unit = Unit::of(*level_ns as f64);
                let text = format!(
                    "one message in {} of {} returns later than about {} (95 %: {} to {}), estimated from {} clusters \
                        of late messages",
                    count(*one_in),
                    condition.name,
                    unit.with(*level_ns as f64),
                    unit.number(*low_ns as f64),
                    unit.with(*high_ns as f64),
                    count(*clusters),
                );
                told.push((*level_ns, condition, text));
            }
            Some(TailReport::NotApplicable { one_in, not_applicable }) => {
                without.push((condition, *one_in, not_applicable));
            }
            None => {}
        }
    }
    told.sort_by_key(|(level, ..)| std::cmp::Reverse(*level));
    let mut all = Vec::new();
    if let Some((_, first, text)) = told.first() {
        let more = match told.len() - 1 {
            0 => String::new(),
            1 => "; the estimate of one more condition is lower".to_owned(),
            n => format!("; the estimates of {n} more conditions are lower"),
        };
        let text = format!("Tail estimate, not a bound: {text}{more}.");
        let ids: Vec<usize> = told.iter().map(|(_, c, _)| c.id).collect();
        let evidence = format!("condition-{}", first.id);
        all.push(Finding { evidence, ..finding(FindingLevel::Caution, "tail_estimate", text, &ids) });
    }
    if let Some((condition, one_in, reason)) = without.first().filter(|_| report.view.tail_asked) {
        let more = match without.len() - 1 {
            0 => String::new(),
            n => format!(" (and {n} more conditions)"),
        };
        let text = format!("No tail estimate of 1 in {} for {}: {reason}{more}.", count(*one_in), condition.name);
        let ids: Vec<usize> = without.iter().map(|(c, ..)| c.id).collect();
        all.push(finding(FindingLevel::Caution, "no_tail_estimate", text, &ids));
    }
    all
}
