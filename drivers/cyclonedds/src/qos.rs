//! Converts QoS policies from strings to Cyclone, and from an entity of Cyclone back to strings.
//!
//! Strings that are read back have the form of strings that are accepted, so requested and effective policies can be
//! compared.

use serde_json::{Map, Value, json};
use tailbound_abi::TB_EQOS;
use tailbound_abi::side::{Outcome, Pair, fail};

use crate::error::check;
use crate::ffi;

const INFINITE: i64 = i64::MAX;
const RELIABILITY: [&str; 2] = ["best-effort", "reliable"];
const DURABILITY: [&str; 2] = ["volatile", "transient-local"];
const HISTORY: [&str; 2] = ["keep-last", "keep-all"];
const SWITCH: [&str; 2] = ["off", "on"];

/// A checked set of QoS policies; policies that are not given have their defaults.
#[derive(Debug)]
pub struct Policies {
    reliable: bool,
    max_blocking_time_ns: i64,
    transient_local: bool,
    keep_all: bool,
    depth: i32,
    deadline_ns: i64,
    latency_budget_ns: i64,
    transport_priority: i32,
    lifespan_ns: i64,
    max_samples: i32,
    /// Whether the writer holds messages back until a datagram is full or `flush` is called.
    pub batch: bool,
    /// Whether the QoS setting `reliability.max_blocking_time` is 0.
    pub never_blocks: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Policies {
            reliable: true,
            max_blocking_time_ns: 100_000_000,
            transient_local: false,
            keep_all: false,
            depth: 1,
            deadline_ns: INFINITE,
            latency_budget_ns: 0,
            transport_priority: 0,
            lifespan_ns: INFINITE,
            max_samples: ffi::DDS_LENGTH_UNLIMITED,
            batch: false,
            never_blocks: false,
        }
    }
}

impl Policies {
    /// Reads the policies of a writer or reader; the text of every failure names the policy.
    pub fn parse(pairs: &[Pair], writer: bool) -> Outcome<Self> {
        let mut p = Policies::default();
        let mut depth_given = None;
        for pair in pairs {
            match pair.key {
                "reliability" => p.reliable = pair.word(TB_EQOS, &RELIABILITY)? == 1,
                "reliability.max_blocking_time" => p.max_blocking_time_ns = duration(pair)?,
                "durability" => p.transient_local = pair.word(TB_EQOS, &DURABILITY)? == 1,
                "history" => p.keep_all = pair.word(TB_EQOS, &HISTORY)? == 1,
                "history.depth" => {
                    p.depth = pair.number(TB_EQOS, 1..=i32::MAX)?;
                    depth_given = Some(pair);
                }
                "deadline" => p.deadline_ns = duration(pair)?,
                "latency_budget" => p.latency_budget_ns = duration(pair)?,
                "resource_limits.max_samples" if pair.value == "unlimited" => p.max_samples = ffi::DDS_LENGTH_UNLIMITED,
                "resource_limits.max_samples" => p.max_samples = pair.number(TB_EQOS, 1..=i32::MAX)?,
                "transport_priority" | "lifespan" | "batch" if !writer => {
                    return Err(pair.bad(TB_EQOS, "this is a policy of writers, which readers do not have"));
                }
                "transport_priority" => p.transport_priority = pair.number(TB_EQOS, i32::MIN..=i32::MAX)?,
                "lifespan" => p.lifespan_ns = duration(pair)?,
                "batch" => p.batch = pair.word(TB_EQOS, &SWITCH)? == 1,
                _ => return Err(pair.bad(TB_EQOS, "the cyclonedds driver has no such QoS policy")),
            }
        }
        if let Some(pair) = depth_given.filter(|_| p.keep_all) {
            return Err(pair.bad(TB_EQOS, "contradicts history=keep-all"));
        }
        if !p.keep_all && p.max_samples != ffi::DDS_LENGTH_UNLIMITED && p.depth > p.max_samples {
            return fail(
                TB_EQOS,
                format!("history.depth={} is more than resource_limits.max_samples={}", p.depth, p.max_samples),
            );
        }
        p.never_blocks = p.max_blocking_time_ns == 0;
        Ok(p)
    }

