//! Answers of the `null` driver to queries, in JSON.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use serde_json::json;
use tailbound_abi::side::{Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_EUNSUPPORTED, tb_clock};

use crate::endpoint::Endpoint;
use crate::endpoints::Endpoints;
use crate::network::Domain;
use crate::topic::Connected;

/// Longest payload in bytes that an end point can have.
pub const MAX_PAYLOAD_BYTES: u64 = 16 << 20;

/// Returns the description that the `null` driver gives of itself, as JSON.
pub fn describe() -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| {
        let option = |key, kind, default, help| json!({"key": key, "type": kind, "default": default, "help": help});
        let text = json!({
            "name": "null",
            "versions": {"driver": env!("CARGO_PKG_VERSION")},
            "capabilities": ["scripted_clock", "source_timestamps", "kernel_rx_timestamps"],
            "limits": {"max_payload_bytes": MAX_PAYLOAD_BYTES},
            "options": [
                option("domain", "integer", json!("77"), "Sessions with the same number communicate with each other."),
                {"key": "clock", "type": "enum", "default": "real", "values": ["real", "scripted"],
                 "help": "Real time, or virtual time that a script controls."},
                {"key": "script", "type": "config",
                 "help": "Delays, losses and stalls as JSON; needs clock=scripted."},
                option("timestamps", "bool", json!("off"), "Fill in source and receive timestamps."),
                {"key": "interface", "type": "string", "help": "The option is accepted, but has no effect inside one process."},
                {"key": "address", "type": "string", "help": "The option is accepted, but has no effect inside one process."},
                {"key": "peers", "type": "list", "help": "The option is accepted, but has no effect inside one process."},
                {"key": "multicast", "type": "string", "help": "The option is accepted, but has no effect inside one process."},
                {"key": "naming", "type": "string", "help": "The option is accepted, but has no effect inside one process."},
                {"key": "transport", "type": "string", "help": "The option is accepted, but has no effect inside one process."},
            ],
            "qos": [],
            "receive_modes": ["listener", "block", "spin"],
            "packages": [],
            "roles": [],
        });
        CString::new(text.to_string()).unwrap_or_default()
    })
}

fn flow(matched: usize) -> serde_json::Value {
    json!({
        "matched": matched,
        "batching": "none",
        "data": "unicast",
        "by": {
            "batching": "send itself delivers",
            "unacked_limit": "nothing is acknowledged",
            "data": "the sample is passed to each reader in turn, inside the process",
            "retransmitted": "nothing is sent again",
            "throttled": "none: send never waits; if a queue is full, send returns TB_EWOULDBLOCK",
        },
    })
}

/// Answers one query about an end point or the session.
pub fn answer(endpoints: &Endpoints, domain: &Domain, ep: u32, what: &str) -> Outcome<Vec<u8>> {
    if what == "clock" || what == "far_clock" {
        let Some(world) = domain.world else {
            return fail(TB_EUNSUPPORTED, format!("{what}: this session runs in real time"));
        };
        let clock = if what == "clock" { Some(world.clock()) } else { world.far_clock() };
        let Some(clock) = clock else {
            return fail(
                TB_EUNSUPPORTED,
                "far_clock: the other end has no clock of its own; all ends use the clock of the session",
            );
        };
        // SAFETY: a `tb_clock` has no padding: two u32 and four pointers.
        let bytes: &[u8] = unsafe { std::slice::from_raw_parts((&raw const clock).cast(), size_of::<tb_clock>()) };
        return Ok(bytes.to_vec());
    }
    let chosen: Vec<_> = match ep {
        0 => endpoints.open().collect(),
        id => vec![endpoints.existing(id)?],
    };
    let peers = |c: &Connected| c.topic.peers(&c.endpoint);
    let json = match what {
        "qos" => json!({}),
        "stats" => {
            let sum = |f: fn(&Endpoint) -> u64| chosen.iter().map(|c| f(&c.endpoint)).sum::<u64>();
            json!({
                "sent": sum(|e| if e.is_writer() { e.samples() } else { 0 }),
                "received": sum(|e| if e.is_writer() { 0 } else { e.samples() }),
                "queue_full": sum(|e| e.refused.load(Ordering::Relaxed)),
                "lost_by_script": domain.world.map_or(0, |w| w.lost()),
            })
        }
        "peers" => {
            json!(chosen.iter().map(|c| json!({"topic": c.topic.name, "matched": peers(c)})).collect::<Vec<_>>())
        }
        "unmatched" => json!(
            chosen
                .iter()
                .filter(|c| peers(c) == 0)
                .map(|c| json!({
                    "topic": c.topic.name,
                    "reason": "nothing seen",
                    "text": format!(
                        "no {} of topic {} in this process and domain {}",
                        if c.endpoint.is_writer() { "reader" } else { "writer" }, c.topic.name, domain.number,
                    ),
                }))
                .collect::<Vec<_>>()
        ),
        "transport" => json!({
            "kind": "in-process",
            "domain": domain.number,
            "clock": if domain.world.is_some() { "scripted" } else { "real" },
        }),
        "threads" => json!([]),
        "flow" => match *chosen {
            [writer] if ep != 0 && writer.endpoint.is_writer() => flow(peers(writer)),
            _ => return fail(TB_EINVAL, format!("query flow: end point {ep} is not a writer")),
        },
        _ => return fail(TB_EUNSUPPORTED, format!("query `{what}`: the null driver does not know this question")),
    };
    Ok(json.to_string().into_bytes())
}
