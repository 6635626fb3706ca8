//! Table of the publisher's writer, as the driver reports it: limit of unacknowledged messages, retransmissions, and
//! waiting time. The data are read from the middleware after each trial.

use crate::tables::value_column::ValueColumn;
use serde_json::Value;
use std::collections::BTreeMap;
use tailbound_document::number::{Unit, count, three_digits};
use tailbound_document::{FlowReport, Report};

/// Title of the table about the publisher's writer, as the driver reports it.
pub(crate) const TITLE: &str = "the publisher's writer, as the driver reports it, over the whole flow: the limit of \
    unacknowledged messages (second line: in bytes), what was sent again, and how long the writer waited (second \
    line: how often)";

const LIMIT: &str = "unacked_limit";

/// What the driver reported about the writer in each trial of a condition.
fn answers(flow: &FlowReport) -> Vec<&Value> {
    flow.trials.iter().filter_map(|t| t.told.as_ref()).collect()
}

/// A figure of the publisher's writer over all trials: median, minimum and maximum.
fn numbers(answers: &[&Value], key: &str) -> Option<(f64, f64, f64)> {
    let mut all: Vec<f64> = answers.iter().filter_map(|a| a[key].as_f64()).collect();
    all.sort_unstable_by(f64::total_cmp);
    Some((all.get(all.len() / 2).copied()?, all[0], all[all.len() - 1]))
}

fn set((middle, low, high): (f64, f64, f64), text: impl Fn(f64) -> String) -> String {
    if low == high { text(middle) } else { format!("{} ({}-{})", text(middle), text(low), text(high)) }
}

/// Reason why a figure of the writer is missing. A reason that begins with `no` says that the middleware has no such
/// figure.
fn reason<'a>(answers: &[&'a Value], key: &str) -> Option<&'a str> {
    answers.iter().find_map(|a| a["by"][key].as_str())
}

fn absent(answers: &[&Value], key: &str) -> String {
    let none = reason(answers, key).is_some_and(|r| r.starts_with("no"));
    if none { "none" } else { "not told" }.to_owned()
}

/// Columns of the table of the writer; empty if no driver reported anything.
pub(crate) fn columns(report: &Report) -> Vec<ValueColumn> {
    let of: Vec<Vec<&Value>> =
        report.conditions.iter().map(|c| c.flow.as_ref().map_or_else(Vec::new, answers)).collect();
    if of.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let column = |head: &str, unit, cell: &dyn Fn(&[&Value]) -> (String, String)| ValueColumn {
        head: head.into(),
        unit,
        cells: of.iter().map(|a| if a.is_empty() { Default::default() } else { cell(a) }).collect(),
    };
    let word = |a: &[&Value], key: &str| {
        let mut words: Vec<&str> = a.iter().filter_map(|a| a[key].as_str()).collect();
        words.dedup();
        (words.join(", "), String::new())
    };
    let bytes = |v: f64| format!("{} B", count(v as u64));
    let whole = |v: f64| count(v as u64);
    let waited = of.iter().filter_map(|a| numbers(a, "throttled_ns"));
    let unit = Unit::of_all(waited.map(|n| n.0 as i64).filter(|ns| *ns > 0)).unwrap_or(Unit::Ms);
    vec![
        column("batching in force", "", &|a| word(a, "batching")),
        column("limit in force", "", &|a| {
            let text = numbers(a, LIMIT).map_or_else(|| absent(a, LIMIT), |n| set(n, whole));
            (text, numbers(a, "unacked_limit_bytes").map_or_else(String::new, |n| set(n, bytes)))
        }),
        column("data", "", &|a| word(a, "data")),
        column("sent again", "B", &|a| {
            let text = numbers(a, "retransmitted_bytes").map_or_else(|| absent(a, "retransmitted"), |n| set(n, whole));
            (text, String::new())
        }),
        column("waited", unit.name(), &|a| {
            let time = |v: f64| if v == 0.0 { "0".into() } else { unit.number(v) };
            let text = numbers(a, "throttled_ns").map_or_else(|| absent(a, "throttled"), |n| set(n, time));
            let times = numbers(a, "throttled_times").filter(|n| n.2 > 0.0);
            (text, times.map_or_else(String::new, |n| set(n, |v| format!("{} x", three_digits(v)))))
        }),
    ]
}

/// Lists the reasons why figures of the writer are missing. Each reason occurs once, with the number of conditions that
/// have this reason.
pub(crate) fn notes(report: &Report) -> Vec<String> {
    const FIGURES: [(&str, &str, &str); 3] = [
        (LIMIT, LIMIT, "limit in force"),
        ("retransmitted", "retransmitted_bytes", "sent again"),
        ("throttled", "throttled_ns", "waited"),
    ];
    let mut notes: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for flow in report.conditions.iter().filter_map(|c| c.flow.as_ref()) {
        let answers = answers(flow);
        for (i, (key, figure, _)) in FIGURES.iter().enumerate() {
            let why = reason(&answers, key).filter(|_| numbers(&answers, figure).is_none());
            if let Some(why) = why {
                *notes.entry((i, why.to_owned())).or_default() += 1;
            }
        }
    }
    let plural = |n| if n == 1 { "1 condition".to_owned() } else { format!("{n} conditions") };
    notes.into_iter().map(|((i, why), n)| format!("{}, {}: {why}", FIGURES[i].2, plural(n))).collect()
}
