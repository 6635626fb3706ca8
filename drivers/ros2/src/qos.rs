//! Converts QoS policies from strings to a profile of ROS 2, and from a topic of RustDDS back to strings.
//!
//! Strings that are read back have the form of strings that are accepted, so requested and effective policies can be
//! compared.

use std::time::Duration;

use ros2_client::QosProfile;
use ros2_client::dds::rustdds::qos::QosPolicyId;
use ros2_client::dds::rustdds::{Duration as DdsDuration, QosPolicies, policy};
use ros2_client::qos::{Durability, History, Reliability, WhenFull};
use serde_json::{Map, Value, json};
use tailbound_abi::TB_EQOS;
use tailbound_abi::side::{Outcome, Pair};

const RELIABILITY: [&str; 2] = ["best-effort", "reliable"];
const DURABILITY: [&str; 2] = ["volatile", "transient-local"];
const HISTORY: [&str; 2] = ["keep-last", "keep-all"];

/// Makes the QoS profile for a writer or reader; policies that are not given have their defaults.
pub fn parse(pairs: &[Pair]) -> Outcome<QosProfile> {
    let (mut reliable, mut when_full) = (true, WhenFull::DEFAULT);
    let (mut keep_all, mut depth, mut depth_given) = (false, 1, None);
    let mut profile = QosProfile::default();
    for pair in pairs {
        match pair.key {
            "reliability" => reliable = pair.word(TB_EQOS, &RELIABILITY)? == 1,
            "reliability.max_blocking_time" => {
                when_full = match duration(pair)? {
                    None => WhenFull::Block,
                    Some(Duration::ZERO) => WhenFull::Fail,
                    Some(time) => WhenFull::Wait(time),
                }
            }
            "durability" => {
                profile.durability =
                    [Durability::Volatile, Durability::TransientLocal][pair.word(TB_EQOS, &DURABILITY)?]
            }
            "history" => keep_all = pair.word(TB_EQOS, &HISTORY)? == 1,
            "history.depth" => {
                depth = pair.number(TB_EQOS, 1..=i32::MAX as usize)?;
                depth_given = Some(pair);
            }
            "deadline" => profile.deadline = duration(pair)?,
            "lifespan" => profile.lifespan = duration(pair)?,
            _ => return Err(pair.bad(TB_EQOS, "ros2-client has no such QoS policy")),
        }
    }
    if let Some(pair) = depth_given.filter(|_| keep_all) {
        return Err(pair.bad(TB_EQOS, "contradicts history=keep-all"));
    }
    profile.history = if keep_all { History::KeepAll } else { History::KeepLast { depth } };
    profile.reliability = if reliable { Reliability::Reliable { when_full } } else { Reliability::BestEffort };
    Ok(profile)
}

fn duration(pair: &Pair) -> Outcome<Option<Duration>> {
    if pair.value == "infinite" {
        return Ok(None);
    }
    // RustDDS stores seconds in 31 bits.
    pair.number(TB_EQOS, 0..=i64::from(i32::MAX) * 1_000_000_000 - 1).map(|ns| Some(Duration::from_nanos(ns as u64)))
}

/// Formats a duration in ns. RustDDS stores fractions of a second in 32 bits and rounds down.
fn duration_text(d: DdsDuration) -> String {
    if d == DdsDuration::INFINITE {
        return "infinite".to_owned();
    }
    let cut = d.to_nanoseconds();
    if DdsDuration::from_nanos(cut) == d { cut.to_string() } else { (cut + 1).to_string() }
}

/// Reads the policies of a set as strings; an absent policy has the default of DDS.
pub fn read(qos: &QosPolicies) -> Map<String, Value> {
    let mut all = Map::new();
    let mut put = |key: &str, value: String| {
        all.insert(key.to_owned(), json!(value));
    };
    match qos.reliability() {
        Some(policy::Reliability::Reliable { max_blocking_time }) => {
            put("reliability", RELIABILITY[1].to_owned());
            put("reliability.max_blocking_time", duration_text(max_blocking_time));
        }
        _ => put("reliability", RELIABILITY[0].to_owned()),
    }
    put(
        "durability",
        match qos.durability() {
            None | Some(policy::Durability::Volatile) => DURABILITY[0].to_owned(),
            Some(policy::Durability::TransientLocal) => DURABILITY[1].to_owned(),
            Some(policy::Durability::Transient) => "transient".to_owned(),
            Some(policy::Durability::Persistent) => "persistent".to_owned(),
        },
    );
    match qos.history() {
        Some(policy::History::KeepAll) => put("history", HISTORY[1].to_owned()),
        Some(policy::History::KeepLast { depth }) => {
            put("history", HISTORY[0].to_owned());
            put("history.depth", depth.to_string());
        }
        None => {}
    }
    put("deadline", duration_text(qos.deadline().map_or(DdsDuration::INFINITE, |d| d.0)));
    put("lifespan", duration_text(qos.lifespan().map_or(DdsDuration::INFINITE, |l| l.duration)));
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
        open("deadline", &["1000000000", "infinite"]),
        open("lifespan", &["1000000000", "infinite"]),
    ])
}

/// Returns the ABI's name for a policy because of which RustDDS refuses a match.
pub fn policy_name(id: QosPolicyId) -> String {
    match id {
        QosPolicyId::LatencyBudget => "latency_budget".to_owned(),
        QosPolicyId::TimeBasedFilter => "time_based_filter".to_owned(),
        QosPolicyId::DestinationOrder => "destination_order".to_owned(),
        QosPolicyId::ResourceLimits => "resource_limits".to_owned(),
        QosPolicyId::Representation => "data_representation".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(pairs: &[(&str, &str)]) -> Outcome<QosProfile> {
        let pairs: Vec<Pair> = pairs.iter().map(|&(key, value)| Pair { key, value }).collect();
        parse(&pairs)
    }

    #[test]
    fn what_is_set_reads_back_as_the_same_strings() {
        let given = [
            ("reliability", "reliable"),
            ("reliability.max_blocking_time", "5000001"),
            ("durability", "transient-local"),
            ("history", "keep-last"),
            ("history.depth", "7"),
            ("deadline", "123456789"),
            ("lifespan", "2000000003"),
        ];
        let back = read(&QosPolicies::from(parsed(&given).unwrap()));
        for (key, value) in given {
            assert_eq!(back[key], json!(value), "{key}");
        }
        assert_eq!(back.len(), given.len());
    }

    #[test]
    fn faults_name_their_policy() {
        for (key, value) in [("reliability", "maybe"), ("deadline", "-1"), ("history.depth", "0"), ("batch", "on")] {
            let fail = parsed(&[(key, value)]).unwrap_err();
            assert!(fail.code == TB_EQOS && fail.text.contains(key), "{}", fail.text);
        }
        let fail = parsed(&[("history.depth", "4"), ("history", "keep-all")]).unwrap_err();
        assert!(fail.text.contains("contradicts"), "{}", fail.text);
    }
}
