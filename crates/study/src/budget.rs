//! Budget files: YAML with positions as in studies, read into [`Budget`].
//!
//! Metrics and quantiles are keys of the file, so the YAML tree itself is read, and every error has the position of the
//! key or value.

use crate::error::{Fault, StudyError, advice};
use crate::miss_window;
use crate::read::At;
use crate::source::{MAX_TEXT, Source, Sources};
use crate::tree::{self, Key, Kind, Node};
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::{
    AtMost, BaselineBudget, Budget, COMPARED_STATISTICS, FLOW_STATISTICS, FlowLimit, LOST, Limit, LimitSet, MISSES,
    Metric, MissWindow, MissesLimit, MissesLimits, Nanos, ON_WIRE, THROUGHPUT, WireLimit,
};

/// Loads a budget file (limits that a record must keep).
pub fn load_budget(path: &Path) -> Result<Budget, StudyError> {
    load_budget_str(&path.display().to_string(), &read(path)?)
}

/// Reads the text of a budget file.
pub(crate) fn read(path: &Path) -> Result<String, StudyError> {
    std::fs::read_to_string(path).map_err(|e| {
        let (reason, help) = match e.kind() {
            std::io::ErrorKind::NotFound => ("no such file".to_owned(), "name a budget file (.yaml)"),
            std::io::ErrorKind::IsADirectory => ("it is a directory".to_owned(), "name a budget file (.yaml) in it"),
            _ => (e.to_string(), "name a budget file that can be read"),
        };
        StudyError::unreadable(&path.display().to_string(), format!("cannot be read: {reason}"), help)
    })
}

/// Loads a budget from its text; error messages call the file `name`.
pub fn load_budget_str(name: &str, text: &str) -> Result<Budget, StudyError> {
    parsed(name, text, budget)
}

/// What `of` makes of the tree of a budget's text and of the file's name without its ending.
pub(crate) fn parsed<T>(
    name: &str,
    text: &str,
    of: impl Fn(&Node, String) -> Result<T, Fault>,
) -> Result<T, StudyError> {
    if text.len() > MAX_TEXT {
        return Err(StudyError::unreadable(name, "too large for a budget", ""));
    }
    let sources = Sources(vec![Source { name: name.into(), text: text.into() }]);
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    tree::parse(text, 0).and_then(|root| of(&root, stem)).map_err(|fault| fault.in_sources(&sources))
}

pub(crate) fn budget(root: &Node, stem: String) -> Result<Budget, Fault> {
    let mut budget = Budget { name: stem, limits: Vec::new(), baseline: None };
    for (key, node) in map(root)? {
        match key.text.as_str() {
            "budget" => budget.name = text(node)?.trim().to_owned(),
            "limits" => match &node.kind {
                Kind::List(sets) => budget.limits = sets.iter().map(limit_set).collect::<Result<_, _>>()?,
                _ => return Err(Fault::new(node.at, format!("expected a list of limits, found {}", node.what()))),
            },
            "baseline" => budget.baseline = Some(baseline(node)?),
            _ => return Err(unknown(key, &["budget", "limits", "baseline"])),
        }
    }
    if budget.limits.is_empty() && budget.baseline.is_none() {
        return Err(Fault::new(root.at, "the budget limits nothing").help("add `limits` or `baseline`"));
    }
    Ok(budget)
}

fn limit_set(node: &Node) -> Result<LimitSet, Fault> {
    let mut set = LimitSet {
        levels: BTreeMap::new(),
        limits: Vec::new(),
        throughput: Vec::new(),
        misses: None,
        on_wire: Vec::new(),
    };
    for (key, node) in map(node)? {
        if key.text == "where" {
            for (factor, level) in map(node)? {
                set.levels.insert(factor.text.clone(), text(level)?.to_owned());
            }
            continue;
        }
        if key.text == THROUGHPUT {
            for (statistic, value) in map(node)? {
                set.throughput.push(of_flow(statistic, value)?);
            }
            continue;
        }
        if key.text == MISSES {
            set.misses = Some(misses(node)?);
            continue;
        }
        if key.text == ON_WIRE {
            for (statistic, value) in map(node)? {
                set.on_wire.push(on_wire(statistic, value)?);
            }
            continue;
        }
        let metric = metric(key, &["where", THROUGHPUT, MISSES, ON_WIRE])?;
        for (statistic, value) in map(node)? {
            set.limits.push(Limit { metric, at_most: at_most(statistic, value)? });
        }
    }
    let is_empty = set.limits.is_empty() && set.throughput.is_empty() && set.on_wire.is_empty();
    match is_empty && set.misses.is_none() {
        true => Err(Fault::new(node.at, "nothing is limited here").help("for example `round_trip: { p99: 500 us }`")),
        false => Ok(set),
    }
}

