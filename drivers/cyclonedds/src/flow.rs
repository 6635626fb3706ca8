//! How a writer's samples flow: limit of what is unacknowledged, ways of data, retransmissions. What is asked goes into
//! the configuration; what is told is read from the one that Cyclone arrived at, and from its statistics.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tailbound_abi::TB_WRITER;
use tailbound_abi::side::{Fail, Outcome};

use crate::endpoint::Endpoint;
use crate::sample::HEAD;
use crate::session::Session;
use crate::{qos, query};

/// Size of fragments that Cyclone has when none is asked for (General/FragmentSize).
const FRAGMENT_BYTES: u64 = 1344;
/// What a fragment counts in the watermarks beside its octets (`sample_overhead` in Cyclone's dds_whc.c).
const OVERHEAD_BYTES: u64 = 80;
/// Watermarks are 32 bits wide; half of that is more than any sensible limit.
const MOST_BYTES: u64 = i32::MAX as u64;

/// `unacked_limit`, and the payload that it is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit {
    /// Messages.
    pub messages: Option<u64>,
    /// Octets of a message's payload.
    pub payload: Option<u64>,
}

/// What a sample counts in the watermarks: its serialised form and the overhead of its fragments (`whcn_size` in
/// Cyclone's dds_whc.c).
fn counted_bytes(payload: u64, fragment: u64) -> u64 {
    let serialised = (HEAD as u64 + payload).next_multiple_of(4);
    serialised + serialised.div_ceil(fragment.max(1)) * OVERHEAD_BYTES
}

impl Limit {
    /// The mark above which a writer waits, octets. It waits before a sample when more than the mark is unacknowledged:
    /// with n - 1 messages it may go on, with n it may not.
    pub fn mark_bytes(self, fragment: Option<i32>) -> Outcome<Option<u64>> {
        let Some(messages) = self.messages else { return Ok(None) };
        let Some(payload) = self.payload else {
            return Err(Fail::invalid(format!(
                "unacked_limit={messages}: Cyclone counts octets; give `payload`, those of a message"
            )));
        };
        let one = counted_bytes(payload, fragment.map_or(FRAGMENT_BYTES, |n| n as u64));
        match (messages - 1).checked_mul(one).filter(|mark| *mark <= MOST_BYTES) {
            Some(mark) => Ok(Some(mark)),
            None => Err(Fail::invalid(format!(
                "unacked_limit={messages}: of {payload} B each that is more than Cyclone counts ({MOST_BYTES} B)"
            ))),
        }
    }
}

/// The element `Watermarks`.
pub fn write_watermarks(x: &mut String, mark: Option<u64>) {
    let _ = match mark {
        // One mark for halt and for go, and none that grows: a limit that is the same at any time.
        Some(mark) => write!(
            x,
            "<Watermarks><WhcLow>{mark} B</WhcLow><WhcHigh>{mark} B</WhcHigh><WhcHighInit>{mark} B</WhcHighInit>\
             <WhcAdaptive>false</WhcAdaptive></Watermarks>"
        ),
        // Cyclone's own first mark, 30 kB, halts a keep-all writer that answers a backlog from the receive thread: it
        // then waits for acknowledgements that its own thread has to take, until its call gives up. Its last mark is
        // 500 kB.
        None => write!(x, "<Watermarks><WhcHighInit>500 kB</WhcHighInit></Watermarks>"),
    };
}

/// The answer to `query("flow")`.
pub fn answer(session: &Session, e: &Endpoint) -> Outcome<Value> {
    if e.kind != TB_WRITER {
        return Err(Fail::invalid(format!("query flow: end point {} is a reader", e.id)));
    }
    let config = query::effective(session).0;
    let qos = qos::effective(e.open()?.entity, true)?;
    let (limit, limit_bytes, limit_by) = limit(&config, &qos, e.max_len);
    let (data, data_by) = data(&config);
    let stats = query::stats(e)?;
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
            "batching": "QoS writer batching and dds_write_flush; a full datagram (max_message_size) goes out by itself",
            "unacked_limit": limit_by,
            "data": data_by,
            "retransmitted": "dds_create_statistics: rexmit_bytes",
            "throttled": "dds_create_statistics: throttle_count, time_throttle",
        },
    }))
}

/// Messages, octets, and what they are from.
fn limit(config: &Map<String, Value>, qos: &Value, max_len: u64) -> (Option<u64>, Option<u64>, String) {
    let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or("not told");
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
            format!("none in messages: Watermarks/WhcLow {low}, WhcHigh {high}, WhcAdaptive {adaptive}"),
        );
    };
    let one = counted_bytes(max_len, bytes(text("General/FragmentSize")).unwrap_or(FRAGMENT_BYTES));
    let by =
        format!("Watermarks/WhcLow = WhcHigh = {mark} B, WhcAdaptive false: a message of {max_len} B counts {one} B");
    (Some(mark / one + 1), Some(mark), by)
}

fn data(config: &Map<String, Value>) -> (&'static str, String) {
    let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or("not told");
    let allowed = text("General/AllowMulticast");
    let preferred = text("General/Interfaces/NetworkInterface[@prefer_multicast]");
    let way = match (allowed, preferred) {
        ("false" | "spdp", _) => "unicast",
        (_, "true") => "multicast",
        _ => "either",
    };
    (way, format!("General/AllowMulticast {allowed}, NetworkInterface/@prefer_multicast {preferred}"))
}

/// A size as Cyclone writes it. Its kB is 1,024 B.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "B" => 1,
        "kB" | "KiB" => 1 << 10,
        "MB" | "MiB" => 1 << 20,
        "GB" | "GiB" => 1 << 30,
        _ => return None,
    };
    Some(number.parse::<u64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_counts() {
        assert_eq!(counted_bytes(0, 1344), 16 + 80);
        assert_eq!(counted_bytes(1, 1344), 20 + 80);
        assert_eq!(counted_bytes(1344, 1344), 1360 + 2 * 80);
        assert_eq!([bytes("30 kB"), bytes("1344 B"), bytes("x")], [Some(30_720), Some(1344), None]);
    }

    #[test]
    fn a_limit_that_cannot_be_is_refused_by_name() {
        let mark = |messages, payload| Limit { messages: Some(messages), payload }.mark_bytes(None);
        assert_eq!(mark(1, Some(64)).unwrap(), Some(0));
        assert_eq!(mark(20, Some(64)).unwrap(), Some(19 * 160));
        for (limit, why) in [(mark(20, None), "`payload`"), (mark(1 << 40, Some(64)), "more than Cyclone counts")] {
            let text = limit.unwrap_err().text;
            assert!(text.starts_with("unacked_limit=") && text.contains(why), "{text}");
        }
    }
}
