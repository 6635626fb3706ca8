//! QoS policies: what is asked for, as settings of a service of iceoryx2.
//!
//! In iceoryx2, each reader has a buffer of messages for each writer, in shared memory. Nothing is lost on the way to a buffer.
//! So the policies say what happens at a buffer that is full: `keep-last` replaces the oldest message (safe overflow), and
//! `keep-all` replaces nothing: a reliable writer then waits, and a best-effort writer leaves that reader out.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tailbound_abi::TB_EQOS;
use tailbound_abi::side::{Outcome, Pair};

use crate::options::{MOST_BUFFERED, Options};

const RELIABILITY: [&str; 2] = ["best-effort", "reliable"];
const DURABILITY: [&str; 2] = ["volatile", "transient-local"];
const HISTORY: [&str; 2] = ["keep-last", "keep-all"];
/// How long a reliable writer waits for a full buffer, if no time is given.
const MAX_BLOCKING_TIME: Duration = Duration::from_secs(1);
/// Size in bytes of the buffers of all readers of a writer with `keep-all`, if no number of messages is given, and the largest
/// number of messages that is chosen.
const KEEP_ALL_BYTES: u64 = 32 << 20;
const KEEP_ALL_MOST: u64 = 1000;

/// The policies of a writer or a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    pub reliable: bool,
    /// How long a reliable writer waits for a full buffer; `None` = for ever.
    pub max_blocking_time: Option<Duration>,
    pub keep_all: bool,
    /// Number of messages in the buffer of a reader.
    pub buffer: usize,
    /// Number of old messages that a writer keeps for a reader that comes later.
    pub history: usize,
}

/// Reads the policies of an end point whose messages have at most `max_len` bytes; policies that are not given have their
/// defaults.
pub fn parse(pairs: &[Pair], options: &Options, max_len: u64) -> Outcome<Qos> {
    let (mut reliable, mut keep_all, mut transient, mut depth) = (true, false, None, None);
    let mut max_blocking_time = Some(MAX_BLOCKING_TIME);
    for pair in pairs {
        match pair.key {
            "reliability" => reliable = pair.word(TB_EQOS, &RELIABILITY)? == 1,
            "reliability.max_blocking_time" => max_blocking_time = duration(pair)?,
            "durability" => transient = Some(pair).filter(|_| pair.value != DURABILITY[0]),
            "history" => keep_all = pair.word(TB_EQOS, &HISTORY)? == 1,
            "history.depth" => depth = Some((pair, pair.number(TB_EQOS, 1..=MOST_BUFFERED)?)),
            _ => return Err(pair.bad(TB_EQOS, "iceoryx2 has no such QoS policy")),
        }
    }
    if let Some(pair) = transient {
        pair.word(TB_EQOS, &DURABILITY)?;
    }
    if let Some((pair, _)) = depth.filter(|_| keep_all) {
        return Err(pair.bad(TB_EQOS, "contradicts history=keep-all"));
    }
    if let Some(pair) = transient.filter(|_| keep_all) {
        let why = "a writer of iceoryx2 keeps a fixed number of old messages: use history=keep-last with history.depth";
        return Err(pair.bad(TB_EQOS, why));
    }
    let buffer = match (keep_all, depth) {
        (false, depth) => depth.map_or(1, |(_, n)| n),
        (true, _) => options.buffer_size.unwrap_or_else(|| keep_all_buffer(options.max_peers, max_len)),
    };
    Ok(Qos { reliable, max_blocking_time, keep_all, buffer, history: if transient.is_some() { buffer } else { 0 } })
}

fn keep_all_buffer(peers: usize, max_len: u64) -> usize {
    (KEEP_ALL_BYTES / (peers as u64 * max_len.max(1))).clamp(2, KEEP_ALL_MOST) as usize
}

fn duration(pair: &Pair) -> Outcome<Option<Duration>> {
    if pair.value == "infinite" {
        return Ok(None);
    }
    pair.number(TB_EQOS, 0..=i64::MAX).map(|ns| Some(Duration::from_nanos(ns as u64)))
}

/// Policies as strings, in the form in which they are accepted.
pub fn words(qos: &Qos) -> Map<String, Value> {
    let mut all = Map::new();
    let mut put = |key: &str, value: String| drop(all.insert(key.to_owned(), json!(value)));
    put("reliability", RELIABILITY[usize::from(qos.reliable)].to_owned());
    if qos.reliable {
        let time = qos.max_blocking_time.map_or_else(|| "infinite".to_owned(), |t| t.as_nanos().to_string());
        put("reliability.max_blocking_time", time);
    }
    put("durability", DURABILITY[usize::from(qos.history > 0)].to_owned());
    put("history", HISTORY[usize::from(qos.keep_all)].to_owned());
    if !qos.keep_all {
        put("history.depth", qos.buffer.to_string());
    }
    all
}

/// Describes the QoS policies for `describe`: durations are ns or `infinite`.
pub fn described() -> Value {
    let words = |key: &str, values: &[&str]| json!({"policy": key, "values": values});
    let open = |key: &str, values: &[&str]| json!({"policy": key, "values": values, "open_ended": true});
    json!([
        words("reliability", &["reliable", "best-effort"]),
        open("reliability.max_blocking_time", &["0", "100000000", "infinite"]),
        words("durability", &DURABILITY),
        words("history", &HISTORY),
        open("history.depth", &["1", "16"]),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(given: &[(&str, &str)]) -> Outcome<Qos> {
        let pairs: Vec<Pair> = given.iter().map(|&(key, value)| Pair { key, value }).collect();
        parse(&pairs, &Options::parse(&[Pair { key: "max_peers", value: "4" }])?, 8192)
    }

    #[test]
    fn what_is_set_reads_back_as_the_same_strings() {
        let given = [
            ("reliability", "reliable"),
            ("reliability.max_blocking_time", "5000001"),
            ("durability", "transient-local"),
            ("history", "keep-last"),
            ("history.depth", "7"),
        ];
        let back = words(&parsed(&given).unwrap());
        for (key, value) in given {
            assert_eq!(back[key], json!(value), "{key}");
        }
        assert_eq!(back.len(), given.len());
    }

    #[test]
    fn a_buffer_that_keeps_all_follows_from_the_payload() {
        let all = parsed(&[("history", "keep-all")]).unwrap();
        assert_eq!((all.keep_all, all.buffer, all.history), (true, 1000, 0));
        assert_eq!([64, 1 << 20, 1 << 30].map(|len| keep_all_buffer(4, len)), [1000, 8, 2]);
    }

    #[test]
    fn faults_name_their_policy() {
        for (key, value) in
            [("reliability", "maybe"), ("durability", "persistent"), ("history.depth", "0"), ("deadline", "1")]
        {
            let fail = parsed(&[(key, value)]).unwrap_err();
            assert!(fail.code == TB_EQOS && fail.text.contains(key), "{}", fail.text);
        }
        for (key, value) in [("history.depth", "4"), ("durability", "transient-local")] {
            let fail = parsed(&[(key, value), ("history", "keep-all")]).unwrap_err();
            assert!(fail.text.starts_with(key), "{}", fail.text);
        }
    }
}
