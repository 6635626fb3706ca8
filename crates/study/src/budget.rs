//! Budget files: the same YAML with places as studies, read into [`Budget`].
//!
//! Metrics and quantiles are keys, so the tree is read as it is: every fault names the very key or value.

use crate::error::{Fault, StudyError, advice};
use crate::source::{MAX_TEXT, Pos, Source, Sources};
use crate::tree::{self, Key, Kind, Node};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::{AtMost, BaselineBudget, Budget, COMPARED_STATISTICS, Limit, LimitSet, Metric, Nanos};

/// Loads a budget file.
pub fn load_budget(path: &Path) -> Result<Budget, StudyError> {
    let name = path.display().to_string();
    let unreadable = |reason: String| StudyError::unreadable(&name, reason, None);
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(format!("cannot be read: {e}")))?;
    load_budget_str(&name, &text)
}

/// Loads a budget from its text; `name` stands for the file in errors.
pub fn load_budget_str(name: &str, text: &str) -> Result<Budget, StudyError> {
    if text.len() > MAX_TEXT {
        return Err(StudyError::unreadable(name, "too large for a budget".into(), None));
    }
    let sources = Sources(vec![Source { name: name.into(), text: text.into() }]);
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    tree::parse(text, 0).and_then(|root| budget(&root, stem)).map_err(|fault| fault.in_sources(&sources))
}

fn budget(root: &Node, stem: String) -> Result<Budget, Fault> {
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
    let mut set = LimitSet { levels: BTreeMap::new(), limits: Vec::new() };
    for (key, node) in map(node)? {
        if key.text == "where" {
            for (factor, level) in map(node)? {
                set.levels.insert(factor.text.clone(), text(level)?.to_owned());
            }
            continue;
        }
        let metric = metric(key, &["where"])?;
        for (statistic, value) in map(node)? {
            set.limits.push(Limit { metric, at_most: at_most(statistic, value)? });
        }
    }
    match set.limits.is_empty() {
        true => Err(Fault::new(node.at, "nothing is limited here").help("for example `round_trip: { p99: 500 us }`")),
        false => Ok(set),
    }
}

fn at_most(key: &Key, value: &Node) -> Result<AtMost, Fault> {
    match key.text.as_str() {
        "max" => Ok(AtMost::Max(duration(value)?)),
        "lost" if text(value)?.trim() == "none" => Ok(AtMost::Lost(None)),
        "lost" => Ok(AtMost::Lost(Some(share(value, "`none` or a share such as `0.1 %`")?))),
        label if is_quantile(label) => Ok(AtMost::Quantile(label.to_owned(), duration(value)?)),
        "mean" => Err(Fault::new(key.at, "a mean has no absolute limit: its interval is one of trials")
            .help("limit a quantile, or the mean against a `baseline`")),
        _ => Err(unknown(key, &["p50", "p99", "p99.9", "p99.99", "max", "lost"])),
    }
}

/// `p99.9`: between 0 and 100, with as many decimals as the statistics keep.
fn is_quantile(label: &str) -> bool {
    let Some(number) = label.strip_prefix('p') else { return false };
    let decimals = number.split_once('.').map_or(0, |(_, d)| d.len());
    let digits = number.bytes().all(|b| b.is_ascii_digit() || b == b'.') && !number.is_empty();
    digits && decimals <= 13 && number.parse::<f64>().is_ok_and(|n| n > 0.0 && n < 100.0)
}

fn baseline(node: &Node) -> Result<BaselineBudget, Fault> {
    let mut budget = BaselineBudget { record: None, tolerance: 0.0, statistics: Vec::new() };
    let mut tolerance = None;
    for (key, node) in map(node)? {
        match key.text.as_str() {
            "record" => budget.record = Some(text(node)?.to_owned()),
            "tolerance" => tolerance = Some(share(node, "a share such as `5 %`")?),
            _ => {
                let metric = metric(key, &["record", "tolerance"])?;
                budget.statistics.push((metric, statistics(node)?));
            }
        }
    }
    budget.tolerance =
        tolerance.ok_or_else(|| Fault::new(node.at, "`tolerance` is missing").help("for example `tolerance: 5 %`"))?;
    if budget.statistics.is_empty() {
        return Err(Fault::new(node.at, "no metric is compared").help("for example `round_trip: [p50, p99]`"));
    }
    Ok(budget)
}

fn statistics(node: &Node) -> Result<Vec<String>, Fault> {
    let Kind::List(items) = &node.kind else {
        let known = COMPARED_STATISTICS.join(", ");
        return Err(Fault::new(node.at, format!("expected a list, found {}", node.what())).help(format!("of: {known}")));
    };
    let one = |item: &Node| {
        let word = text(item)?;
        match COMPARED_STATISTICS.contains(&word) {
            true => Ok(word.to_owned()),
            false => {
                Err(Fault::new(item.at, format!("`{word}` is not compared")).help(advice(word, &COMPARED_STATISTICS)))
            }
        }
    };
    items.iter().map(one).collect()
}

