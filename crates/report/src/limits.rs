//! Sentences about what the figures do not say, and what would make them say it.

use crate::condition::{ConditionReport, MetricReport, QuantileReport};
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::{finding, label_with_share, tail_quantile};
use crate::number::{THIN, count, label, time};
use crate::{host_settings, loads, patterns, proof, starved, tail_estimate, warm_up};

/// From-intended is told apart from the round trip when its tail is this much longer.
const SENDER_LATE: f64 = 1.5;

/// Limits of what was measured.
pub(crate) fn cautions(report: &Report) -> Vec<Finding> {
    let mut all: Vec<Finding> = [sender_late(report), clustered(report), too_narrow(report), not_possible(report)]
        .into_iter()
        .flatten()
        .collect();
    all.extend(warm_up::finding_of(report));
    all.extend(tail_estimate::findings(report));
    all.extend(proof::findings(report));
    all.extend(loads::beside(report));
    all.extend(patterns::finding_of(report));
    all.extend(starved::findings(report));
    all.extend(host_settings::told(report));
    all.extend(idle_states(report));
    all
}

/// Where the rate varies: how deep CPUs fall asleep between two messages is part of every low rate.
fn idle_states(report: &Report) -> Option<Finding> {
    let mut rates = report.conditions.iter().map(|c| c.period_ns);
    let first = rates.next()?;
    if rates.all(|rate| rate == first) {
        return None;
    }
    let words = |host: &crate::circumstances::Host| {
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
        "The rate varies, and at low rates CPUs fall asleep between two messages. Idle states of {}.",
        hosts.join("; of ")
    );
    Some(Finding { evidence: "facts".into(), ..finding(FindingLevel::Caution, "idle_states", text, &[]) })
}

/// Where the sender's own lateness makes the tail, told for the worst of such conditions.
fn sender_late(report: &Report) -> Option<Finding> {
    let mut late: Vec<(&ConditionReport, f64, i64, i64)> = report.conditions.iter().filter_map(lateness).collect();
    late.sort_by_key(|(_, _, counted, _)| std::cmp::Reverse(*counted));
    let (condition, q, counted, sent) = late.first()?;
    let several = match late.len() {
        1 => String::new(),
        n => format!(" in {n} conditions, here in the worst"),
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

/// The tail counted from when messages were due, and from when they were sent, where the two differ.
fn lateness(condition: &ConditionReport) -> Option<(&ConditionReport, f64, i64, i64)> {
    let tail = tail_quantile(condition.from_intended.as_ref()?)?;
    let (q, counted) = (tail.q(), tail.value_ns()?);
    let sent = condition.round_trip.as_ref()?.quantile(q)?.value_ns()?;
    (counted as f64 >= SENDER_LATE * sent as f64).then_some((condition, q, counted, sent))
}

/// Below this share of the messages their worth is told.
const CLUSTERED: f64 = 0.5;

/// Where messages come in clusters: what they are worth, told for the worst of such conditions.
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
        "Late messages come in clusters{several}, and intervals are wider for it: for {} the {} messages of {} are worth \
         {} independent ones.",
        label(q),
        count(n),
        report.conditions[worst].name,
        count(worth),
    );
    Some(finding(FindingLevel::Caution, "clustered", text, &ids))
}

/// Where intervals are narrower than they ought to be all the same.
fn too_narrow(report: &Report) -> Option<Finding> {
    let marked = |m: &MetricReport| {
        let mark = |q: &&QuantileReport| matches!(q, QuantileReport::Value { too_narrow: true, .. });
        m.quantiles.iter().find(mark).map(QuantileReport::q)
    };
    let found: Vec<(&ConditionReport, f64)> =
        report.conditions.iter().filter_map(|c| Some((c, c.round_trip.as_ref().and_then(marked)?))).collect();
    let (first, q) = found.first()?;
    let text = format!(
        "Intervals marked ~, such as that of {} for {}, are narrower than they ought to be: messages depend on each other \
         for too long, or trials differ. Longer trials, or five and more of them, tell.",
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

/// What would give more: one sentence per quantile that lacks messages.
pub(crate) fn hints(report: &Report) -> Vec<Finding> {
    report.view.quantiles.iter().filter_map(|q| needs_more(report, *q)).collect()
}

fn needs_more(report: &Report, q: f64) -> Option<Finding> {
    let lacking: Vec<(&ConditionReport, u64)> = report
        .conditions
        .iter()
        // The pings of a flow follow from what it sends: no number of slots can be asked for.
        .filter(|c| c.flow.is_none())
        .filter_map(|c| match c.round_trip.as_ref()?.quantile(q)? {
            QuantileReport::Needs { needs, .. } => Some((c, *needs)),
            _ => None,
        })
        .collect();
    let needs = lacking.iter().map(|(_, needs)| *needs).max()?;
    let slots = |c: &ConditionReport, needs: u64| round_up(needs.div_ceil(c.used_trial_ids.len().max(1) as u64));
    let enough = lacking.iter().map(|(c, needs)| slots(c, *needs)).max()?;
    let (least, most) =
        lacking.iter().map(|(c, _)| c.counts.scheduled).fold((u64::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
    let has = match (lacking.len(), least == most) {
        (1, _) => format!("{} has {}", lacking[0].0.name, count(most)),
        (n, true) => format!("{} have {} each", conditions(n, report), count(most)),
        (n, false) => format!("{} have {} to {}", conditions(n, report), count(least), count(most)),
    };
    let duration = lacking.iter().filter_map(|(c, _)| per_slot_ns(c)).fold(0.0, f64::max) * enough as f64;
    let text = format!(
        "{} needs {} messages; {has}. `--set measure.slots={enough}` would give it ({} a trial).",
        label(q),
        count(needs),
        rough(duration)
    );
    let ids: Vec<usize> = lacking.iter().map(|(c, _)| c.id).collect();
    Some(Finding { evidence: "ladder".into(), ..finding(FindingLevel::Hint, "needs_more", text, &ids) })
}

fn conditions(n: usize, report: &Report) -> String {
    if n == report.conditions.len() { format!("the {n} conditions") } else { format!("{n} conditions") }
}

/// The period; for stop-and-wait the mean round trip.
fn per_slot_ns(condition: &ConditionReport) -> Option<f64> {
    condition.period_ns.map(|p| p as f64).or_else(|| condition.round_trip.as_ref()?.mean_ns)
}

/// Up to the next number with one digit that is not zero, or two where one would be a waste.
pub(crate) fn round_up(n: u64) -> u64 {
    let digits = n.checked_ilog10().unwrap_or(0);
    let to = |kept: u32| n.next_multiple_of(10u64.pow(digits.saturating_sub(kept - 1)));
    if to(1) <= n + n / 8 { to(1) } else { to(2) }
}

fn rough(ns: f64) -> String {
    match ns / 1e9 {
        s if s < 1.0 => "under a second".into(),
        s if s < 120.0 => format!("{}{THIN}s", s.round()),
        s if s < 7200.0 => format!("{}{THIN}min", (s / 60.0).round()),
        s => format!("{}{THIN}h", (s / 3600.0).round()),
    }
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn advice_is_a_round_number() {
        for (n, up) in [(368, 400), (3_688, 4_000), (36_887, 40_000), (12_296, 13_000), (1, 1), (99, 100)] {
            assert_eq!(round_up(n), up, "{n}");
        }
    }
}
