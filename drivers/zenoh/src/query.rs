//! Answers to the queries that the loading program may make outside the hot path; every answer is JSON.

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};
use tailbound_abi::TB_EUNSUPPORTED;
use tailbound_abi::side::{Fail, Outcome, fail, threads_by_role};
use zenoh::Wait;

use crate::describe::{ROLES, ZENOH};
use crate::endpoint::Endpoint;
use crate::network::Role;
use crate::options::Congestion;
use crate::qos;
use crate::session::Session;

/// Answers the query `what` about an end point, or about the session if `ep` is 0.
pub fn answer(session: &Session, ep: u32, what: &str) -> Outcome<Value> {
    let endpoint = || match ep {
        0 => Err(Fail::invalid(format!("query {what} needs an end point"))),
        ep => session.endpoint(ep).and_then(|e| e.held().map(|_| e)),
    };
    match what {
        "qos" => endpoint()?.held()?.qos().map(|q| Value::Object(qos::words(&q))),
        "peers" if ep == 0 => {
            Ok(session.zenoh.info().transports().wait().map(|t| json!({"zid": t.zid().to_string()})).collect())
        }
        "peers" => endpoint().map(|e| e.peers.names().into_iter().map(|name| json!({"id": name})).collect()),
        "unmatched" => endpoint().map(|e| unmatched(session, e)),
        "stats" if ep == 0 => {
            session.alive().map(|e| Ok((e.id.to_string(), stats(e)?))).collect::<Outcome<_>>().map(Value::Object)
        }
        "stats" => endpoint().and_then(stats),
        "transport" => Ok(transport(session)),
        "threads" => Ok(threads()),
        "flow" => endpoint().and_then(|e| flow(session, e)),
        _ => {
            let known = "qos stats peers unmatched transport threads flow";
            fail(TB_EUNSUPPORTED, format!("query {what}: this question is not known; the known questions are {known}"))
        }
    }
}

fn stats(e: &Endpoint) -> Outcome<Value> {
    let mut all = json!({"matched": e.peers.number()});
    if !e.writer {
        let held = e.held()?;
        let reader = held.reader()?;
        all["received"] = json!(reader.received.load(Relaxed));
        all["replaced_in_queue"] = json!(reader.queue.replaced.load(Relaxed));
        all["malformed"] = json!(reader.malformed.load(Relaxed));
    }
    Ok(all)
}

/// Returns the send settings and counters of a writer. Zenoh does not report counters, so they are described in words.
fn flow(session: &Session, e: &Endpoint) -> Outcome<Value> {
    let congestion = e.held()?.writer()?.qos().congestion;
    let batching = match session.options.express {
        true => "none: express=on sends each message at once",
        false => {
            "not adjustable: zenoh puts messages that wait for the link into one batch; express=on switches it off"
        }
    };
    let throttled = match congestion {
        Congestion::Block => {
            "congestion_control=block: a put waits if the queue to a peer is full; zenoh does not count how often"
        }
        Congestion::Drop => {
            "congestion_control=drop: a message for which the queue to a peer has no room is discarded; zenoh does not count how often"
        }
    };
    Ok(json!({
        "matched": e.peers.number(),
        "batching": "none",
        "data": "unicast",
        "by": {
            "batching": batching,
            "unacked_limit": "zenoh has no such setting: TCP and the queues of zenoh are the limit",
            "data": "one message over the link to each peer, or to the router",
            "retransmitted": "only TCP sends again; the kernel counts it",
            "throttled": throttled,
        },
    }))
}

/// Explains why an end point has no peer.
fn unmatched(session: &Session, e: &Endpoint) -> Value {
    let matched = e.peers.number();
    if matched > 0 {
        return json!({"reason": "matched", "detail": format!("{matched} matched on {}", e.topic)});
    }
    let (what, sessions) =
        (if e.writer { "reader" } else { "writer" }, session.zenoh.info().transports().wait().count());
    let place = match &session.role {
        Role::Peer { listens, connects } if connects.is_empty() => format!("this session listens on {listens}"),
        Role::Peer { connects, .. } => format!("this session connects to {}", connects.join(" and ")),
        Role::Client(router) => format!("this session is connected to the router {router}"),
    };
    let mut detail = format!("no {what} of {} is alive; {place}; it has links to {sessions} other sessions", e.topic);
    if sessions == 0 && matches!(session.role, Role::Peer { .. }) {
        detail += ". If another program uses this port, choose another `port`";
    }
    json!({"reason": "nothing seen", "detail": detail})
}

fn transport(session: &Session) -> Value {
    let (o, info) = (&session.options, session.zenoh.info());
    let links = info.links().wait().map(|link| {
        json!({
            "to": link.zid().to_string(),
            "from": link.src().to_string(),
            "at": link.dst().to_string(),
            "mtu": link.mtu(),
            "interfaces": link.interfaces(),
        })
    });
    let (role, at) = match &session.role {
        Role::Peer { listens, connects } => ("peer", json!({"listens": listens, "connects": connects})),
        Role::Client(router) => ("client", json!({"router": router})),
    };
    let shared = info.transports().wait().filter(|t| t.is_shm()).count();
    json!({
        "transport": o.transport.word(),
        "library": format!("zenoh {ZENOH}"),
        "domain": o.domain,
        "session": session.zenoh.zid().to_string(),
        "role": role,
        "addresses": at,
        "links": links.collect::<Vec<_>>(),
        "express": o.express,
        "shared_memory": {"asked": o.shared_memory, "peers": shared},
        "scouting": "off",
        "runtime": std::env::var("ZENOH_RUNTIME").ok(),
    })
}

/// Lists the threads of this process whose names are in the driver's description.
fn threads() -> Value {
    threads_by_role(&ROLES)
        .into_iter()
        .map(|(tid, name, role)| json!({"tid": tid, "name": name, "role": role}))
        .collect()
}
