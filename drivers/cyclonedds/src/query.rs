//! Answers to the queries that the loading program may make outside the hot path; every answer is JSON.

use serde_json::{Value, json};
use tailbound_abi::side::{Fail, Outcome, fail, threads_by_role};
use tailbound_abi::{TB_EUNSUPPORTED, TB_WRITER};

use crate::session::Session;
use crate::{ffi, flow, nodes, peers, qos, statistics, threads, unmatched};

/// Answers the query `what` about an end point, or about the session if `ep` is 0.
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
        "stats" if ep == 0 => Ok(session
            .alive()
            .into_iter()
            .map(|e| (e.id.to_string(), statistics::of(e).unwrap_or(Value::Null)))
            .collect()),
        "stats" => endpoint().and_then(statistics::of),
        "transport" => Ok(transport(session)),
        "threads" => Ok(list_threads()),
        "ros_nodes" if ep == 0 => nodes::announced(session.participants[0]),
        "flow" => endpoint().and_then(|e| flow::answer(&session.domain, e)),
        _ => fail(
            TB_EUNSUPPORTED,
            format!(
                "query {what}: this question is not known; the known questions are qos stats peers unmatched transport threads \
                 flow ros_nodes"
            ),
        ),
    }
}

/// Describes the transport that Cyclone was configured to use in the session.
fn transport(session: &Session) -> Value {
    let (config, notes) = session.domain.settings();
    let note = |start: &str| notes.iter().find_map(|n| n.strip_prefix(start)).map(str::trim);
    let buffer = notes.iter().find(|n| n.starts_with("socket receive buffer size set to"));
    let own = peers::participants(session.participants[0]).unwrap_or_default();
    let guid = |participant: &ffi::dds_entity_t| {
        let mut guid = ffi::dds_guid_t { v: [0; 16] };
        // SAFETY: the call fills the given struct.
        unsafe { ffi::dds_get_guid(*participant, &mut guid) };
        peers::guid(&guid)
    };
    let secured = session.domain.secured;
    let guids: Vec<String> = session.participants.iter().map(guid).collect();
    json!({
        "transport": config.get("General/Transport").cloned().unwrap_or(Value::Null),
        // A third word would be the commit of the repository in which the library was built, which is not Cyclone's
        // repository.
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
        "security": secured.then(|| json!({"plugins": plug_ins(&config)})),
        "fragment_size": config.get("General/FragmentSize").cloned().unwrap_or(Value::Null),
        "xml": session.domain.xml,
        "config": config,
        "notes": notes,
    })
}

/// Names of the security plug-ins in the configuration that Cyclone reports as effective.
fn plug_ins(config: &serde_json::Map<String, Value>) -> String {
    let of_plug_in = |(path, value): (&String, &Value)| {
        (path.starts_with("Security/") && path.ends_with("Library[@path]"))
            .then(|| value.as_str().map(str::to_owned))?
    };
    config.iter().filter_map(of_plug_in).collect::<Vec<_>>().join(", ")
}

/// Lists the threads of this process that have names of Cyclone's threads. A thread sets its name when it first runs.
fn list_threads() -> Value {
    threads_by_role(&threads::ROLES)
        .into_iter()
        .map(|(tid, name, role)| json!({"tid": tid, "name": name, "role": role}))
        .collect()
}
