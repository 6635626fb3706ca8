//! Findings about the latency of each condition, the worst condition first.

use crate::findings::delivery;
use crate::findings::finding::{finding, trimmed};
use crate::findings::losses;
use crate::findings::quantile_words::tail_quantile;
use crate::findings::worst_leg;
use tailbound_document::Beyond;
use tailbound_document::number::{Unit, count, one_in, share, time};
use tailbound_document::{ConditionReport, ConditionStatus, Counts, Finding, FindingLevel, QuantileReport, Report};

/// If at least this share of the messages is lost, the finding of the condition is about the loss and not about the
/// latency.
const MANY_LOST: f64 = 0.1;

/// Finding about the messages of a condition that were not answered, if they are many or if the QoS promised their
/// delivery. A flow has findings of its own.
pub(crate) fn failed(report: &Report, condition: &ConditionReport) -> Option<Finding> {
    let counts = &condition.counts;
    let unanswered = counts.lost + counts.not_sent;
    let many = counts.scheduled > 0 && unanswered as f64 >= MANY_LOST * counts.scheduled as f64;
    let promise = delivery::broken_promise(report, condition).filter(|_| condition.flow.is_none());
    if !many && promise.is_none() {
        return None;
    }
    let why = condition.finding.as_ref().map_or(String::new(), |f| format!(" ({})", trimmed(f)));
    let code = if promise.is_some() { delivery::RELIABLE_LOST } else { "never_answered" };
    let words = unanswered_words(counts);
    let places = losses::words(condition);
    let text = format!("{}: {words}{why}.{places}{}", condition.name, promise.unwrap_or_default());
    Some(finding(FindingLevel::Failed, code, text, &[condition.id]))
}

fn unanswered_words(counts: &Counts) -> String {
    let Counts { scheduled, lost, not_sent, .. } = *counts;
    match (lost, not_sent) {
        _ if lost + not_sent == scheduled => format!("none of {} messages was answered", count(scheduled)),
        (lost, 0) => format!("{} of {} messages were lost", count(lost), count(scheduled)),
        (0, not_sent) => format!("{} of {} messages were not sent", count(not_sent), count(scheduled)),
        (lost, not_sent) => {
            format!("of {} messages, {} were lost and {} were not sent", count(scheduled), count(lost), count(not_sent))
        }
    }
}

/// Sorts conditions for the findings: conditions with losses come first; the others follow by a quantile that all
/// conditions have, then by the maximum.
type Badness = (bool, i64, i64);

/// The highest quantile of the round trip for which every condition has a value.
fn common_quantile(report: &Report) -> Option<f64> {
    let figures = || report.conditions.iter().filter_map(|c| c.round_trip.as_ref()).filter(|m| m.n > 0);
    let lacks = |q: f64| figures().any(|m| matches!(m.quantile(q), None | Some(QuantileReport::Needs { .. })));
    report.view.quantiles.iter().rev().copied().find(|q| !lacks(*q))
}

/// One finding about the latency of each condition, the worst condition first.
pub(crate) fn results(report: &Report) -> impl Iterator<Item = Finding> {
    let common = common_quantile(report);
    // A condition that has failed has a finding with the places of its losses.
    let places = |c: &ConditionReport| if failed(report, c).is_some() { String::new() } else { losses::words(c) };
    let mut results: Vec<(Badness, Finding)> =
        report.conditions.iter().filter_map(|c| result(c, common, &places(c))).collect();
    results.sort_by_key(|(badness, _)| std::cmp::Reverse(*badness));
    results.into_iter().map(|(_, finding)| finding)
}

fn result(condition: &ConditionReport, common: Option<f64>, places: &str) -> Option<(Badness, Finding)> {
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
            text.push_str(most(*beyond));
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
    text.push_str(&format!(". {}{places}", outcome_words(condition)));
    if let Some(leg) = worst_leg::leg_words(condition) {
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

fn tail_words(quantile: &QuantileReport, counts: &Counts) -> String {
    let rare = one_in(quantile.q());
    let rare = if rare.starts_with('p') { format!("beyond {rare} it") } else { rare };
    match quantile {
        QuantileReport::Value { value_ns, low_ns, high_ns, .. } => {
            let unit = Unit::of(*value_ns as f64);
            let interval = match high_ns {
                Some(high) => format!("{} to {}", unit.number(*low_ns as f64), unit.with(*high as f64)),
                None => format!("{} to lost", unit.with(*low_ns as f64)),
            };
            let value = unit.with(*value_ns as f64);
            format!("{rare} takes longer than {value} (95 %: {interval})")
        }
        // The quantile has no value, so the share of slots without an answer is given, which was counted.
        QuantileReport::Beyond { beyond, .. } => {
            rarely(&share(counts.lost + counts.not_sent, counts.scheduled), *beyond)
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
        parts.push(format!("{} not sent ({})", count(counts.not_sent), share(counts.not_sent, counts.scheduled)));
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

/// Says that most messages count as later than every value, because they were lost or never sent.
fn most(beyond: Beyond) -> &'static str {
    match beyond {
        Beyond::Lost => "more than half of the messages are lost",
        Beyond::NotSent => "more than half of the messages are not sent",
        Beyond::LostOrNotSent => "more than half of the messages are lost or not sent",
    }
}

/// Says that one message in a number (`share`) counts as later than every value, because it was lost or never sent.
fn rarely(share: &str, beyond: Beyond) -> String {
    match beyond {
        Beyond::Lost => format!("{share} is lost"),
        Beyond::NotSent => format!("{share} is not sent"),
        Beyond::LostOrNotSent => format!("{share} is lost or not sent"),
    }
}
