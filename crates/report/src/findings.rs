//! Findings: what the figures say in plain sentences, the worst news first.

use crate::condition::{ConditionReport, ConditionStatus, Counts, MetricReport, QuantileReport};
use crate::document::{Finding, FindingLevel, Report, ReportStatus, WarningSeverity};
use crate::number::{Unit, count, label, one_in, share, time};
use crate::{limits, tail};

/// From this share of lost messages on the loss is the news, not the latency.
const MANY_LOST: f64 = 0.1;

/// Code of the warning about trials of the plan that are not in the record.
pub(crate) const TRIALS_MISSING: &str = "trials_missing";

/// All findings of a report, in the order in which they are to be read.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let mut all = untrusted(report);
    all.extend(report.conditions.iter().filter_map(failed));
    let common = common_quantile(report);
    let mut results: Vec<(Badness, Finding)> = report.conditions.iter().filter_map(|c| result(c, common)).collect();
    results.sort_by_key(|(badness, _)| std::cmp::Reverse(*badness));
    all.extend(crate::flow::findings(report));
    all.extend(crate::flow::growth(report));
    all.extend(results.into_iter().map(|(_, finding)| finding));
    all.extend(crate::side_by_side::findings(report));
    all.extend(crate::tools::findings(report));
    all.extend(crate::why::findings(report));
    all.extend(limits::cautions(report));
    all.extend(limits::hints(report));
    all.sort_by_key(|f| f.level);
    all
}

/// Makes a finding about conditions; its evidence is their row unless told otherwise.
pub(crate) fn finding(level: FindingLevel, code: &str, text: String, conditions: &[usize]) -> Finding {
    let evidence = conditions.first().map_or("findings".to_owned(), |id| format!("condition-{id}"));
    Finding { level, code: code.into(), text, evidence, conditions: conditions.to_vec() }
}

fn untrusted(report: &Report) -> Vec<Finding> {
    let level = FindingLevel::Untrusted;
    let mut all = Vec::new();
    if let Some(why) = &report.functional_only {
        let text = format!("Functional only: {}. The figures say that it works, not how fast.", trimmed(why));
        all.push(Finding { evidence: "warnings".into(), ..finding(level, "functional_only", text, &[]) });
    }
    // One sentence per reason, however many trials share it.
    let mut reasons: Vec<(&str, &str, Vec<usize>)> = Vec::new();
    for id in report.invalid_trials() {
        let of = |trial: Option<usize>| {
            let invalid = report.warnings.iter().filter(|w| w.severity == WarningSeverity::Invalid);
            invalid.filter(|w| w.code != TRIALS_MISSING).find(move |w| w.trial == trial)
        };
        let warning = of(Some(id)).or_else(|| of(None));
        let (reason, mend) = warning.map_or(("the record does not say why", ""), |w| (&w.text, &w.mend));
        match reasons.iter_mut().find(|(r, ..)| *r == reason) {
            Some((.., trials)) => trials.push(id),
            None => reasons.push((reason, mend, vec![id])),
        }
    }
    for (reason, mend, trials) in reasons {
        let mut conditions: Vec<usize> = trials.iter().filter_map(|t| Some(report.trial(*t)?.condition)).collect();
        conditions.sort_unstable();
        conditions.dedup();
        let kept = |c: &&usize| report.conditions[**c].status != ConditionStatus::Invalid;
        let rest = if conditions.iter().all(|c| kept(&c)) { " The figures leave it out." } else { "" };
        let rest = if trials.len() > 1 { rest.replace(" it ", " them ") } else { rest.to_owned() };
        let mend = if mend.is_empty() { String::new() } else { format!(" {mend}") };
        let text = format!("Not to be trusted: {}: {}.{rest}{mend}", trials_named(report, &trials), trimmed(reason));
        all.push(Finding { evidence: "warnings".into(), ..finding(level, "trial_invalid", text, &conditions) });
    }
    if let Some(lacking) = report.warnings.iter().find(|w| w.code == TRIALS_MISSING) {
        let text = format!("Not to be trusted: {}. {}", trimmed(&lacking.text), lacking.mend);
        all.push(Finding { evidence: "warnings".into(), ..finding(level, TRIALS_MISSING, text, &[]) });
    }
    if report.status == ReportStatus::Incomplete {
        let ended = report.trials.iter().filter(|t| ended(t.status)).count();
        let text = format!(
            "Incomplete: the run did not end by itself; {ended} of {} trials ended. The figures are of what there is.",
            report.trials.len()
        );
        all.push(Finding { evidence: "conditions".into(), ..finding(level, "incomplete", text, &[]) });
    }
    all
}

fn ended(state: crate::circumstances::TrialState) -> bool {
    use crate::circumstances::TrialState::*;
    matches!(state, Valid | Invalid)
}

fn trials_named(report: &Report, trials: &[usize]) -> String {
    let named = |id: &usize| {
        let condition = report.trial(*id).map_or("", |t| &report.conditions[t.condition].name);
        format!("trial {id} ({condition})")
    };
    match trials {
        [one] => named(one),
        [first, rest @ ..] => format!("{} and {} more", named(first), rest.len()),
        [] => String::new(),
    }
}

fn trimmed(text: &str) -> &str {
    text.trim().trim_end_matches('.')
}

