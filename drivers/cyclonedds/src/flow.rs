//! Send settings and counters of a writer: limit of unacknowledged messages, multicast, retransmissions. Requested
//! settings are written into Cyclone's configuration; reported values are read from Cyclone's effective configuration
//! and its statistics.

use serde_json::{Map, Value, json};
use tailbound_abi::TB_WRITER;
use tailbound_abi::side::{Fail, Outcome};

use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::watermarks::{FRAGMENT_BYTES, bytes, counted_bytes};
use crate::{qos, statistics};

/// Makes the answer to `query("flow")` about a writer.
pub fn answer(domain: &Domain, e: &Endpoint) -> Outcome<Value> {
    if e.kind != TB_WRITER {
        return Err(Fail::invalid(format!("query flow: end point {} is a reader", e.id)));
    }
    let config = domain.settings().0;
    let qos = qos::effective(e.open()?.entity, true)?;
    let (limit, limit_bytes, limit_by) = limit(&config, &qos, e.max_len);
    let (data, data_by) = data(&config);
    let stats = statistics::of(e)?;
    Ok(json!({
        "matched": e.matched(),
        "batching": qos["batch"],
        "unacked_limit": limit,
        "unacked_limit_bytes": limit_bytes,
        "data": data,
        "retransmitted_bytes": stats["rexmit_bytes"],
        "throttled_times": stats["throttle_count"],
        "throttled_ns": stats["time_throttle_ns"],
        "by": {
            "batching": "QoS writer batching and dds_write_flush; a full datagram (max_message_size) is sent without a flush",
            "unacked_limit": limit_by,
            "data": data_by,
            "retransmitted": "dds_create_statistics: rexmit_bytes",
            "throttled": "dds_create_statistics: throttle_count, time_throttle",
        },
    }))
}

/// Returns the limits of unacknowledged data in messages and in bytes, and the setting that is the source of the
/// limits.
fn limit(config: &Map<String, Value>, qos: &Value, max_len: u64) -> (Option<u64>, Option<u64>, String) {
    let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or("not reported");
    let [low, high, adaptive] =
        ["WhcLow", "WhcHigh", "WhcAdaptive"].map(|mark| text(&format!("Internal/Watermarks/{mark}")));
    if qos["reliability"] != "reliable" || qos["history"] != "keep-all" {
        return (
            None,
            None,
            "none: only a reliable writer with history keep-all waits for acknowledgements".to_owned(),
        );
    }
    let (Some(mark), true, "false") = (bytes(high), low == high, adaptive) else {
        return (
            None,
            bytes(high),
            format!("no fixed number of messages: Watermarks/WhcLow {low}, WhcHigh {high}, WhcAdaptive {adaptive}"),
        );
    };
    let one = counted_bytes(max_len, bytes(text("General/FragmentSize")).unwrap_or(FRAGMENT_BYTES));
    let by =
        format!("Watermarks/WhcLow = WhcHigh = {mark} B, WhcAdaptive false: a message of {max_len} B counts {one} B");
    (Some(mark / one + 1), Some(mark), by)
}

fn data(config: &Map<String, Value>) -> (&'static str, String) {
    let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or("not reported");
    let allowed = text("General/AllowMulticast");
    let preferred = text("General/Interfaces/NetworkInterface[@prefer_multicast]");
    let way = match (allowed, preferred) {
        ("false" | "spdp", _) => "unicast",
        (_, "true") => "multicast",
        _ => "either",
    };
    (way, format!("General/AllowMulticast {allowed}, NetworkInterface/@prefer_multicast {preferred}"))
}
