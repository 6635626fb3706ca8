//! Resolves QoS policies to the flat map that drivers get: durations in ns, options as `policy.option`.

use super::duration::positive;
use crate::error::Fault;
use crate::format::{DurabilityChoice, Duration, HistoryChoice, LivelinessChoice, Qos, ReliabilityChoice};
use crate::read::At;
use std::collections::BTreeMap;

pub(super) fn qos(keys: &Qos) -> Result<BTreeMap<String, String>, Fault> {
    let mut out = BTreeMap::new();
    let mut put = |key: &str, value: &str| {
        out.insert(key.to_owned(), value.to_owned());
    };
    let ns = |keys: &Option<At<Duration>>, what: &str| -> Result<Option<String>, Fault> {
        Ok(positive(keys.as_ref(), what)?.map(|time| time.0.to_string()))
    };
    match &keys.reliability {
        None => {}
        Some(ReliabilityChoice::BestEffort) => put("reliability", "best-effort"),
        Some(ReliabilityChoice::Reliable(options)) => {
            put("reliability", "reliable");
            if let Some(time) = ns(&options.max_blocking_time, "a blocking time")? {
                put("reliability.max_blocking_time", &time);
            }
        }
    }
    match &keys.history {
        None => {}
        Some(HistoryChoice::KeepAll) => put("history", "keep-all"),
        Some(HistoryChoice::KeepLast(depth)) => {
            if depth.value == 0 || depth.value > i32::MAX as u32 {
                let reason = format!("a history of the last {} messages is not possible", depth.value);
                return Err(Fault::new(depth.at, reason).help("write at least 1; `keep-all` keeps every message"));
            }
            put("history", "keep-last");
            put("history.depth", &depth.value.to_string());
        }
    }
    if let Some(durability) = keys.durability {
        put(
            "durability",
            match durability {
                DurabilityChoice::Volatile => "volatile",
                DurabilityChoice::TransientLocal => "transient-local",
                DurabilityChoice::Transient => "transient",
                DurabilityChoice::Persistent => "persistent",
            },
        );
    }
    if let Some((word, lease)) = keys.liveliness.as_ref().map(|l| match l {
        LivelinessChoice::Automatic(lease) => ("automatic", lease),
        LivelinessChoice::ManualByParticipant(lease) => ("manual-by-participant", lease),
        LivelinessChoice::ManualByTopic(lease) => ("manual-by-topic", lease),
    }) {
        put("liveliness", word);
        if let Some(time) = ns(&lease.lease_duration, "a lease")? {
            put("liveliness.lease_duration", &time);
        }
    }
    if let Some(priority) = keys.transport_priority {
        put("transport_priority", &priority.to_string());
    }
    if let Some(budget) = &keys.latency_budget {
        // Zero is the default of DDS and means no delay.
        put("latency_budget", &budget.value.0.0.to_string());
    }
    for (key, value) in [("deadline", &keys.deadline), ("lifespan", &keys.lifespan)] {
        if let Some(time) = ns(value, &format!("a {key}"))? {
            put(key, &time);
        }
    }
    Ok(out)
}
