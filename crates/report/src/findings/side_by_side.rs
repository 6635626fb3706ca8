//! Findings about figures of other benchmark programs compared with figures of drivers.

use crate::findings::finding::finding;
use crate::tables::side_by_side;
use tailbound_document::{Finding, FindingLevel, Report, SideBySide};

/// One sentence for each pair of a program and a driver: the comparable figures with their ratios, and the reasons why
/// other figures are not comparable.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let of = |pair: &SideBySide| {
        let [a, b] = &pair.names;
        let begin = format!("{} beside {b}", report.conditions[pair.a].name);
        let apart = pair.apart.join("; ");
        let text = match pair.same.is_empty() {
            true => format!("{begin}: not comparable: {apart}."),
            false => format!(
                "{begin}: comparable figures, {a} against {b}: {}; the ratios describe only these runs. Note: {apart}.",
                side_by_side::figures(pair).join(", ")
            ),
        };
        Finding { evidence: "tools".into(), ..finding(FindingLevel::Result, "side_by_side", text, &[pair.a, pair.b]) }
    };
    report.side_by_side.iter().map(of).collect()
}
