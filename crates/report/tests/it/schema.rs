//! Tests that the committed schemas are the schemas of the Rust types, and that reports conform to them.

use crate::support::{Given, GivenTrial, lose, slot};
#[allow(dead_code)]
use serde_json::Value;
use tailbound_model::{Nanos, Rate};
use tailbound_record::TrialStatus;

/// Tests that the committed schemas are current. With `TAILBOUND_REGENERATE=1`, the test writes them again.
#[test]
fn schema_is_current() {
    let schemas = [
        ("report", tailbound_report::schema()),
        ("compare", tailbound_report::comparison_schema()),
        ("watch", tailbound_report::watch_schema()),
    ];
    for (name, made) in schemas {
        let path = format!("{}/../../schema/{name}.json", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("TAILBOUND_REGENERATE").is_some_and(|v| v == "1") {
            std::fs::write(&path, &made).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(made.contains(&format!("\"$id\": \"urn:tailbound:schema:{name}:1\"")), "{name}");
        assert!(committed == made, "schema/{name}.json is not current; run this test with TAILBOUND_REGENERATE=1");
    }
}

#[test]
fn a_report_keeps_to_the_schema() {
    let (mut slots, mut echoes) = (Vec::new(), Vec::new());
    for seq in 0..2_000 {
        let (mut row, echo) = slot(seq, 1_000_000, 1_000, [10_000, 5_000, 15_000 + seq as i64]);
        if seq % 50 == 7 {
            lose(&mut row);
        } else {
            echoes.push(echo);
        }
        slots.push(row);
    }
    let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: Some("a reason".into()) };
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(1_000_000)), trials: vec![trial] };
    let folder = tempfile::tempdir().unwrap();
    let record = crate::support::write(&folder.path().join("record"), &[given], |_| ());
    let options = tailbound_report::CompareOptions { metrics: vec![tailbound_model::Metric::RoundTrip], margin: None };
    let comparison = tailbound_report::compare_records(&record, &record, &options).unwrap();
    let compared: Value = serde_json::from_str(&tailbound_report::render_comparison_json(&comparison)).unwrap();
    let schema: Value = serde_json::from_str(&tailbound_report::comparison_schema()).unwrap();
    assert_eq!(validate(&compared, &schema, &schema), Ok(()));
    let mut wrong = compared;
    wrong["pairs"][0]["statistics"][0]["verdict"] = "better".into();
    assert!(validate(&wrong, &schema, &schema).is_err(), "the check checks");

    let report = tailbound_report::analyse(&record).unwrap();
    let document: Value = serde_json::from_str(&tailbound_report::render_json(&report)).unwrap();
    let schema: Value = serde_json::from_str(&tailbound_report::schema()).unwrap();
    assert_eq!(validate(&document, &schema, &schema), Ok(()));

    let mut wrong = document.clone();
    wrong["conditions"][0]["counts"]["lost"] = "many".into();
    assert!(validate(&wrong, &schema, &schema).is_err(), "the check checks");
    let mut wrong = document;
    wrong["conditions"][0]["round_trip"]["quantiles"][0].as_object_mut().unwrap().remove("q");
    assert!(validate(&wrong, &schema, &schema).is_err(), "the check checks");
}

/// Checks a value against a schema, for the part of JSON Schema that the generator uses.
fn validate(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let found = root.pointer(reference.trim_start_matches('#')).ok_or(format!("{reference} leads nowhere"))?;
        return validate(value, found, root);
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[choice].as_array() {
            let errors: Vec<String> = choices.iter().filter_map(|c| validate(value, c, root).err()).collect();
            return if errors.len() < choices.len() { Ok(()) } else { Err(errors.join(" | ")) };
        }
    }
    if let Some(wanted) = schema.get("const")
        && wanted != value
    {
        return Err(format!("{value} is not {wanted}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{value} is none of {words:?}"));
    }
    let types = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &&str| match *kind {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    if !types.is_empty() && !types.iter().any(is) {
        return Err(format!("{value} is not of {types:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(name).is_none() {
            return Err(format!("`{name}` is missing"));
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let part = schema["properties"].get(name).or(schema.get("additionalProperties"));
        if let Some(part) = part.filter(|p| p.is_object()) {
            validate(member, part, root).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        let part = schema["prefixItems"].get(i).or(schema.get("items"));
        if let Some(part) = part.filter(|p| p.is_object()) {
            validate(item, part, root).map_err(|e| format!("{i}: {e}"))?;
        }
    }
    Ok(())
}
