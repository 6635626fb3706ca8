//! The JSON Schema of the study file, generated from the types.

use crate::format::StudyFile;
use serde_json::{Map, Value, json};

/// The JSON Schema (draft 2020-12) of the study file, as committed in `schema/study.json`.
pub fn schema() -> Value {
    let mut root = schemars::schema_for!(StudyFile).to_value();
    strip_null(&mut root);
    root["$id"] = "urn:tailbound:schema:study:1".into();
    let definitions = root.get("$defs").cloned().unwrap_or_default();
    allow_bare_words(&mut root, &definitions);
    root
}

/// Removes `null` from the schema, because an optional key of the study format is left out and never `null`.
fn strip_null(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip_null),
        Value::Object(map) => {
            map.values_mut().for_each(strip_null);
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            let Some(Value::Array(mut any)) = map.get("anyOf").cloned() else { return };
            any.retain(|one| *one != json!({ "type": "null" }));
            if let [Value::Object(only)] = any.as_slice() {
                map.remove("anyOf");
                for (key, value) in only {
                    map.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        _ => {}
    }
}

/// Allows a bare word in the schema for a choice whose options may all be absent.
fn allow_bare_words(value: &mut Value, definitions: &Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| allow_bare_words(item, definitions)),
        Value::Object(map) => {
            map.values_mut().for_each(|inner| allow_bare_words(inner, definitions));
            let Some(Value::Array(variants)) = map.get_mut("oneOf") else { return };
            let words: Vec<Value> =
                variants.iter().filter_map(Value::as_object).filter_map(|v| bare_word(v, definitions)).collect();
            variants.extend(words);
        }
        _ => {}
    }
}

fn bare_word(variant: &Map<String, Value>, definitions: &Value) -> Option<Value> {
    let (word, content) = tagged(variant)?;
    let content = resolve(content, definitions);
    let object = content.get("type").is_some_and(|t| t == "object");
    if !object || content.get("required").is_some() {
        return None;
    }
    let about = variant.get("description").and_then(Value::as_str).unwrap_or("");
    Some(json!({ "description": format!("{about} Without options."), "const": word }))
}

/// The word and the content of a variant that is written as a map with one key.
pub(crate) fn tagged(variant: &Map<String, Value>) -> Option<(&str, &Value)> {
    let required = variant.get("required")?.as_array()?;
    let [Value::String(word)] = required.as_slice() else { return None };
    let properties = variant.get("properties")?.as_object()?;
    // If there are other properties, this property is one of the keys of a map.
    if properties.len() > 1 { None } else { Some((word, properties.get(word)?)) }
}

/// Returns the definition to which a `$ref` of the schema refers; any other value is returned unchanged.
pub(crate) fn resolve<'a>(value: &'a Value, definitions: &'a Value) -> &'a Value {
    let name = value.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/$defs/"));
    name.and_then(|name| definitions.get(name)).unwrap_or(value)
}
