//! Candidates: changes that answer the causes of one condition, the most promising first.

use crate::answers::Answers;
use crate::case::{Case, Proposal};
use crate::rule::Rule;
use crate::rules::RULES;
use crate::situation::Situation;
use tailbound_document::{CauseShare, Evidence, LossReport, RemainingQuantile, WithoutCause};

/// A cause with a smaller part of the excess gives no candidates.
const LEAST_SHARE: f64 = 0.01;

/// A change that answers a cause of late messages or a kind of losses.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The rule that gives the candidate.
    pub rule: &'static Rule,
    /// Settings of a study that make the change, as for `--set`, e.g. `ends.pong.cpus=2`; empty if the change can be made by
    /// hand only.
    pub settings: Vec<String>,
    /// The cause or the kind of loss that the candidate answers.
    pub answers: Answers,
    /// Estimate of the declared quantile without the answered cause; `None` for losses, and if there is no estimate.
    pub predicted_ns: Option<Prediction>,
    /// What to change and why, as one sentence.
    pub text: String,
    /// Rank of the candidate: part of the excess or of the losses that it should remove, times how directly it answers the
    /// evidence.
    pub rank: f64,
}

/// Estimate of a quantile without a cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Fraction of the quantile, e.g. 0.999 for p99.9, or 1 for the maximum.
    pub q: f64,
    /// Measured quantile, ns.
    pub now_ns: i64,
    /// Estimate of the quantile without the cause, ns.
    pub then_ns: i64,
}

impl Prediction {
    /// True if the estimate is at least a tenth below the measured value.
    pub fn is_clear(&self) -> bool {
        (self.now_ns - self.then_ns) * 10 >= self.now_ns
    }
}

/// The changes that answer the causes and losses of a condition, the most promising first. Only causes and losses that were
/// seen or counted give candidates. No two candidates have the same settings.
pub fn candidates(situation: &Situation<'_>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    let covered = situation.causes.iter().filter(|c| c.share > 0.0).map(|c| c.ns as f64 / c.share).next();
    for share in situation.causes.iter().filter(|c| c.explains && c.proven_ns > 0) {
        let part = share.proven_ns as f64 / covered.unwrap_or(share.ns as f64).max(1.0);
        if part >= LEAST_SHARE {
            let predicted = situation.without.iter().find(|w| is_of(w, share)).and_then(|w| prediction(w, situation.q));
            add(&mut all, &Case::of_cause(situation, share), part, predicted);
        }
    }
    let lost: u64 = situation.losses.iter().map(|l| l.count).sum();
    let is_proven = |l: &&LossReport| matches!(l.evidence, Evidence::Seen | Evidence::Counted);
    for loss in situation.losses.iter().filter(is_proven).filter(|l| l.kind.is_some()) {
        add(&mut all, &Case::of_loss(situation, loss), loss.count as f64 / lost.max(1) as f64, None);
    }
    all.sort_by(|a, b| b.rank.total_cmp(&a.rank));
    let mut distinct: Vec<Candidate> = Vec::new();
    for candidate in all {
        let same = |other: &Candidate| match candidate.settings.is_empty() {
            true => other.rule.key == candidate.rule.key,
            false => other.settings == candidate.settings,
        };
        if !distinct.iter().any(same) {
            distinct.push(candidate);
        }
    }
    distinct
}

/// Adds the candidates of all rules for one cause or kind of loss, which has this part of the excess or of the losses.
fn add(all: &mut Vec<Candidate>, case: &Case<'_>, part: f64, predicted_ns: Option<Prediction>) {
    for rule in RULES.iter().filter(|rule| is_answered(case, rule)) {
        let expected = f64::from(rule.expected.low_percent + rule.expected.high_percent) / 200.0;
        for Proposal { settings, text, fit } in (rule.propose)(case) {
            let rank = part * expected * fit;
            let text = if text.is_empty() { sentence(rule.remedy) } else { text };
            all.push(Candidate { rule, settings, answers: case.answers(), predicted_ns, text, rank });
        }
    }
}

/// True if a rule answers the cause or the kind of loss of a case.
fn is_answered(case: &Case<'_>, rule: &Rule) -> bool {
    match case.answers() {
        Answers::Cause { word, .. } => rule.causes.contains(&word),
        Answers::Loss { kind, .. } => rule.losses.contains(&kind),
    }
}

/// A remedy as a sentence.
fn sentence(remedy: &str) -> String {
    let mut letters = remedy.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// True if an estimate is without this cause.
fn is_of(without: &WithoutCause, share: &CauseShare) -> bool {
    (without.cause, &without.end, &without.by) == (share.cause, &share.end, &share.by)
}

/// The estimate of the declared quantile; otherwise of the highest quantile that would be clearly shorter, or the maximum.
fn prediction(without: &WithoutCause, q: Option<f64>) -> Option<Prediction> {
    let known = |of: &RemainingQuantile| Some(Prediction { q: of.q, now_ns: of.value_ns?, then_ns: of.without_ns? });
    let quantiles = without.quantiles.iter().filter_map(known);
    if let Some(q) = q {
        return quantiles.into_iter().find(|of| (q - of.q).abs() < 1e-9);
    }
    let highest = quantiles.filter(Prediction::is_clear).max_by(|a, b| a.q.total_cmp(&b.q));
    let maximum = Prediction { q: 1.0, now_ns: without.max_ns, then_ns: without.max_without_ns };
    highest.or(Some(maximum).filter(Prediction::is_clear))
}
