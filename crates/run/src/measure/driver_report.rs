//! Reads the reports of a driver about its end points, for the record.

use std::collections::BTreeMap;
use tailbound_driver::{Endpoint, Session};

pub(super) fn json(session: &Session, ep: Endpoint, what: &str) -> Option<serde_json::Value> {
    serde_json::from_str(&session.query(ep, what).ok()?).ok()
}

/// Effective QoS of the writer and the reader of an end. If a value differs between them, the text names both values.
pub(super) fn qos(session: &Session, writer: Option<Endpoint>, reader: Option<Endpoint>) -> BTreeMap<String, String> {
    let read = |ep: Option<Endpoint>| -> BTreeMap<String, String> {
        let told = ep.and_then(|ep| json(session, ep, "qos"));
        let Some(serde_json::Value::Object(map)) = told else { return BTreeMap::new() };
        map.into_iter().map(|(k, v)| (k, v.as_str().map_or_else(|| v.to_string(), str::to_owned))).collect()
    };
    let (mut all, reader) = (read(writer), read(reader));
    for (key, value) in reader {
        match all.get(&key) {
            Some(other) if *other != value => {
                all.insert(key, format!("writer {other}, reader {value}"));
            }
            _ => {
                all.insert(key, value);
            }
        }
    }
    all
}

/// Reason why an end point is not matched, as text, from the JSON report of the driver.
pub(super) fn reason(json: &str) -> String {
    // The report is one object, or a list with an object for each peer address, of which the first has the reason.
    let map = match serde_json::from_str(json) {
        Ok(serde_json::Value::Object(map)) => map,
        Ok(serde_json::Value::Array(list)) => match list.into_iter().next() {
            Some(serde_json::Value::Object(map)) => map,
            _ => return json.to_owned(),
        },
        _ => return json.to_owned(),
    };
    let text = |key: &str| map.get(key).and_then(|v| v.as_str()).filter(|s| !s.is_empty());
    if let Some(whole) = text("text") {
        return whole.to_owned();
    }
    let mut out = text("reason").unwrap_or("no reason known").to_owned();
    if let Some(policy) = text("policy") {
        out.push_str(&format!(": {policy}"));
    }
    if let Some(detail) = text("detail") {
        out.push_str(&format!(" ({detail})"));
    }
    out
}
