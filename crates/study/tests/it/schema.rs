//! Tests that the committed JSON Schema of studies is the schema of the Rust types.

use std::path::Path;
use tailbound_study::{budget_schema, schema};

#[test]
fn committed_schema_is_current() {
    for (name, schema) in [("study", schema()), ("budget", budget_schema())] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../schema/{name}.json"));
        let generated = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("TAILBOUND_REGENERATE").is_some() {
            std::fs::write(&path, &generated).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == generated, "schema/{name}.json is old: run with TAILBOUND_REGENERATE=1");
    }
}

#[test]
fn no_key_may_be_null_and_every_key_is_described() {
    fn walk(value: &serde_json::Value, at: &str) {
        match value {
            serde_json::Value::Object(map) => {
                for (key, property) in map.get("properties").and_then(|p| p.as_object()).into_iter().flatten() {
                    let described = property.get("description").is_some() || at.ends_with("oneOf");
                    assert!(described || property.get("$ref").is_some(), "{at}.{key} has no description");
                }
                map.iter().for_each(|(key, inner)| walk(inner, &format!("{at}.{key}")));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|inner| walk(inner, at)),
            other => assert_ne!(other, "null", "{at}"),
        }
    }
    walk(&schema(), "");
    walk(&budget_schema(), "");
}
