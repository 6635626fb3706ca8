//! Findings about figures that other benchmark programs printed.

use crate::findings::finding::finding;
use crate::tables::tools;
use tailbound_document::{Finding, FindingLevel, Report, ToolReport};

/// One sentence of the report for each tool, in the order of the record.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    // For a tool without figures, the sentence gives the reason.
    let told = |tool: &&ToolReport| !tool.figures.is_empty();
    let of = |tool: &ToolReport| {
        let text = format!(
            "{}, not measured by Tailbound: {}. {}",
            tools::origin(tool),
            tools::lines(tool).join("; "),
            tools::notes(tool)
        );
        let of_trial = tool.trial.and_then(|t| report.trial(t)).map(|t| t.condition);
        let conditions: Vec<usize> = of_trial.into_iter().collect();
        Finding { evidence: "tools".into(), ..finding(FindingLevel::Result, "tool", text, &conditions) }
    };
    report.tools.iter().filter(told).map(of).collect()
}
