//! Answers to the queries that the loading program may make outside the hot path; every answer is JSON.

use ros2_client::Gid;
use ros2_client::dds::rustdds::{GUID, RTPSEntity};
use serde_json::{Value, json};
use tailbound_abi::TB_EUNSUPPORTED;
use tailbound_abi::side::{Fail, Outcome, fail, threads_by_role};

use crate::describe::{ROLES, ROS2_CLIENT, RUSTDDS};
use crate::endpoint::Endpoint;
use crate::qos;
use crate::sample::TYPE;
use crate::session::Session;

/// Answers the query `what` about an end point, or about the session if `ep` is 0.
pub fn answer(session: &Session, ep: u32, what: &str) -> Outcome<Value> {
    let endpoint = || match ep {
        0 => Err(Fail::invalid(format!("query {what} needs an end point"))),
        ep => session.endpoint(ep).and_then(|e| e.entity().map(|_| e)),
    };
    match what {
        "qos" => Ok(Value::Object(qos::read(&endpoint()?.qos))),
        "peers" if ep == 0 => Ok(session.graph.lock().participants.iter().map(|p| json!({"guid": hex(*p)})).collect()),
        "peers" => endpoint().map(|e| peers(session, e).into_iter().map(|p| json!({"guid": hex(p)})).collect()),
        "unmatched" => Ok(unmatched(session, endpoint()?)),
        "stats" if ep == 0 => Ok(session.alive().map(|e| (e.id.to_string(), stats(session, e))).collect()),
        "stats" => endpoint().map(|e| stats(session, e)),
        "transport" => Ok(transport(session)),
        "threads" => Ok(threads()),
        "flow" => endpoint().and_then(|e| flow(session, e)),
        _ => {
            let known = "qos stats peers unmatched transport threads flow";
            fail(TB_EUNSUPPORTED, format!("query {what}: this question is not known; the known questions are {known}"))
        }
    }
}

fn hex(guid: GUID) -> String {
    let hex: String = Gid::from(guid).as_bytes().iter().map(|b| format!("{b:02x}")).collect();
    [&hex[0..8], &hex[8..16], &hex[16..24], &hex[24..32]].join(":")
}

fn peers(session: &Session, e: &Endpoint) -> Vec<GUID> {
    session.graph.lock().ends.get(&e.guid).map_or_else(Vec::new, |end| end.peers.iter().copied().collect())
}

/// Returns the counters of an end point: only the number of matched peers, because RustDDS reports no counters.
fn stats(session: &Session, e: &Endpoint) -> Value {
    json!({"matched": peers(session, e).len()})
}

/// Returns the send settings and counters of a writer. RustDDS does not report its fixed settings, so they are
/// described in words.
fn flow(session: &Session, e: &Endpoint) -> Outcome<Value> {
    if !e.writer {
        return Err(Fail::invalid(format!("query flow: end point {} is a reader", e.id)));
    }
    Ok(json!({
        "matched": peers(session, e).len(),
        "batching": "none",
        "data": "either",
        "by": {
            "batching": "not adjustable: RustDDS itself puts short messages that wait into one datagram",
            "unacked_limit": "not adjustable: RustDDS has a fixed limit of 8,192 messages for reliable writers",
            "data": "RustDDS chooses: multicast if readers announce it, otherwise unicast",
            "retransmitted": "RustDDS does not count retransmissions",
            "throttled": "RustDDS does not count how often send waits",
        },
    }))
}

/// Explains why an end point has no peer: no other end point was seen, its type differs, or a QoS policy does not fit.
fn unmatched(session: &Session, e: &Endpoint) -> Value {
    let matched = peers(session, e).len();
    if matched > 0 {
        return json!({"reason": "matched", "detail": format!("{matched} matched on {}", e.topic)});
    }
    let known = session.graph.lock();
    if let Some(refused) = known.ends.get(&e.guid).and_then(|end| end.refused.as_ref()) {
        let policy = qos::policy_name(refused.policy);
        let show = |set| qos::read(set).get(&policy).and_then(Value::as_str).unwrap_or("another value").to_owned();
        let (offered, requested) = (show(&refused.offered), show(&refused.requested));
        let detail = format!("{policy}: offered {offered}, requested {requested}");
        return json!({"reason": "incompatible QoS", "policy": policy, "detail": detail});
    }
    let what = if e.writer { "subscription" } else { "publisher" };
    if let Some(other) = known.ends.get(&e.guid).and_then(|end| end.other_type.values().next()) {
        let detail = format!("the {what} of {} has type {other}, but this end point has type {TYPE}", e.topic);
        return json!({"reason": "type differs", "detail": detail});
    }
    let others = known.participants.len();
    let detail = format!("no {what} of {} was discovered; {others} other participants were discovered", e.topic);
    json!({"reason": "nothing seen", "detail": detail})
}

/// Describes the requested transport; RustDDS does not report the transport in use.
fn transport(session: &Session) -> Value {
    let o = &session.options;
    json!({
        "transport": "udp",
        "library": format!("ros2-client {ROS2_CLIENT}, RustDDS {RUSTDDS}"),
        "domain": o.domain,
        "node": o.node.fully_qualified_name(),
        "participants": session.participants.iter().map(|p| hex(p.guid())).collect::<Vec<_>>(),
        "address": o.address,
        "same_host_loopback": o.loopback(),
        "socket_receive_buffer_size_asked": o.receive_buffer,
        "socket_send_buffer_size_asked": o.send_buffer,
    })
}

/// Lists the threads of this process whose names are in the driver's description.
fn threads() -> Value {
    threads_by_role(&ROLES)
        .into_iter()
        .map(|(tid, name, role)| json!({"tid": tid, "name": name, "role": role}))
        .collect()
}
