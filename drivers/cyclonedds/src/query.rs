//! Questions that a host may ask outside the hot path; every answer is JSON.

use serde_json::{Map, Value, json};
use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EUNSUPPORTED, TB_WRITER};

use crate::describe;
use crate::endpoint::Endpoint;
use crate::ffi::{self, stat_kind};
use crate::flow;
use crate::peers::{self, text};
use crate::qos;
use crate::session::Session;
use crate::unmatched;

/// Answers `what` about an end point, or about the session if `ep` is 0.
pub fn answer(session: &Session, ep: u32, what: &str) -> Outcome<Value> {
    let endpoint = || match ep {
        0 => Err(Fail::invalid(format!("query {what} needs an end point"))),
        ep => session.endpoint(ep).and_then(|e| e.open().map(|_| e)),
    };
    match what {
        "qos" => endpoint().and_then(|e| qos::effective(e.open()?.entity, e.kind == TB_WRITER)),
        "peers" if ep == 0 => peers::participants(session.participants[0]).map(Value::Object),
        "peers" => endpoint().and_then(|e| peers::matched(session.participants[0], e)),
        "unmatched" => endpoint().and_then(|e| unmatched::explain(session.participants[0], session.naming, e)),
        "stats" if ep == 0 => {
            Ok(session.alive().into_iter().map(|e| (e.id.to_string(), stats(e).unwrap_or(Value::Null))).collect())
        }
        "stats" => endpoint().and_then(stats),
        "transport" => Ok(transport(session)),
        "threads" => Ok(threads()),
        "flow" => endpoint().and_then(|e| flow::answer(session, e)),
        _ => fail(
            TB_EUNSUPPORTED,
            format!("query {what}: not known; known: qos stats peers unmatched transport threads flow"),
        ),
    }
}

/// Counters of a writer (retransmitted bytes, throttling, times in ns) or reader (discarded bytes), and matched peers.
pub fn stats(endpoint: &Endpoint) -> Outcome<Value> {
    let made = endpoint.open()?;
    let mut all = Map::new();
    all.insert("matched".to_owned(), json!(endpoint.matched()));
    // SAFETY: null or a set with `count` pairs, freed after reading.
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

/// `path: value` for all of Cyclone's settings, and what it said while it started (interfaces, ports, socket buffers).
/// With a user's own configuration that traces by itself both are empty: Cyclone does not tell.
pub fn effective(session: &Session) -> (Map<String, Value>, Vec<String>) {
    let mut config = Map::new();
    let mut notes = Vec::new();
    for line in &session.domain.effective {
        match line
            .strip_prefix("config: Domain")
            .and_then(|l| l.rsplit_once(" {"))
            .and_then(|(l, _)| l.split_once(": "))
        {
            Some((path, value)) => {
                let path = path.trim_start_matches('/').trim_end_matches("/#text");
                config.insert(path.to_owned(), json!(value));
            }
            None => notes.push(line.clone()),
        }
    }
    (config, notes)
}

/// The transport as configured.
fn transport(session: &Session) -> Value {
    let (config, notes) = effective(session);
    let note = |start: &str| notes.iter().find_map(|n| n.strip_prefix(start)).map(str::trim);
    let buffer = notes.iter().find(|n| n.starts_with("socket receive buffer size set to"));
    let own = peers::participants(session.participants[0]).unwrap_or_default();
    let guid = |participant: &ffi::dds_entity_t| {
        let mut guid = ffi::dds_guid_t { v: [0; 16] };
        // SAFETY: fills the struct given.
        unsafe { ffi::dds_get_guid(*participant, &mut guid) };
        peers::guid(&guid)
    };
    let guids: Vec<String> = session.participants.iter().map(guid).collect();
    json!({
        "transport": config.get("General/Transport").cloned().unwrap_or(Value::Null),
        // A third word would be the commit of whatever repository the library was built inside: ours, not Cyclone's.
        "library": note("Version: ").map(|v| v.split_whitespace().take(2).collect::<Vec<_>>().join(" ")),
        "domain": session.network_domain,
        "instance": if session.domain.shared { "shared" } else { "own" },
        "participant": guids[0],
        "participants": guids,
        "addresses": own.get(&guids[0]).and_then(|p| p.get("addresses")).cloned().unwrap_or(Value::Null),
        "interfaces": note("selected interfaces: "),
        "ports": note("rtps_init: uc ports: "),
        "socket_receive_buffer_bytes": buffer.and_then(|n| n.split_whitespace().find_map(|w| w.parse::<u64>().ok())),
        "max_message_size": config.get("General/MaxMessageSize").cloned().unwrap_or(Value::Null),
        "fragment_size": config.get("General/FragmentSize").cloned().unwrap_or(Value::Null),
        "xml": session.domain.xml,
        "config": config,
        "notes": notes,
    })
}

/// The threads of this process that carry a name of Cyclone's; a thread takes its name when it first runs.
fn threads() -> Value {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return json!([]) };
    let mut all: Vec<(u32, String, &str)> = tasks
        .filter_map(|task| {
            let tid: u32 = task.ok()?.file_name().to_str()?.parse().ok()?;
            let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).ok()?.trim_end().to_owned();
            let role = describe::role(&name)?;
            Some((tid, name, role))
        })
        .collect();
    all.sort_unstable();
    all.into_iter().map(|(tid, name, role)| json!({"tid": tid, "name": name, "role": role})).collect()
}
