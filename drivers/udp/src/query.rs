//! Answers of the `udp` driver to queries, in JSON.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use serde_json::{Value, json};
use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_EUNSUPPORTED};

use crate::discovery::Discovery;
use crate::endpoint::{Common, lock};
use crate::endpoints::{Endpoint, Endpoints};
use crate::net;
use crate::socket::has_launch_times;
use crate::wire::{MAX_PAYLOAD, group};
use crate::writer::RefusedLaunches;

/// Returns the description that the `udp` driver gives of itself, as JSON.
pub fn describe() -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| {
        let text = json!({
            "name": "udp",
            "versions": {"driver": env!("CARGO_PKG_VERSION")},
            "capabilities": ["kernel_rx_timestamps", "hw_rx_timestamps", "txtime", "stages"],
            "limits": {"max_payload_bytes": MAX_PAYLOAD},
            "options": [
                {"key": "domain", "type": "integer", "default": "77",
                 "help": "Number of the domain: sessions with the same number communicate with each other, and the \
                     ports follow from the number."},
                {"key": "address", "type": "string", "default": "127.0.0.1",
                 "help": "Local IPv4 or IPv6 address; if only `interface` is given, the address of the interface."},
                {"key": "peers", "type": "list",
                 "help": "Addresses or host names of the other ends; a host name means all addresses of the host. The \
                     default is the address of this session."},
                {"key": "interface", "type": "string", "help": "Interface to which the sockets are bound (SO_BINDTODEVICE)."},
                {"key": "rcvbuf", "type": "integer", "unit": "B", "default": "4194304", "help": "Size of the receive buffer (SO_RCVBUF). A value is refused if the kernel grants less; the default is limited by net.core.rmem_max."},
                {"key": "sndbuf", "type": "integer", "unit": "B", "help": "Size of the send buffer that is requested (SO_SNDBUF)."},
                {"key": "timestamps", "type": "enum", "default": "off", "values": ["off", "on", "stages", "hardware"],
                 "help": "Timestamps: `on` = of the kernel for received messages; `stages` = also when sent messages come to the queue discipline, and when the driver of the interface gets them (SO_TIMESTAMPING); `hardware` = also when the network card sends and receives them, on its own clock, if it stamps all frames."},
                {"key": "ttl", "type": "integer", "help": "Time to live of the datagrams, 1 to 255; with data=multicast, 0 is allowed and stays on the host, and the default is 1."},
                {"key": "priority", "type": "integer", "help": "Priority of the sockets for queueing and VLANs, 0 to 15 (SO_PRIORITY); above 6 needs CAP_NET_ADMIN."},
                {"key": "launch", "type": "enum", "default": "off", "values": ["off", "strict", "deadline"], "help": "Whether messages have launch times of CLOCK_TAI (SO_TXTIME), which the queue discipline etf of the interface keeps; needs CAP_NET_ADMIN. The study key `stream` sets it."},
                {"key": "data", "type": "enum", "default": "unicast", "values": ["unicast", "multicast"],
                 "help": "How a sample is sent to several readers: one datagram for each, one after the other, or one for all to a group that follows from domain and topic (IPv4, on the interface of `address`). Both ends need the same value."},
                {"key": "participants", "type": "integer", "default": "1",
                 "help": "1 or 2, without effect: end points share no participant, and each has its own sockets."},
                {"key": "multicast", "type": "enum", "default": "off", "values": ["off", "on"], "help": "Whether the interface carries multicast; `data` chooses whether multicast is used. `on` with data=unicast needs `peers`."},
            ],
            "qos": [],
            "receive_modes": ["listener", "block", "spin"],
            "packages": [],
            "roles": [
                {"role": "receive", "name_glob": "tb-udp-rx"},
                {"role": "discovery", "name_glob": "tb-udp-disc"},
            ],
        });
        CString::new(text.to_string()).unwrap_or_default()
    })
}

