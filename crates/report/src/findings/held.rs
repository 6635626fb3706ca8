//! Findings about messages that were held on their way and released together.

use crate::findings::finding::finding;
use crate::tables::held::{all, sentences};
use tailbound_document::{Finding, FindingLevel, Report};

/// One finding for each direction of a condition with at least one burst.
pub(crate) fn findings(report: &Report) -> impl Iterator<Item = Finding> {
    all(report).map(|(condition, held)| Finding {
        evidence: "held".into(),
        ..finding(FindingLevel::Caution, "hold_and_release", sentences(condition, held), &[condition.id])
    })
}
