//! Findings about the path that messages took.

use crate::findings::finding::finding;
use tailbound_document::{ConditionReport, Finding, FindingLevel, PathProofReport, Report};

/// Findings about the path of messages. Delivery inside the process has a finding, because the path of the study was
/// then not measured.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let with = |wanted: &dyn Fn(&PathProofReport) -> bool| -> Vec<&ConditionReport> {
        report.conditions.iter().filter(|c| c.path_proof.as_ref().is_some_and(wanted)).collect()
    };
    let mut all = Vec::new();
    let mut add = |code: &str, of: Vec<&ConditionReport>, words: &dyn Fn(&PathProofReport) -> String| {
        let Some((first, proof)) = of.first().and_then(|c| Some((c, c.path_proof.as_ref()?))) else { return };
        let more = match of.len() - 1 {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let ids: Vec<usize> = of.iter().map(|c| c.id).collect();
        let text = format!("{}{more}: {}", first.name, words(proof));
        all.push(Finding { evidence: "proof".into(), ..finding(FindingLevel::Caution, code, text, &ids) });
    };
    add("inside_process", with(&|p| p.found.as_deref() == Some("inside-process")), &|p| {
        // The text begins with `inside the process`.
        format!("delivered {}. The figures say nothing about a path.", p.text)
    });
    add("way_not_told", with(&|p| p.found.is_none() && p.unclear.is_some()), &|p| {
        format!("the path that messages took is not known: {}.", p.unclear.as_deref().unwrap_or_default())
    });
    all
}
