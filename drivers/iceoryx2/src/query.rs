//! Answers to the queries that the loading program may make outside the hot path; every answer is JSON.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use iceoryx2::prelude::*;
use serde_json::{Value, json};
use tailbound_abi::TB_EUNSUPPORTED;
use tailbound_abi::side::{Fail, Outcome, fail};

use crate::describe::ICEORYX2;
use crate::endpoint::Endpoint;
use crate::node::Ipc;
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
        "peers" if ep == 0 => Ok(json!([])),
        "peers" => endpoint().and_then(peers),
        "unmatched" => endpoint().and_then(|e| unmatched(session, e)),
        "stats" if ep == 0 => {
            session.alive().map(|e| Ok((e.id.to_string(), stats(e)?))).collect::<Outcome<_>>().map(Value::Object)
        }
        "stats" => endpoint().and_then(stats),
        "transport" => Ok(transport(session)),
        // iceoryx2 makes no thread.
        "threads" => Ok(json!([])),
        "flow" => endpoint().and_then(flow),
        _ => {
            let known = "qos stats peers unmatched transport threads flow";
            fail(TB_EUNSUPPORTED, format!("query {what}: this question is not known; the known questions are {known}"))
        }
    }
}

/// Lists the readers of the topic of a writer, and the writers of the topic of a reader.
fn peers(e: &Endpoint) -> Outcome<Value> {
    let held = e.held()?;
    let (now, mut all) = (held.messages()?.dynamic_config(), Vec::new());
    match e.writer {
        true => now.list_subscribers(|s| {
            all.push(json!({"id": format!("{:032x}", s.subscriber_id.value()), "buffer_size": s.buffer_size}));
            CallbackProgression::Continue
        }),
        false => now.list_publishers(|p| {
            let id = format!("{:032x}", p.publisher_id.value());
            all.push(json!({"id": id, "messages_in_memory": p.number_of_samples}));
            CallbackProgression::Continue
        }),
    }
    Ok(Value::Array(all))
}

fn stats(e: &Endpoint) -> Outcome<Value> {
    let held = e.held()?;
    let id = match e.writer {
        true => held.writer()?.id(),
        false => held.reader()?.id(),
    };
    let mut all = json!({"matched": held.matched()?, "id": format!("{id:032x}")});
    if e.writer {
        all["full_buffers"] = json!(held.writer()?.waits.times.load(Relaxed));
    }
    Ok(all)
}

/// Returns the send settings and counters of a writer.
fn flow(e: &Endpoint) -> Outcome<Value> {
    let held = e.held()?;
    let writer = held.writer()?;
    let qos = writer.qos();
    let mut all = json!({
        "matched": held.matched()?,
        "batching": "none",
        "data": "multicast",
        "by": {
            "batching": "iceoryx2 has no batching",
            "unacked_limit": "nothing is acknowledged: the buffer of each reader is the limit",
            "data": "one message in shared memory, for all readers; each reader gets its place",
            "retransmitted": "nothing is lost on the way to the buffer of a reader, so nothing is sent again",
            "throttled": "messages for which send found the buffer of a reader full (history=keep-all)",
        },
    });
    if qos.keep_all && qos.reliable {
        all["throttled_times"] = json!(writer.waits.times.load(Relaxed));
    }
    Ok(all)
}

/// Explains why an end point has no peer.
fn unmatched(session: &Session, e: &Endpoint) -> Outcome<Value> {
    let matched = e.held()?.matched()?;
    if matched > 0 {
        return Ok(json!({"reason": "matched", "detail": format!("{matched} matched on {}", e.topic)}));
    }
    let (mut nodes, mut hidden) = (0, 0);
    // Without a list, no other node is known.
    let _ = Node::<Ipc>::list(&session.config, |state| {
        match state {
            NodeState::Alive(_) => nodes += 1,
            NodeState::Inaccessible(_) => hidden += 1,
            _ => {}
        }
        CallbackProgression::Continue
    });
    let what = if e.writer { "reader" } else { "writer" };
    let mut detail = format!(
        "no {what} of {} in domain {}; {} other nodes of this domain on this host",
        e.topic,
        session.options.domain,
        (nodes as usize).saturating_sub(1)
    );
    if hidden > 0 {
        detail += &format!(", and {hidden} of another user");
    }
    Ok(json!({"reason": "nothing seen", "detail": detail}))
}

fn transport(session: &Session) -> Value {
    let config = &session.config;
    let node = session.node.lock().unwrap_or_else(PoisonError::into_inner);
    json!({
        "transport": "shm",
        "library": format!("iceoryx2 {ICEORYX2}"),
        "domain": session.options.domain,
        "node": node.as_ref().map(|node| format!("{:032x}", node.id().value())),
        "files": [format!("/dev/shm/{}*", config.global.prefix), config.global.root_path().to_string()],
        "max_peers": session.options.max_peers,
        "dead_nodes_removed": session.stale_removed,
        "wake_up": "one datagram of a Unix socket for each message to each reader that blocks",
    })
}
