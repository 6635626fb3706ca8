//! Findings about how figures grow with the number of subscribers: the exponent of a power law, fitted over conditions
//! that differ only in the number of subscribers.

use crate::findings::finding::finding;
use crate::tables::growth::{FACTOR, power};
use std::collections::BTreeMap;
use tailbound_document::{ConditionReport, Finding, FindingLevel, FlowReport, Report};

type Figure = (&'static str, fn(&FlowReport) -> Option<f64>);

const FIGURES: [Figure; 4] = [
    ("discovery of all ends", |f| f.discovery_ns.map(|s| s.median)),
    ("the median time until the last subscriber has a message", |f| {
        Some(f.slowest.as_ref()?.quantile(0.5)?.value_ns()? as f64)
    }),
    ("samples/s at the slowest subscriber", |f| f.samples_per_s.map(|s| s.median)),
    ("CPU time of the publisher per sample", |f| f.publisher_cpu_ns.map(|s| s.median)),
];

/// One sentence for each group of conditions that differ in the number of subscribers only.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let mut groups: BTreeMap<String, Vec<&ConditionReport>> = BTreeMap::new();
    for condition in report.conditions.iter().filter(|c| c.flow.is_some() && c.levels.contains_key(FACTOR)) {
        let others = condition.levels.iter().filter(|(factor, _)| *factor != FACTOR);
        let key: Vec<String> = others.map(|(factor, level)| format!("{factor} {level}")).collect();
        groups.entry(key.join(", ")).or_default().push(condition);
    }
    groups.into_iter().filter_map(|(name, conditions)| told(&name, &conditions)).collect()
}

fn told(name: &str, conditions: &[&ConditionReport]) -> Option<Finding> {
    let flows: Vec<&FlowReport> = conditions.iter().filter_map(|c| c.flow.as_ref()).collect();
    let mut said = Vec::new();
    for (what, of) in FIGURES {
        let points: Vec<(f64, f64)> =
            flows.iter().filter_map(|f| Some((f64::from(f.subscribers), of(f)?))).filter(|p| p.1 > 0.0).collect();
        if let Some((exponent, error)) = power(&points) {
            said.push(format!("{what} as N^{exponent:.2} (standard error {error:.2})"));
        }
    }
    let (least, most) = (flows.iter().map(|f| f.subscribers).min()?, flows.iter().map(|f| f.subscribers).max()?);
    let text = format!("{name}: from {least} to {most} subscribers change {}.", said.join(", "));
    let ids: Vec<usize> = conditions.iter().map(|c| c.id).collect();
    (!said.is_empty()).then(|| finding(FindingLevel::Result, "growth", text, &ids))
}