fn metric(key: &Key, others: &[&str]) -> Result<Metric, Fault> {
    let known = |m: &Metric| *m != Metric::HalfRoundTrip && m.key() == key.text;
    Metric::ALL.into_iter().find(known).ok_or_else(|| {
        let keys = metrics();
        unknown(key, &[others, &keys].concat())
    })
}

/// Half a round trip is a figure of location only.
fn metrics() -> Vec<&'static str> {
    Metric::ALL.into_iter().filter(|m| *m != Metric::HalfRoundTrip).map(Metric::key).collect()
}

fn unknown(key: &Key, known: &[&str]) -> Fault {
    Fault::new(key.at, format!("`{}` is not a key here", key.text)).help(advice(&key.text, known))
}

fn map(node: &Node) -> Result<&[(Key, Node)], Fault> {
    match &node.kind {
        Kind::Map(entries) => Ok(entries),
        _ => Err(Fault::new(node.at, format!("expected a map of keys, found {}", node.what()))),
    }
}

fn text(node: &Node) -> Result<&str, Fault> {
    node.text().ok_or_else(|| Fault::new(node.at, format!("expected a single value, found {}", node.what())))
}

fn duration(node: &Node) -> Result<Nanos, Fault> {
    let parsed = text(node)?.parse().map_err(|e: tailbound_model::UnitError| fault_of(node.at, e.to_string()))?;
    match parsed {
        Nanos(..=0) => Err(Fault::new(node.at, "a limit of nothing cannot be kept")),
        limit => Ok(limit),
    }
}

/// `0.1 %` as a fraction.
fn share(node: &Node, wanted: &str) -> Result<f64, Fault> {
    let given = text(node)?;
    let number = given.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    match number.filter(|n| *n > 0.0 && *n <= 100.0) {
        Some(per_cent) => Ok(per_cent / 100.0),
        None => Err(Fault::new(node.at, format!("`{given}` is not {wanted}")).help("above 0 % and at most 100 %")),
    }
}

/// Reason and advice are separated by `; ` in errors of units.
fn fault_of(at: Pos, text: String) -> Fault {
    match text.split_once("; ") {
        Some((reason, help)) => Fault::new(at, reason).help(help),
        None => Fault::new(at, text),
    }
}

/// The JSON Schema (draft 2020-12) of the budget file, as committed in `schema/budget.json`.
pub fn budget_schema() -> Value {
    let duration = json!({ "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|min|h)$",
        "examples": ["500 us", "2 ms"] });
    let share = r"[0-9]+(\.[0-9]+)? ?%";
    let quantile = r"^p[0-9]{1,2}(\.[0-9]{1,13})?$";
    let limits = json!({ "type": "object", "minProperties": 1, "additionalProperties": false,
        "description": "What statistics of this metric may be at most.",
        "properties": {
            "max": { "description": "The maximum of the answered messages.", "type": "string",
                "pattern": duration["pattern"] },
            "lost": { "description": "Share of messages never answered, or `none`: not one of the record.",
                "type": "string", "pattern": format!("^(none|{share})$"), "examples": ["0.1 %", "none"] } },
        "patternProperties": { quantile: duration } });
    let compared = json!({ "type": "array", "minItems": 1, "items": { "enum": COMPARED_STATISTICS },
        "description": "Statistics of this metric that may not become worse." });
    let of_metrics = |each: &Value| metrics().into_iter().map(|m| (m.to_owned(), each.clone())).collect::<Vec<_>>();
    let mut set = json!({
        "where": { "description": "Levels that a condition must have; every condition when absent.",
            "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } } });
    set.as_object_mut().expect("a map").extend(of_metrics(&limits));
    let mut baseline = json!({
        "record": { "description": "The record to compare with, relative to this file; or `--baseline`.",
            "type": "string" },
        "tolerance": { "description": "By how much a statistic may be larger.", "type": "string",
            "pattern": format!("^{share}$"), "examples": ["5 %"] } });
    baseline.as_object_mut().expect("a map").extend(of_metrics(&compared));
    json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Budget",
        "description": "What a result must keep. Read by `tailbound budget`.",
        "type": "object", "additionalProperties": false,
        "anyOf": [{ "required": ["limits"] }, { "required": ["baseline"] }],
        "properties": {
            "budget": { "description": "Name; the file's when absent.", "type": "string" },
            "limits": { "description": "Absolute limits.", "type": "array",
                "items": { "type": "object", "additionalProperties": false, "properties": set } },
            "baseline": { "description": "Limits relative to another record.", "type": "object",
                "additionalProperties": false, "required": ["tolerance"], "properties": baseline } } })
}
