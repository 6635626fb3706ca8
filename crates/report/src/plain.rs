//! The document for forms that a terminal may show: no text of it holds anything that a terminal obeys.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The document with every text of it made plain, whatever file it came from.
pub(crate) fn plain<T: Serialize + DeserializeOwned>(report: &T) -> T {
    let document = serde_json::to_value(report).expect("a report holds nothing that JSON cannot");
    serde_json::from_value(texts(document)).expect("the document of a report is a report")
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
