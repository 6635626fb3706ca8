//! Findings about the limits of the figures: what the figures do not show, and what would improve them.

use crate::findings::finding::finding;
use crate::findings::quantile_words::{label_with_share, tail_quantile};
use crate::findings::{delivery, host_settings, loads, path_proof, patterns, starved, tail_estimate, warm_up};
use tailbound_document::number::{count, label, time};
use tailbound_document::{ConditionReport, Finding, FindingLevel, MetricReport, QuantileReport, Report};

/// The lateness of the sender has a finding of its own if the tail of `from_intended` is at least this many times the
/// tail of the round trip.
const SENDER_LATE: f64 = 1.5;

/// Findings about the limits of the measurement.
pub(crate) fn cautions(report: &Report) -> Vec<Finding> {
    let mut all: Vec<Finding> = [sender_late(report), clustered(report), too_narrow(report), not_possible(report)]
        .into_iter()
        .flatten()
        .collect();
    all.extend(delivery::replaceable(report));
    all.extend(warm_up::finding_of(report));
    all.extend(tail_estimate::findings(report));
    all.extend(path_proof::findings(report));
    all.extend(loads::beside(report));
    all.extend(patterns::finding_of(report));
    all.extend(starved::findings(report));
    all.extend(host_settings::told(report));
    all.extend(idle_states(report));
    all
}

/// Finding for studies in which the rate varies: at low rates, the idle states of the CPUs between two messages affect
/// the latency.
fn idle_states(report: &Report) -> Option<Finding> {
    let mut rates = report.conditions.iter().map(|c| c.period_ns);
    let first = rates.next()?;
    if rates.all(|rate| rate == first) {
        return None;
    }
    let words = |host: &tailbound_document::Host| {
        let fact = |key: &str| host.facts.iter().find(|f| f.key == key);
        let told = |key: &str| fact(key)?.value.as_str().map(str::to_owned);
        let why = || fact("cpu.idle_states").and_then(|f| f.unknown.clone());
        let states = told("cpu.idle_states").or_else(|| Some(format!("not known ({})", why()?)))?;
        let governor = told("cpu.idle_governor").map_or(String::new(), |g| format!(", governor {g}"));
        Some(format!("{}: {states}{governor}", host.host))
    };
    let hosts: Vec<String> = report.facts.iter().filter_map(words).collect();
    if hosts.is_empty() {
        return None;
    }
    let text = format!(
        "The rate varies, and at low rates, CPUs enter idle states between two messages. Idle states of {}.",
        hosts.join("; of ")
    );
    Some(Finding { evidence: "facts".into(), ..finding(FindingLevel::Caution, "idle_states", text, &[]) })
}

/// Finding about the condition in which the sender's own lateness increases the tail most.
fn sender_late(report: &Report) -> Option<Finding> {
    let mut late: Vec<(&ConditionReport, f64, i64, i64)> = report.conditions.iter().filter_map(lateness).collect();
    late.sort_by_key(|(_, _, counted, _)| std::cmp::Reverse(*counted));
    let (condition, q, counted, sent) = late.first()?;
    let several = match late.len() {
        1 => String::new(),
        n => format!(" in {n} conditions; the following figures are of the worst condition"),
    };
    let text = format!(
        "{}: the sender itself ran late{several}. Counted from when a message was due, {} is {}, not {}.",
        condition.name,
        label_with_share(*q),
        time(*counted as f64),
        time(*sent as f64),
    );
    let ids: Vec<usize> = late.iter().map(|(c, ..)| c.id).collect();
    Some(finding(FindingLevel::Caution, "sender_late", text, &ids))
}

/// For a condition whose sender was late: the tail from the intended times and the tail from the send times, in ns, and
/// their ratio.
fn lateness(condition: &ConditionReport) -> Option<(&ConditionReport, f64, i64, i64)> {
    let tail = tail_quantile(condition.from_intended.as_ref()?)?;
    let (q, counted) = (tail.q(), tail.value_ns()?);
    let sent = condition.round_trip.as_ref()?.quantile(q)?.value_ns()?;
    (counted as f64 >= SENDER_LATE * sent as f64).then_some((condition, q, counted, sent))
}

/// If the effective number of messages is below this share of the number of messages, the report has a finding about
/// the difference.
const CLUSTERED: f64 = 0.5;

/// Finding about the condition with the smallest effective number of messages. The number is small because late
/// messages come in clusters.
fn clustered(report: &Report) -> Option<Finding> {
    let least = |c: &ConditionReport| {
        let figures = c.round_trip.as_ref()?;
        let worth = |q: &QuantileReport| match *q {
            QuantileReport::Value { q, effective_n, .. } => {
                Some((effective_n as f64 / figures.scheduled as f64, effective_n, q))
            }
            _ => None,
        };
        let least = figures.quantiles.iter().filter_map(worth).min_by(|a, b| a.0.total_cmp(&b.0))?;
        (least.0 < CLUSTERED).then_some((c.id, least, figures.scheduled))
    };
    let found: Vec<(usize, (f64, u64, f64), u64)> = report.conditions.iter().filter_map(least).collect();
    let (worst, (_, worth, q), n) = *found.iter().min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let ids: Vec<usize> = found.iter().map(|m| m.0).collect();
    let several = match ids.len() {
        1 => String::new(),
        n => format!(" in {n} conditions"),
    };
    let text = format!(
        "Late messages come in clusters{several}, and this makes the intervals wider: for {}, the {} messages of {} \
            are as informative as {} independent messages.",
        label(q),
        count(n),
        report.conditions[worst].name,
        count(worth),
    );
    Some(finding(FindingLevel::Caution, "clustered", text, &ids))
}

/// Finding about intervals that are too narrow, although they were widened because messages depend on each other.
fn too_narrow(report: &Report) -> Option<Finding> {
    let marked = |m: &MetricReport| {
        let mark = |q: &&QuantileReport| matches!(q, QuantileReport::Value { too_narrow: true, .. });
        m.quantiles.iter().find(mark).map(QuantileReport::q)
    };
    let found: Vec<(&ConditionReport, f64)> =
        report.conditions.iter().filter_map(|c| Some((c, c.round_trip.as_ref().and_then(marked)?))).collect();
    let (first, q) = found.first()?;
    let text = format!(
        "Intervals marked ~, such as that of {} for {}, are too narrow: messages depend on each other over too long a \
            time, or trials differ. Longer trials, or at least five trials, show how wide the intervals \
         must be.",
        label(*q),
        first.name,
    );
    let ids: Vec<usize> = found.iter().map(|(c, _)| c.id).collect();
    Some(finding(FindingLevel::Caution, "too_narrow", text, &ids))
}

fn not_possible(report: &Report) -> Option<Finding> {
    let lacking: Vec<&ConditionReport> = report.conditions.iter().filter(|c| c.not_possible.is_some()).collect();
    let first = lacking.first()?;
    let reason = first.not_possible.as_deref().unwrap_or_default().trim_end_matches('.');
    let more = match lacking.len() - 1 {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    let ids: Vec<usize> = lacking.iter().map(|c| c.id).collect();
    Some(finding(FindingLevel::Caution, "not_possible", format!("Not possible: {}: {reason}{more}.", first.name), &ids))
}
