//! Evidence of a record for findings: how much of the delay, and how many lost messages, have causes that a remedy answers.

use crate::finding::{Finding, Verdict};
use crate::shown::{LEAST_SHARE, Shown};
use tailbound_document::{CauseWord, ConditionReport, Evidence, LossKind};

/// Causes of late messages and kinds of losses that the record of a run shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordEvidence {
    /// Share of the excess of late messages for each cause that was seen or counted.
    pub causes: Vec<(CauseWord, f64)>,
    /// Number of lost messages of each kind that was seen or counted.
    pub losses: Vec<(LossKind, u64)>,
}

impl RecordEvidence {
    /// The causes and losses of all conditions of a report that were seen or counted.
    pub fn of(conditions: &[ConditionReport]) -> RecordEvidence {
        let mut of = RecordEvidence::default();
        let covered_ns: i64 = conditions.iter().filter_map(|c| c.incident_totals).map(|totals| totals.covered_ns).sum();
        for share in conditions.iter().flat_map(|c| &c.causes).filter(|c| c.proven_ns > 0) {
            let part = share.proven_ns as f64 / covered_ns.max(1) as f64;
            match of.causes.iter_mut().find(|(word, _)| *word == share.cause) {
                Some((_, sum)) => *sum += part,
                None => of.causes.push((share.cause, part)),
            }
        }
        let is_proven = |evidence| matches!(evidence, Evidence::Seen | Evidence::Counted);
        for loss in conditions.iter().flat_map(|c| &c.losses).filter(|loss| is_proven(loss.evidence)) {
            let Some(kind) = loss.kind else { continue };
            match of.losses.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, sum)) => *sum += loss.count,
                None => of.losses.push((kind, loss.count)),
            }
        }
        of.causes.sort_by(|a, b| b.1.total_cmp(&a.1));
        of
    }

    /// What the record shows of the causes that the remedy of a finding answers; `None` if it shows none of them.
    fn of_finding(&self, finding: &Finding) -> Option<Shown> {
        let rule = tailbound_advice::rule(&finding.advice)?;
        let causes: Vec<&(CauseWord, f64)> =
            self.causes.iter().filter(|(word, _)| rule.causes.contains(word)).collect();
        let losses = self.losses.iter().filter(|(kind, _)| rule.losses.contains(kind));
        let shown = Shown {
            causes: causes.iter().map(|(word, _)| *word).collect(),
            share: causes.iter().map(|(_, share)| share).sum(),
            lost: losses.map(|(_, count)| count).sum(),
        };
        (shown.share >= LEAST_SHARE || shown.lost > 0).then_some(shown)
    }
}

/// Puts findings into the order of their importance: first bad settings, those with evidence in the record (if one is given) first,
/// then by weight; then settings that could not be read; then good settings.
pub fn ranked(mut findings: Vec<Finding>, record: Option<&RecordEvidence>) -> Vec<Finding> {
    if let Some(record) = record {
        for finding in findings.iter_mut().filter(|finding| finding.verdict == Verdict::WillWidenTail) {
            finding.evidence = record.of_finding(finding);
        }
    }
    let order = |verdict| match verdict {
        Verdict::WillWidenTail => 0,
        Verdict::Unknown => 1,
        Verdict::Ok => 2,
    };
    // Lost messages weigh more than late ones.
    let shown =
        |finding: &Finding| finding.evidence.as_ref().map_or((false, 0.0), |shown| (shown.lost > 0, shown.share));
    findings.sort_by(|a, b| {
        let ((a_lost, a_share), (b_lost, b_share)) = (shown(a), shown(b));
        order(a.verdict)
            .cmp(&order(b.verdict))
            .then(b_lost.cmp(&a_lost))
            .then(b_share.total_cmp(&a_share))
            .then(b.weight.cmp(&a.weight))
    });
    findings
}