    /// Converts the QoS policies into a QoS set of Cyclone; the caller frees the set.
    pub fn native(&self, writer: bool) -> *mut ffi::dds_qos_t {
        let history = (self.keep_all as ffi::dds_history_kind_t, if self.keep_all { 1 } else { self.depth });
        // SAFETY: the setters copy their arguments into the fresh set.
        unsafe {
            let qos = ffi::dds_create_qos();
            ffi::dds_qset_reliability(qos, self.reliable as ffi::dds_reliability_kind_t, self.max_blocking_time_ns);
            ffi::dds_qset_durability(qos, self.transient_local as ffi::dds_durability_kind_t);
            ffi::dds_qset_history(qos, history.0, history.1);
            ffi::dds_qset_deadline(qos, self.deadline_ns);
            ffi::dds_qset_latency_budget(qos, self.latency_budget_ns);
            ffi::dds_qset_resource_limits(qos, self.max_samples, ffi::DDS_LENGTH_UNLIMITED, ffi::DDS_LENGTH_UNLIMITED);
            if writer {
                ffi::dds_qset_transport_priority(qos, self.transport_priority);
                ffi::dds_qset_lifespan(qos, self.lifespan_ns);
                ffi::dds_qset_writer_batching(qos, self.batch);
                if self.transient_local {
                    // The history for late readers belongs to the durability service, which is here the writer itself.
                    let any = ffi::DDS_LENGTH_UNLIMITED;
                    ffi::dds_qset_durability_service(qos, 0, history.0, history.1, self.max_samples, any, any);
                }
            }
            qos
        }
    }
}

fn duration(pair: &Pair) -> Outcome<i64> {
    if pair.value == "infinite" { Ok(INFINITE) } else { pair.number(TB_EQOS, 0..=INFINITE - 1) }
}

fn duration_text(ns: i64) -> String {
    if ns == INFINITE { "infinite".to_owned() } else { ns.to_string() }
}

/// Reads the QoS policies of a writer or reader from Cyclone.
pub fn effective(entity: ffi::dds_entity_t, writer: bool) -> Outcome<Value> {
    // SAFETY: the set belongs to this function and is freed after reading.
    unsafe {
        let qos = ffi::dds_create_qos();
        let result = check("dds_get_qos", ffi::dds_get_qos(entity, qos)).map(|_| read(qos, writer));
        ffi::dds_delete_qos(qos);
        result
    }
}

/// Reads the policies in a QoS set of Cyclone. Policies that the set does not contain are absent from the result.
///
/// # Safety
/// `qos` is a valid set.
pub unsafe fn read(qos: *const ffi::dds_qos_t, writer: bool) -> Value {
    let mut all = Map::new();
    let mut put = |key: &str, value: String| {
        all.insert(key.to_owned(), json!(value));
    };
    let word = |words: [&str; 2], i: u32| words.get(i as usize).map_or_else(|| i.to_string(), |w| (*w).to_owned());
    let (mut kind, mut number, mut ns, mut flag) = (0_u32, 0_i32, 0_i64, false);
    // SAFETY: the caller promises that the set is valid; the getters write only on success.
    unsafe {
        if ffi::dds_qget_reliability(qos, &mut kind, &mut ns) {
            put("reliability", word(RELIABILITY, kind));
            put("reliability.max_blocking_time", duration_text(ns));
        }
        if ffi::dds_qget_durability(qos, &mut kind) {
            put("durability", word(DURABILITY, kind));
        }
        if ffi::dds_qget_history(qos, &mut kind, &mut number) {
            put("history", word(HISTORY, kind));
            if kind == 0 {
                put("history.depth", number.to_string());
            }
        }
        if ffi::dds_qget_deadline(qos, &mut ns) {
            put("deadline", duration_text(ns));
        }
        if ffi::dds_qget_latency_budget(qos, &mut ns) {
            put("latency_budget", duration_text(ns));
        }
        let (mut instances, mut per_instance) = (0, 0);
        if ffi::dds_qget_resource_limits(qos, &mut number, &mut instances, &mut per_instance) {
            put(
                "resource_limits.max_samples",
                if number == ffi::DDS_LENGTH_UNLIMITED { "unlimited".to_owned() } else { number.to_string() },
            );
        }
        if writer {
            if ffi::dds_qget_transport_priority(qos, &mut number) {
                put("transport_priority", number.to_string());
            }
            if ffi::dds_qget_lifespan(qos, &mut ns) {
                put("lifespan", duration_text(ns));
            }
            if ffi::dds_qget_writer_batching(qos, &mut flag) {
                put("batch", SWITCH[flag as usize].to_owned());
            }
        }
    }
    Value::Object(all)
}

