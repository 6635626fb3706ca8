//! Makes the JSON Schema of budget files.

use crate::budget::metrics;
use serde_json::{Value, json};
use tailbound_model::{COMPARED_STATISTICS, FLOW_STATISTICS, LOST, MISSES, MissWindow, ON_WIRE, THROUGHPUT};

/// The JSON Schema (draft 2020-12) of the budget file, as committed in `schema/budget.json`.
pub fn budget_schema() -> Value {
    let duration = json!({ "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|min|h)$",
        "examples": ["500 us", "2 ms"] });
    let share = r"[0-9]+(\.[0-9]+)? ?%";
    let rate = |unit: &str| {
        json!({ "type": ["number", "string"], "exclusiveMinimum": 0,
        "pattern": format!(r"^[0-9]+(\.[0-9]+)?{unit}$") })
    };
    let lost = json!({ "type": "string", "pattern": format!("^(none|{share})$"), "examples": ["0.1 %", "none"] });
    let quantile = r"^p[0-9]{1,2}(\.[0-9]{1,13})?$";
    let limits = json!({ "type": "object", "minProperties": 1, "additionalProperties": false,
        "description": "Largest allowed values of the statistics of this metric.",
        "properties": {
            "max": { "description": "Largest allowed maximum of the answered messages.", "type": "string",
                "pattern": duration["pattern"] },
            "mean": { "description": "Largest allowed mean of the answered messages. The interval needs at least five trials.",
                "type": "string", "pattern": duration["pattern"] },
            "lost": described(&lost, "Largest allowed share of messages that are never answered. `none` means that every message must be answered.") },
        "patternProperties": { quantile: duration } });
    let flow = json!({ "type": "object", "minProperties": 1, "additionalProperties": false,
        "description": "Limits for a flow, at its slowest subscriber.",
        "properties": {
            "samples/s": described(&rate(""), "Smallest allowed number of samples per second."),
            "Mbit/s": described(&rate(r"( ?[kMG]bit/s)?"), "Smallest allowed payload rate in Mbit/s."),
            "lost": described(&lost, "Largest allowed share of lost samples, over all subscribers together, or `none`.") } });
    let known = [&COMPARED_STATISTICS[..], &[LOST]].concat();
    let compared = json!({ "type": "array", "minItems": 1, "items": { "enum": known },
        "description": "Statistics of this metric that may not become worse." });
    let of_metrics = |each: &Value| metrics().into_iter().map(|m| (m.to_owned(), each.clone())).collect::<Vec<_>>();
    let mut set = json!({
        "where": { "description": "Levels that a condition must have; if absent, the limits apply to every condition.",
            "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } } });
    set.as_object_mut().expect("a map").extend(of_metrics(&limits));
    set[THROUGHPUT] = flow;
    set[MISSES] = misses(&duration);
    set[ON_WIRE] = json!({ "type": "object", "minProperties": 1, "additionalProperties": false,
        "description": "Limits for the samples of each topic of a capture (`tailbound watch --out`); `where` selects by `topic`.",
        "properties": {
            "max": described(&duration, "Largest allowed lateness on the wire."),
            "lost": described(&lost, "Largest allowed share of samples that a reader asked for and never got, or `none`."),
            "samples/s": described(&rate(""), "Smallest allowed number of samples per second, of all writers together.") },
        "patternProperties": { quantile: duration } });
    let mut baseline = json!({
        "record": { "description": "Path of the baseline record, relative to this file; `--baseline` can give it too.",
            "type": "string" },
        "tolerance": { "description": "Allowed relative change of each statistic against the baseline record.", "type": "string",
            "pattern": format!("^{share}$"), "examples": ["5 %"] } });
    baseline.as_object_mut().expect("a map").extend(of_metrics(&compared));
    baseline[THROUGHPUT] = json!({ "type": "array", "minItems": 1, "items": { "enum": FLOW_STATISTICS },
        "description": "Statistics of flows that may not become worse." });
    json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tailbound:schema:budget:1", "title": "Budget",
        "description": "A budget: limits that a record must keep. `tailbound budget` reads this file.",
        "type": "object", "additionalProperties": false,
        "anyOf": [{ "required": ["limits"] }, { "required": ["baseline"] }],
        "properties": {
            "budget": { "description": "Name of the budget; if absent, the name of the file.", "type": "string" },
            "limits": { "description": "Absolute limits.", "type": "array",
                "items": { "type": "object", "additionalProperties": false, "properties": set } },
            "baseline": { "description": "Limits relative to a baseline record.", "type": "object",
                "additionalProperties": false, "required": ["tolerance"], "properties": baseline } } })
}

/// Schema of the limits for runs of late and lost messages.
fn misses(duration: &Value) -> Value {
    let whole = |least: u32| json!({ "type": "integer", "minimum": least });
    let window = json!({ "type": "object", "additionalProperties": false, "required": ["m", "k"],
        "description": "Windows of k consecutive messages, of which at most m may be late or lost.",
        "properties": {
            "m": described(&whole(0), "Largest number of late or lost messages that a window may have; less than k."),
            "k": { "description": "Number of consecutive messages in a window.", "type": "integer", "minimum": 1,
                "maximum": MissWindow::LONGEST },
            "violated_windows": described(&whole(0), "Largest allowed number of windows with more than m late or lost messages; if absent, 0.") } });
    json!({ "type": "object", "minProperties": 1, "additionalProperties": false,
        "description": "Limits for runs of late and lost messages.",
        "properties": {
            "late_above": described(duration, "A message is late above this limit; if absent, by the rule of the report."),
            "longest_run": described(&whole(0), "Largest allowed number of consecutive messages that are late or lost."),
            "m_of_k": window,
            "recovery": described(duration, "Longest allowed time from the first late or lost message to the first of k (10 without `m_of_k`) consecutive messages on time.") } })
}

fn described(what: &Value, as_what: &str) -> Value {
    let mut what = what.clone();
    what["description"] = as_what.into();
    what
}