pub(crate) fn at_most(key: &Key, value: &Node) -> Result<AtMost, Fault> {
    match key.text.as_str() {
        "max" => Ok(AtMost::Max(duration(value)?)),
        "mean" => Ok(AtMost::Mean(duration(value)?)),
        LOST => Ok(AtMost::Lost(lost(value)?)),
        label if is_quantile(label) => Ok(AtMost::Quantile(label.to_owned(), duration(value)?)),
        _ => Err(unknown(key, &["p50", "p99", "p99.9", "p99.99", "mean", "max", LOST])),
    }
}

/// Reads one limit of a flow, e.g. `samples/s: 100000`, `Mbit/s: 800` or `lost: none`.
fn of_flow(key: &Key, value: &Node) -> Result<FlowLimit, Fault> {
    match key.text.as_str() {
        "samples/s" => {
            Ok(FlowLimit::SamplesPerSecond(number(value, &[("", 1.0)], "a number of samples, e.g. 100000")?))
        }
        "Mbit/s" => {
            let units = [("kbit/s", 1e-3), ("Mbit/s", 1.0), ("Gbit/s", 1e3), ("", 1.0)];
            Ok(FlowLimit::PayloadMbitPerSecond(number(value, &units, "a number of Mbit/s, e.g. 800 or 1.2 Gbit/s")?))
        }
        LOST => Ok(FlowLimit::Lost(lost(value)?)),
        _ => Err(unknown(key, &FLOW_STATISTICS)),
    }
}

/// Reads one limit for the topics of a capture, e.g. `p99: 5 ms`, `lost: none` or `samples/s: 9.5`.
fn on_wire(key: &Key, value: &Node) -> Result<WireLimit, Fault> {
    match key.text.as_str() {
        "samples/s" => Ok(WireLimit::SamplesPerSecond(number(value, &[("", 1.0)], "a number of samples, e.g. 9.5")?)),
        label if label == "max" || label == LOST || is_quantile(label) => Ok(WireLimit::AtMost(at_most(key, value)?)),
        _ => Err(unknown(key, &["p50", "p99", "p99.9", "max", LOST, "samples/s"])),
    }
}

/// Reads limits of runs of late and lost messages, e.g. `{ longest_run: 3, recovery: 50 ms }`.
fn misses(node: &Node) -> Result<MissesLimits, Fault> {
    let mut found = MissesLimits { late_above: None, window: MissWindow::default(), limits: Vec::new() };
    for (key, value) in map(node)? {
        match key.text.as_str() {
            "late_above" => found.late_above = Some(duration(value)?),
            "longest_run" => found.limits.push(MissesLimit::LongestRun(whole(value)?.value)),
            "m_of_k" => {
                let (window, violated) = m_of_k(value)?;
                found.window = window;
                found.limits.push(MissesLimit::ViolatedWindows(violated));
            }
            "recovery" => found.limits.push(MissesLimit::Recovery(duration(value)?)),
            _ => return Err(unknown(key, &["longest_run", "m_of_k", "recovery", "late_above"])),
        }
    }
    match found.limits.is_empty() {
        true => Err(Fault::new(node.at, "nothing is limited here").help("for example `misses: { longest_run: 3 }`")),
        false => Ok(found),
    }
}

/// Reads windows and the largest allowed number of violated ones, e.g. `{ m: 1, k: 10, violated_windows: 0 }`.
fn m_of_k(node: &Node) -> Result<(MissWindow, u64), Fault> {
    let (mut m, mut k, mut violated) = (None, None, 0);
    for (key, value) in map(node)? {
        match key.text.as_str() {
            "m" => m = Some(whole(value)?),
            "k" => k = Some(whole(value)?),
            "violated_windows" => violated = whole(value)?.value,
            _ => return Err(unknown(key, &["m", "k", "violated_windows"])),
        }
    }
    let missing = |key: &str| Fault::new(node.at, format!("`{key}` is missing")).help("for example `{ m: 1, k: 10 }`");
    let (m, k) = (m.ok_or_else(|| missing("m"))?, k.ok_or_else(|| missing("k"))?);
    Ok((miss_window::checked(&m, &k)?, violated))
}

/// Reads a whole number, 0 or more, with its position.
fn whole(node: &Node) -> Result<At<u64>, Fault> {
    let given = text(node)?.trim();
    match given.parse() {
        Ok(value) => Ok(At { at: node.at, value }),
        Err(_) => {
            Err(Fault::new(node.at, format!("`{given}` is not a whole number")).help("0 or more, for example `3`"))
        }
    }
}

/// Reads the share of lost messages; `None` means that no message may be lost.
fn lost(value: &Node) -> Result<Option<f64>, Fault> {
    match text(value)?.trim() {
        "none" => Ok(None),
        _ => share(value, "`none` or a share such as `0.1 %`").map(Some),
    }
}