fn failed(condition: &ConditionReport) -> Option<Finding> {
    let counts = &condition.counts;
    let unanswered = counts.lost + counts.not_sent;
    if counts.scheduled == 0 || (unanswered as f64) < MANY_LOST * counts.scheduled as f64 {
        return None;
    }
    let why = condition.finding.as_ref().map_or(String::new(), |f| format!(" ({})", trimmed(f)));
    let text = if unanswered == counts.scheduled {
        format!("{}: none of {} messages was answered{why}.", condition.name, count(counts.scheduled))
    } else {
        let how = match (counts.lost, counts.not_sent) {
            (lost, 0) => format!("{} of {} messages were never answered", count(lost), count(counts.scheduled)),
            (0, not_sent) => format!("{} of {} messages were never sent", count(not_sent), count(counts.scheduled)),
            (lost, not_sent) => format!(
                "of {} messages {} were never answered and {} never sent",
                count(counts.scheduled),
                count(lost),
                count(not_sent)
            ),
        };
        format!("{}: {how}{why}.", condition.name)
    };
    Some(finding(FindingLevel::Failed, "never_answered", text, &[condition.id]))
}

/// Orders results: with losses first, then by a quantile that all of them have, then by the maximum.
type Badness = (bool, i64, i64);

/// The highest quantile that every condition can tell.
fn common_quantile(report: &Report) -> Option<f64> {
    let figures = || report.conditions.iter().filter_map(|c| c.round_trip.as_ref()).filter(|m| m.n > 0);
    let lacks = |q: f64| figures().any(|m| matches!(m.quantile(q), None | Some(QuantileReport::Needs { .. })));
    report.view.quantiles.iter().rev().copied().find(|q| !lacks(*q))
}

fn result(condition: &ConditionReport, common: Option<f64>) -> Option<(Badness, Finding)> {
    let figures = condition.round_trip.as_ref().filter(|m| m.n > 0)?;
    let mut text = format!("{}: ", condition.name);
    if condition.status == ConditionStatus::Invalid {
        text.push_str("(invalid) ");
    }
    let median = figures.quantile(0.5);
    match median {
        Some(QuantileReport::Value { value_ns, .. }) => {
            text.push_str(&format!("half of the messages return within {}", time(*value_ns as f64)));
        }
        Some(QuantileReport::Beyond { beyond, .. }) => {
            text.push_str(&format!("more than half of the messages {}", beyond.happens(true)));
        }
        _ if figures.scheduled == 1 => text.push_str("only 1 message"),
        _ => text.push_str(&format!("only {} messages", count(figures.scheduled))),
    }
    let tail = tail_quantile(figures);
    if let Some(quantile) = tail {
        text.push_str(&format!("; {}", tail_words(quantile, &condition.counts)));
    }
    if let Some(max) = figures.max_ns {
        text.push_str(&format!("; the worst of {} took {}", count(figures.n), time(max as f64)));
    }
    text.push_str(&format!(". {}", outcome_words(condition)));
    if let Some(leg) = tail::leg_words(condition) {
        text.push_str(&format!(" {leg}"));
    }
    let compared = match common.and_then(|q| figures.quantile(q)) {
        Some(QuantileReport::Beyond { .. }) => i64::MAX,
        other => other.and_then(QuantileReport::value_ns).unwrap_or(0),
    };
    let lossy = condition.counts.lost + condition.counts.not_sent > 0;
    let badness = (lossy, compared, figures.max_ns.unwrap_or(0));
    Some((badness, finding(FindingLevel::Result, "latency", text, &[condition.id])))
}

/// 1 in 1,000 where that can be told, else the highest quantile that can.
pub(crate) fn tail_quantile(figures: &MetricReport) -> Option<&QuantileReport> {
    let told = |q: &&QuantileReport| !matches!(q, QuantileReport::Needs { .. }) && q.q() > 0.5;
    figures.quantile(0.999).filter(told).or_else(|| figures.quantiles.iter().rev().find(told))
}

fn tail_words(quantile: &QuantileReport, counts: &Counts) -> String {
    let rare = one_in(quantile.q());
    let rare = if rare.starts_with('p') { format!("beyond {rare} it") } else { rare };
    match quantile {
        QuantileReport::Value { value_ns, low_ns, high_ns, .. } => {
            let unit = Unit::of(*value_ns as f64);
            let interval = match high_ns {
                Some(high) => format!("{} to {}", unit.number(*low_ns as f64), unit.with(*high as f64)),
                None => format!("{} to never", unit.with(*low_ns as f64)),
            };
            let value = unit.with(*value_ns as f64);
            format!("{rare} takes longer than {value} (95 %: {interval})")
        }
        // The quantile was only to find out; the slots without an answer are counted.
        QuantileReport::Beyond { beyond, .. } => {
            format!("{} {}", share(counts.lost + counts.not_sent, counts.scheduled), beyond.happens(false))
        }
        QuantileReport::Needs { .. } => format!("{rare} is not known"),
    }
}

fn outcome_words(condition: &ConditionReport) -> String {
    let counts = &condition.counts;
    let mut parts = Vec::new();
    if counts.lost > 0 {
        parts.push(format!("{} lost ({})", count(counts.lost), share(counts.lost, counts.scheduled)));
    }
    if counts.not_sent > 0 {
        parts.push(format!("{} never sent ({})", count(counts.not_sent), share(counts.not_sent, counts.scheduled)));
    }
    if counts.after_timeout > 0 {
        parts.push(format!("{} came after the timeout", count(counts.after_timeout)));
    }
    if counts.lost == 0 {
        parts.insert(0, "none lost".into());
    }
    let text = parts.join(", ");
    let (first, rest) = text.split_at(1);
    format!("{}{rest}.", first.to_uppercase())
}

/// `p99.9`, with how rare that is.
pub(crate) fn label_with_share(q: f64) -> String {
    let rare = one_in(q);
    if rare.starts_with('p') { label(q) } else { format!("{} ({rare})", label(q)) }
}
