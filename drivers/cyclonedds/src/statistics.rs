//! The counters that Cyclone keeps for a writer or a reader.

use serde_json::{Map, Value, json};
use tailbound_abi::side::Outcome;

use crate::endpoint::Endpoint;
use crate::ffi::{self, stat_kind};
use crate::peers::text;

/// Returns the counters of a writer (retransmitted bytes, throttling, times in ns) or a reader (discarded bytes), and
/// the number of matched peers.
pub fn of(endpoint: &Endpoint) -> Outcome<Value> {
    let made = endpoint.open()?;
    let mut all = Map::new();
    all.insert("matched".to_owned(), json!(endpoint.matched()));
    // SAFETY: the pointer is null or points to a set with `count` pairs, which is freed after reading.
    unsafe {
        let set = ffi::dds_create_statistics(made.entity);
        if !set.is_null() {
            let pairs = core::slice::from_raw_parts((&raw const (*set).kv).cast::<ffi::StatKeyValue>(), (*set).count);
            for pair in pairs {
                let value = if pair.kind == stat_kind::UINT32 { u64::from(pair.value.u32) } else { pair.value.u64 };
                let name = match text(pair.name) {
                    name if name.starts_with("time_") => format!("{name}_ns"),
                    name => name,
                };
                all.insert(name, json!(value));
            }
            ffi::dds_delete_statistics(set);
        }
    }
    Ok(Value::Object(all))
}