/// Answers one query about an end point or the session.
pub fn answer(endpoints: &Endpoints, discovery: &Discovery, ep: u32, what: &str) -> Outcome<Vec<u8>> {
    let chosen: Vec<&Endpoint> = match ep {
        0 => endpoints.open().collect(),
        id => vec![endpoints.existing(id)?],
    };
    // An end point without a socket gives no answer.
    let guards: Vec<_> = chosen.iter().map(|e| e.common().enter()).collect();
    let open = || chosen.iter().zip(&guards).filter(|(_, guard)| guard.is_some()).map(|(e, _)| *e);
    let json = match what {
        "qos" => json!({}),
        "stats" => stats(open()),
        "peers" => open().map(peers).collect(),
        "unmatched" => open().filter(|e| e.common().matched() == 0).map(|e| unmatched(endpoints, e)).collect(),
        "transport" => transport(endpoints, open()),
        "threads" => threads(discovery, open()),
        "flow" => flow(endpoints, ep)?,
        "launch" => launch(endpoints, ep)?,
        "stamps" => stamps(endpoints, ep)?,
        _ => return fail(TB_EUNSUPPORTED, format!("query `{what}`: the udp driver does not know this question")),
    };
    Ok(json.to_string().into_bytes())
}

fn stats<'a>(open: impl Iterator<Item = &'a Endpoint>) -> Value {
    let (mut sent, mut refused, mut received, mut odd, mut drops) = (0, 0, 0, 0, Some(0u64));
    for endpoint in open {
        match endpoint {
            Endpoint::Writer(w) => {
                sent += w.sent.load(Relaxed);
                refused += w.refused.load(Relaxed);
            }
            Endpoint::Reader(r) => {
                received += r.received.load(Relaxed);
                odd += r.odd.load(Relaxed);
                drops = drops.zip(net::drops(r.common.fd())).map(|(sum, n)| sum + u64::from(n));
            }
        }
    }
    json!({"sent": sent, "refused_by_peer": refused, "received": received, "wrong_length": odd, "kernel_drops": drops})
}

/// Answers the query `flow` about a writer. Before it answers, the function notices readers that have ended.
fn flow(endpoints: &Endpoints, ep: u32) -> Outcome<Value> {
    let Endpoint::Writer(writer) = endpoints.existing(ep)? else {
        return fail(TB_EINVAL, format!("query flow: end point {ep} is a reader"));
    };
    let Some(_inside) = writer.common.enter() else { return Err(Fail::closed(ep)) };
    writer.hear();
    let (data, by) = match endpoints.options.multicast {
        true => ("multicast", format!("one datagram to {}", group(writer.common.topic_key))),
        false => {
            ("unicast", "the writer sends one datagram to each reader in turn, each by its own system call".to_owned())
        }
    };
    let none = "nothing is acknowledged";
    Ok(json!({
        "matched": writer.common.matched(),
        "batching": "none",
        "data": data,
        "by": {
            "batching": "every message is sent immediately as its own datagram",
            "unacked_limit": none,
            "data": by,
            "retransmitted": "nothing is sent again",
            "throttled": "none: send never waits; if the send buffer is full, send returns TB_EWOULDBLOCK",
        },
    }))
}

/// Answers the query `launch` about a writer: the launch times that the kernel refused since the last query, ns of CLOCK_TAI, each
/// with the code of the reason (SO_EE_CODE_TXTIME_* of linux/errqueue.h), and whether there was no room for more.
fn launch(endpoints: &Endpoints, ep: u32) -> Outcome<Value> {
    let Endpoint::Writer(writer) = endpoints.existing(ep)? else {
        return fail(TB_EINVAL, format!("query launch: end point {ep} is a reader"));
    };
    let Some(_inside) = writer.common.enter() else { return Err(Fail::closed(ep)) };
    writer.errors();
    let RefusedLaunches { all, full } = std::mem::take(&mut *lock(&writer.refused_launches));
    Ok(json!({"refused": all, "full": full}))
}

/// Answers the query `stamps` about a writer: stages that messages passed since the last query, in the order in which they were
/// reported, at most 20,000 of them.
fn stamps(endpoints: &Endpoints, ep: u32) -> Outcome<Value> {
    const MOST: usize = 20_000;
    let Endpoint::Writer(writer) = endpoints.existing(ep)? else {
        return fail(TB_EINVAL, format!("query stamps: end point {ep} is a reader"));
    };
    let Some(_inside) = writer.common.enter() else { return Err(Fail::closed(ep)) };
    writer.errors();
    let Some(collected) = &writer.stamps else {
        return fail(TB_EUNSUPPORTED, "query stamps: the option `timestamps` is neither `stages` nor `hardware`");
    };
    let mut collected = lock(collected);
    let taken = collected.stamps.len().min(MOST);
    let stamps: Vec<Value> = collected.stamps.drain(..taken).map(|s| json!([s.seq, s.stage.word(), s.at_ns])).collect();
    Ok(json!({"stamps": stamps, "unread": collected.unread, "left_out": collected.left_out}))
}

