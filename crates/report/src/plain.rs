//! Makes the texts of a document safe for a terminal: characters that would control a terminal are replaced.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Replaces the characters that would control a terminal in every text of a document, whichever file the text came
/// from.
pub(crate) fn plain<T: Serialize + DeserializeOwned>(report: &T) -> T {
    let document = serde_json::to_value(report).expect("every value of a report can be written as JSON");
    serde_json::from_value(texts(document)).expect("the JSON of a report can be read as a report")
}

fn texts(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(tailbound_model::plain(&text)),
        Value::Array(members) => members.into_iter().map(texts).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, member)| (tailbound_model::plain(&key), texts(member))).collect()
        }
        other => other,
    }
}
