//! Causes in sentences.

use super::judge::Leg;
use super::{Cause, CauseKind, TOLD};
use crate::condition::{ConditionReport, Message};
use crate::number::{self, count};
use std::collections::BTreeMap;
use tailbound_model::Metric;

pub(super) fn time(ns: i64) -> String {
    number::time(ns as f64)
}

pub(super) fn leg_key(metric: Metric) -> &'static str {
    match metric {
        Metric::SendLateness => "send_lateness",
        Metric::Out => "out",
        Metric::Turnaround => "turnaround",
        Metric::Back => "back",
        _ => "round_trip",
    }
}

/// `slot 12 took 5.1 ms, 5 ms of it on the way out: ...`
pub(super) fn sentence(message: &Message, leg: &Leg, text: &str) -> String {
    let place = match leg.metric {
        Metric::SendLateness => "before it was sent",
        Metric::Out => "on the way out",
        Metric::Turnaround => "at the pong",
        Metric::Back => "on the way back",
        _ => "between sending and its answer",
    };
    let whole = message.from_intended_ns.or(message.round_trip_ns).unwrap_or(0);
    format!("slot {} took {}, {} of it {place}: {text}", count(message.slot), time(whole), time(leg.took_ns))
}

/// What the worst messages of a condition come to.
pub(super) fn total(condition: &ConditionReport) -> Option<String> {
    let explained = condition.explained?;
    let causes: Vec<&Cause> = condition.worst.iter().take(TOLD).filter_map(|m| m.cause.as_ref()).collect();
    let share = 100.0 * explained.explained_ns as f64 / explained.excess_ns.max(1) as f64;
    let mut text = format!(
        "{}: of the {} that the worst {} took beyond the medians, {share:.0} % are explained, {:.0} % are not",
        condition.name,
        time(explained.excess_ns),
        condition.worst.len().min(TOLD),
        100.0 - share,
    );
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for cause in causes.iter().filter(|c| c.kind != CauseKind::Unexplained) {
        *counts.entry(short(cause)).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let counts: Vec<String> = counts
        .iter()
        .map(|(what, n)| if *n == 1 { format!("once {what}") } else { format!("{n} times {what}") })
        .collect();
    if !counts.is_empty() {
        text.push_str(&format!(". Causes: {}", counts.join(", ")));
    }
    text.push('.');
    Some(text)
}

fn short(cause: &Cause) -> String {
    let thread = cause.thread.as_deref().unwrap_or("a thread");
    let end = cause.end.as_deref().unwrap_or("an");
    match cause.kind {
        CauseKind::Waited => {
            let cpu = cause.cpu.map_or(String::new(), |c| format!(" CPU {c}"));
            let instead = cause.instead.as_ref().map_or(String::new(), |i| format!(", which `{i}` had"));
            format!("`{thread}` of the {end} end waited for{cpu}{instead}")
        }
        CauseKind::Stopped => format!("the process of the {end} end was stopped"),
        CauseKind::Blocked => format!("`{thread}` of the {end} end was blocked in the driver"),
        CauseKind::Unexplained => "nothing that was seen".into(),
    }
}
