//! Formats a report as JSON text, and makes its JSON Schema.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tailbound_document::Report;

/// Formats a report as indented JSON; a list without objects, such as a histogram, stays on one line.
pub fn render_json(report: &Report) -> String {
    document(report)
}

/// Formats any document (a report or a comparison) as indented JSON.
pub(crate) fn document(document: &impl Serialize) -> String {
    let value = serde_json::to_value(document).expect("every value of a report can be written as JSON");
    let mut text = String::new();
    indented(&value, 0, &mut text);
    text.push('\n');
    text
}

/// Formats a report as JSON on one line.
pub(crate) fn compact(report: &Report) -> String {
    serde_json::to_string(report).expect("every value of a report can be written as JSON")
}

fn indented(value: &Value, depth: usize, text: &mut String) {
    let (open, close, members): (_, _, Vec<(Option<&String>, &Value)>) = match value {
        Value::Object(members) if !members.is_empty() => {
            ('{', '}', members.iter().map(|(k, v)| (Some(k), v)).collect())
        }
        Value::Array(members) if members.iter().any(Value::is_object) => {
            ('[', ']', members.iter().map(|v| (None, v)).collect())
        }
        flat => return text.push_str(&flat.to_string()),
    };
    text.push(open);
    for (i, (key, member)) in members.into_iter().enumerate() {
        text.push_str(if i > 0 { ",\n" } else { "\n" });
        text.push_str(&"  ".repeat(depth + 1));
        if let Some(key) = key {
            text.push_str(&Value::from(key.as_str()).to_string());
            text.push_str(": ");
        }
        indented(member, depth + 1, text);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
    text.push(close);
}

/// The JSON Schema of the report document, as committed in `schema/report.json`.
pub fn schema() -> String {
    schema_of::<Report>("report")
}

/// Makes the JSON Schema of any type of document (a report, a comparison, what was seen on the wire) as text. `name` is in its
/// identity.
pub(crate) fn schema_of<T: JsonSchema>(name: &str) -> String {
    let mut schema = serde_json::to_value(schemars::schema_for!(T)).expect("a schema is JSON");
    schema["$id"] = format!("urn:tailbound:schema:{name}:1").into();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}
