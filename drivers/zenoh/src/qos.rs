//! QoS policies: what is asked for, and what zenoh has for it.
//!
//! Zenoh has no QoS policies of DDS. Reliability is a property of the link and of what a publisher does if its queue is full
//! (congestion control). History is the queue of the reader, which is the driver's: a subscriber of zenoh is a callback.

use serde_json::{Map, Value, json};
use tailbound_abi::TB_EQOS;
use tailbound_abi::side::{Outcome, Pair};

use crate::options::{Congestion, Options, Transport};

const RELIABILITY: [&str; 2] = ["best-effort", "reliable"];
const HISTORY: [&str; 2] = ["keep-last", "keep-all"];
const MOST_DEPTH: usize = 1_000_000;
/// Why reliability=reliable is impossible with an option.
const UDP: &str = "over udp, zenoh sends nothing again: use the transport tcp, or best-effort";
const DROP: &str = "congestion_control=drop discards messages: leave it out, or use best-effort";

/// The policies of a writer or a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    pub reliable: bool,
    pub congestion: Congestion,
    pub keep_all: bool,
    /// Number of messages in the queue of a reader.
    pub depth: usize,
}

/// Reads the policies of an end point; policies that are not given have their defaults.
pub fn parse(pairs: &[Pair], options: &Options) -> Outcome<Qos> {
    let (mut reliable, mut keep_all, mut depth) = (None, false, None);
    for pair in pairs {
        match pair.key {
            "reliability" => reliable = Some((pair, pair.word(TB_EQOS, &RELIABILITY)? == 1)),
            "durability" if pair.value == "volatile" => {}
            "durability" => {
                return Err(pair.bad(
                    TB_EQOS,
                    "a publisher of zenoh keeps no messages; the advanced one of zenoh-ext is not used",
                ));
            }
            "history" => keep_all = pair.word(TB_EQOS, &HISTORY)? == 1,
            "history.depth" => depth = Some((pair, pair.number(TB_EQOS, 1..=MOST_DEPTH)?)),
            _ => return Err(pair.bad(TB_EQOS, "zenoh has no such QoS policy")),
        }
    }
    if let Some((pair, _)) = depth.filter(|_| keep_all) {
        return Err(pair.bad(TB_EQOS, "contradicts history=keep-all"));
    }
    if let Some((pair, true)) = reliable {
        if options.transport == Transport::Udp {
            return Err(pair.bad(TB_EQOS, UDP));
        }
        if options.congestion == Some(Congestion::Drop) {
            return Err(pair.bad(TB_EQOS, DROP));
        }
    }
    let loses = options.transport == Transport::Udp || options.congestion == Some(Congestion::Drop);
    let reliable = reliable.map_or(!loses, |(_, reliable)| reliable);
    let congestion = options.congestion.unwrap_or(if reliable { Congestion::Block } else { Congestion::Drop });
    let depth = if keep_all { options.buffer_size } else { depth.map_or(1, |(_, n)| n) };
    Ok(Qos { reliable, congestion, keep_all, depth })
}

/// Policies as strings, in the form in which they are accepted.
pub fn words(qos: &Qos) -> Map<String, Value> {
    let mut all = Map::new();
    let mut put = |key: &str, value: String| drop(all.insert(key.to_owned(), json!(value)));
    put("reliability", RELIABILITY[usize::from(qos.reliable)].to_owned());
    put("durability", "volatile".to_owned());
    put("history", HISTORY[usize::from(qos.keep_all)].to_owned());
    if !qos.keep_all {
        put("history.depth", qos.depth.to_string());
    }
    all
}

/// Describes the QoS policies for `describe`.
pub fn described() -> Value {
    json!([
        {"policy": "reliability", "values": ["reliable", "best-effort"], "excludes": [
            {"value": "reliable", "option": "transport", "is": "udp", "why": UDP},
            {"value": "reliable", "option": "congestion_control", "is": "drop", "why": DROP},
        ]},
        {"policy": "durability", "values": ["volatile"]},
        {"policy": "history", "values": HISTORY},
        {"policy": "history.depth", "values": ["1", "16"], "open_ended": true},
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(given: &[(&str, &str)], options: &[(&str, &str)]) -> Outcome<Qos> {
        let options: Vec<Pair> = options.iter().map(|&(key, value)| Pair { key, value }).collect();
        parse(&given.iter().map(|&(key, value)| Pair { key, value }).collect::<Vec<_>>(), &Options::parse(&options)?)
    }

    #[test]
    fn what_loses_messages_is_not_reliable() {
        let reliable = |options: &[(&str, &str)]| parsed(&[], options).map(|q| (q.reliable, q.congestion)).unwrap();
        assert_eq!(reliable(&[]), (true, Congestion::Block));
        assert_eq!(reliable(&[("transport", "udp")]), (false, Congestion::Drop));
        assert_eq!(reliable(&[("transport", "udp"), ("congestion_control", "block")]), (false, Congestion::Block));
        assert_eq!(reliable(&[("congestion_control", "drop")]), (false, Congestion::Drop));
        for options in [[("transport", "udp")], [("congestion_control", "drop")]] {
            let fail = parsed(&[("reliability", "reliable")], &options).unwrap_err();
            assert!(fail.code == TB_EQOS && fail.text.starts_with("reliability=reliable: "), "{}", fail.text);
        }
    }

    #[test]
    fn faults_name_their_policy() {
        for (key, value) in
            [("durability", "transient-local"), ("history.depth", "0"), ("deadline", "1"), ("history", "some")]
        {
            let fail = parsed(&[(key, value)], &[]).unwrap_err();
            assert!(fail.code == TB_EQOS && fail.text.starts_with(key), "{}", fail.text);
        }
    }
}