fn peers(endpoint: &Endpoint) -> Value {
    let readers: Vec<String> = match endpoint {
        Endpoint::Writer(w) => {
            let targets = lock(&w.targets);
            targets.readers.iter().filter_map(|(_, a)| a.get()).map(|a| a.to_string()).collect()
        }
        Endpoint::Reader(_) => Vec::new(),
    };
    json!({"topic": endpoint.common().topic, "matched": endpoint.common().matched(), "readers": readers})
}

fn unmatched(endpoints: &Endpoints, endpoint: &Endpoint) -> Value {
    let common: &Common = endpoint.common();
    let text = match endpoint {
        Endpoint::Writer(w) => {
            let asked = endpoints.options.asked(common.topic_key, w.candidates());
            let (first, last) = (asked[0].port(), asked[asked.len() - 1].port());
            let peers: BTreeSet<String> = asked.iter().map(|at| at.ip().to_string()).collect();
            let peers: Vec<String> = peers.into_iter().collect();
            let trouble = lock(&w.targets).last_error.clone().map(|e| format!("; last error: {e}")).unwrap_or_default();
            format!(
                "nothing seen: no answer to discovery questions was received from {} (ports {first} to {last}){trouble}",
                peers.join(", ")
            )
        }
        Endpoint::Reader(r) => {
            let at = net::local(r.common.fd()).map_or_else(|| "its port".to_owned(), |a| a.to_string());
            format!("nothing seen: no discovery question arrived at {at}")
        }
    };
    json!({"topic": common.topic, "reason": "nothing seen", "text": text})
}

fn transport<'a>(endpoints: &Endpoints, open: impl Iterator<Item = &'a Endpoint>) -> Value {
    let options = &endpoints.options;
    let sockets: Vec<Value> = open
        .map(|endpoint| {
            let fd = endpoint.common().fd();
            let buffer = |name| net::get_int(fd, libc::SOL_SOCKET, name);
            let mut socket = json!({
                "topic": endpoint.common().topic,
                "kind": if matches!(endpoint, Endpoint::Writer(_)) { "writer" } else { "reader" },
                "local": net::local(fd).map(|a| a.to_string()),
                "connected": matches!(endpoint, Endpoint::Writer(w) if lock(&w.targets).connected),
                "rcvbuf_effective_bytes": buffer(libc::SO_RCVBUF),
                "sndbuf_effective_bytes": buffer(libc::SO_SNDBUF),
                "priority_effective": buffer(libc::SO_PRIORITY),
            });
            if options.launch.is_some() {
                socket["launch_times"] = has_launch_times(fd).into();
            }
            socket
        })
        .collect();
    json!({
        "kind": "udp",
        "address": options.address.to_string(),
        "peers": options.peers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "interface": options.interface,
        "domain": options.domain,
        "ttl": options.ttl,
        "priority": options.priority,
        "launch": options.launch.map_or("off", |deadline| if deadline { "deadline" } else { "strict" }),
        "data": if options.multicast { "multicast" } else { "unicast" },
        "timestamps": match options.stages {
            Some(true) => "hardware",
            Some(false) => "stages",
            None if options.timestamps => "on",
            None => "off",
        },
        "rcvbuf_asked_bytes": options.rcvbuf_bytes,
        "sndbuf_asked_bytes": options.sndbuf_bytes,
        "sockets": sockets,
    })
}

fn threads<'a>(discovery: &Discovery, open: impl Iterator<Item = &'a Endpoint>) -> Value {
    let receive = open.filter_map(|e| match e {
        Endpoint::Reader(r) => Some(("receive", "tb-udp-rx", r.thread_id.load(SeqCst))),
        Endpoint::Writer(_) => None,
    });
    let own = [("discovery", "tb-udp-disc", discovery.thread_id.load(SeqCst))];
    receive
        .chain(own)
        .filter(|(_, _, tid)| *tid != 0)
        .map(|(role, name, tid)| json!({"tid": tid, "role": role, "name": name}))
        .collect()
}