/// Reads a number above zero with one of the given units.
fn number(node: &Node, units: &[(&str, f64)], wanted: &str) -> Result<f64, Fault> {
    let given = text(node)?.trim();
    let of = |(unit, factor): &(&str, f64)| given.strip_suffix(unit)?.trim().parse::<f64>().ok().map(|n| n * factor);
    match units.iter().find_map(of).filter(|n| n.is_finite() && *n > 0.0) {
        Some(n) => Ok(n),
        None => Err(Fault::new(node.at, format!("`{given}` is not {wanted}")).help("above 0")),
    }
}

/// True if the text is the label of a quantile such as `p99.9`: between 0 and 100, with at most 13 decimals.
fn is_quantile(label: &str) -> bool {
    let Some(number) = label.strip_prefix('p') else { return false };
    let decimals = number.split_once('.').map_or(0, |(_, d)| d.len());
    let digits = number.bytes().all(|b| b.is_ascii_digit() || b == b'.') && !number.is_empty();
    digits && decimals <= 13 && number.parse::<f64>().is_ok_and(|n| n > 0.0 && n < 100.0)
}

fn baseline(node: &Node) -> Result<BaselineBudget, Fault> {
    let mut budget = BaselineBudget { record: None, tolerance: 0.0, statistics: Vec::new(), throughput: Vec::new() };
    let mut tolerance = None;
    for (key, node) in map(node)? {
        match key.text.as_str() {
            "record" => budget.record = Some(text(node)?.to_owned()),
            "tolerance" => tolerance = Some(share(node, "a share such as `5 %`")?),
            THROUGHPUT => budget.throughput.extend(statistics(node, &FLOW_STATISTICS)?),
            _ => {
                let metric = metric(key, &["record", "tolerance", THROUGHPUT])?;
                let known = [&COMPARED_STATISTICS[..], &[LOST]].concat();
                budget.statistics.push((metric, statistics(node, &known)?));
            }
        }
    }
    budget.tolerance =
        tolerance.ok_or_else(|| Fault::new(node.at, "`tolerance` is missing").help("for example `tolerance: 5 %`"))?;
    if budget.statistics.is_empty() && budget.throughput.is_empty() {
        return Err(Fault::new(node.at, "no metric is compared").help("for example `round_trip: [p50, p99]`"));
    }
    Ok(budget)
}

fn statistics(node: &Node, known: &[&str]) -> Result<Vec<String>, Fault> {
    let Kind::List(items) = &node.kind else {
        let help = format!("of: {}", known.join(", "));
        return Err(Fault::new(node.at, format!("expected a list, found {}", node.what())).help(help));
    };
    let one = |item: &Node| {
        let word = text(item)?;
        match known.contains(&word) {
            true => Ok(word.to_owned()),
            false => Err(Fault::new(item.at, format!("`{word}` is not compared")).help(advice(word, known))),
        }
    };
    items.iter().map(one).collect()
}

pub(crate) fn metric(key: &Key, others: &[&str]) -> Result<Metric, Fault> {
    let known = |m: &Metric| *m != Metric::HalfRoundTrip && m.key() == key.text;
    Metric::ALL.into_iter().find(known).ok_or_else(|| {
        let keys = metrics();
        unknown(key, &[others, &keys].concat())
    })
}

/// Keys of all metrics that a budget can limit: all metrics except half of a round trip.
pub(crate) fn metrics() -> Vec<&'static str> {
    Metric::ALL.into_iter().filter(|m| *m != Metric::HalfRoundTrip).map(Metric::key).collect()
}

fn unknown(key: &Key, known: &[&str]) -> Fault {
    Fault::new(key.at, format!("`{}` is not a key here", key.text)).help(advice(&key.text, known))
}

pub(crate) fn map(node: &Node) -> Result<&[(Key, Node)], Fault> {
    match &node.kind {
        Kind::Map(entries) => Ok(entries),
        _ => Err(Fault::new(node.at, format!("expected a map of keys, found {}", node.what()))),
    }
}

fn text(node: &Node) -> Result<&str, Fault> {
    node.text().ok_or_else(|| Fault::new(node.at, format!("expected a single value, found {}", node.what())))
}

fn duration(node: &Node) -> Result<Nanos, Fault> {
    let parsed = text(node)?.parse().map_err(|problem| Fault { at: node.at, problem })?;
    match parsed {
        Nanos(..=0) => Err(Fault::new(node.at, "a limit must be above 0")),
        limit => Ok(limit),
    }
}

/// Reads a percentage such as `0.1 %` as a fraction.
fn share(node: &Node, wanted: &str) -> Result<f64, Fault> {
    let given = text(node)?;
    let number = given.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    match number.filter(|n| *n > 0.0 && *n <= 100.0) {
        Some(per_cent) => Ok(per_cent / 100.0),
        None => Err(Fault::new(node.at, format!("`{given}` is not {wanted}")).help("above 0 % and at most 100 %")),
    }
}