/// Describes the QoS policies for `describe`: durations are ns or `infinite`, counts may be `unlimited`.
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
        open("latency_budget", &["0", "1000000"]),
        open("transport_priority", &["0", "10"]),
        open("lifespan", &["1000000000", "infinite"]),
        open("resource_limits.max_samples", &["1000", "unlimited"]),
        words("batch", &SWITCH),
    ])
}

/// Returns the name of a QoS policy from Cyclone's number, if the driver knows the policy.
pub fn policy_name(id: u32) -> String {
    let names = [
        "invalid",
        "user_data",
        "durability",
        "presentation",
        "deadline",
        "latency_budget",
        "ownership",
        "ownership_strength",
        "liveliness",
        "time_based_filter",
        "partition",
        "reliability",
        "destination_order",
        "history",
        "resource_limits",
        "entity_factory",
        "writer_data_lifecycle",
        "reader_data_lifecycle",
        "topic_data",
        "group_data",
        "transport_priority",
        "lifespan",
        "durability_service",
        "property",
        "type_consistency",
        "data_representation",
    ];
    names.get(id as usize).map_or_else(|| format!("policy {id}"), |n| (*n).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)], writer: bool) -> Outcome<Policies> {
        let pairs: Vec<Pair> = pairs.iter().map(|&(key, value)| Pair { key, value }).collect();
        Policies::parse(&pairs, writer)
    }

    #[test]
    fn faults_name_their_policy() {
        for (key, value) in [
            ("reliability", "maybe"),
            ("deadline", "-1"),
            ("history.depth", "0"),
            ("colour", "red"),
            ("lifespan", "soon"),
        ] {
            let fail = parse(&[(key, value)], true).unwrap_err();
            assert_eq!(fail.code, TB_EQOS);
            assert!(fail.text.contains(key), "{}", fail.text);
        }
        assert!(parse(&[("batch", "on")], false).unwrap_err().text.contains("batch"));
        assert!(
            parse(&[("history", "keep-all"), ("history.depth", "4")], true).unwrap_err().text.contains("history.depth")
        );
        assert!(
            parse(&[("history.depth", "4"), ("resource_limits.max_samples", "3")], true)
                .unwrap_err()
                .text
                .contains("max_samples")
        );
    }

    #[test]
    fn what_is_set_reads_back_as_the_same_strings() {
        let given = [
            ("reliability", "best-effort"),
            ("reliability.max_blocking_time", "5000000"),
            ("durability", "transient-local"),
            ("history", "keep-last"),
            ("history.depth", "7"),
            ("deadline", "123456789"),
            ("latency_budget", "1000"),
            ("resource_limits.max_samples", "99"),
            ("transport_priority", "-3"),
            ("lifespan", "2000000000"),
            ("batch", "on"),
        ];
        let native = parse(&given, true).unwrap().native(true);
        // SAFETY: the set was made above and is freed here.
        let back = unsafe {
            let back = read(native, true);
            ffi::dds_delete_qos(native);
            back
        };
        for (key, value) in given {
            assert_eq!(back[key], json!(value), "{key}");
        }
        assert_eq!(back.as_object().unwrap().len(), given.len());
    }
}
