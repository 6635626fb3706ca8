//! Opening a session of zenoh: between peers, without scouting by multicast, or as the client of a router.

use std::net::{IpAddr, SocketAddr};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tailbound_abi::TB_EIO;
use tailbound_abi::side::{Fail, Outcome};
use zenoh::{Config, Session, Wait};

use crate::alive::{refused, text_of};
use crate::options::{Options, Transport};

/// The certificates of quic between peers. Everyone can read the key: it encrypts as any other does, and keeps nothing secret.
const AUTHORITY: &str = include_str!("certificates/authority.pem");
const CERTIFICATE: &str = include_str!("certificates/end.pem");
const KEY: &str = include_str!("certificates/end.key");

/// Longest time to reach a router, in ms.
const ROUTER_MS: u32 = 3000;

/// How a session takes part in the network.
pub enum Role {
    /// A peer, with the address at which it listens, and the ones to which it connects.
    Peer { listens: String, connects: Vec<String> },
    /// A client of a router.
    Client(String),
}

fn config(of: &[(&str, String)]) -> Outcome<Config> {
    let mut config = Config::default();
    let common = [
        ("scouting/multicast/enabled", "false".to_owned()),
        // Of two sessions that learn about each other, one connects.
        ("scouting/gossip/enabled", "true".to_owned()),
        (
            "scouting/gossip/autoconnect_strategy",
            r#"{ peer: { to_router: "always", to_peer: "greater-zid" } }"#.to_owned(),
        ),
        ("open/return_conditions/connect_scouted", "false".to_owned()),
    ];
    for (key, value) in common.iter().chain(of) {
        config.insert_json5(key, value).map_err(refused(&format!("the setting {key} = {value}")))?;
    }
    Ok(config)
}

/// Settings for shared memory. Without it, all bytes are on the link.
fn memory(options: &Options) -> [(&'static str, String); 2] {
    [
        ("transport/shared_memory/enabled", options.shared_memory.to_string()),
        ("transport/shared_memory/mode", if options.shared_memory { r#""init""# } else { r#""lazy""# }.to_owned()),
    ]
}

/// Settings for the certificates of quic; the other transports ignore them.
fn certificates(options: &Options) -> (&'static str, String) {
    let mut tls = match &options.authority {
        Some(path) => json!({ "root_ca_certificate": path }),
        None => json!({ "root_ca_certificate_base64": STANDARD.encode(AUTHORITY) }),
    };
    // Addresses of ends are not in the certificate.
    tls["verify_name_on_connect"] = Value::Bool(options.authority.is_some());
    tls["listen_certificate_base64"] = Value::String(STANDARD.encode(CERTIFICATE));
    tls["listen_private_key_base64"] = Value::String(STANDARD.encode(KEY));
    ("transport/link/tls", tls.to_string())
}

/// Opens the session.
pub fn open(options: &Options) -> Outcome<(Session, Role)> {
    match &options.router {
        Some(router) => client(options, router),
        None => peer(options),
    }
}

fn client(options: &Options, router: &str) -> Outcome<(Session, Role)> {
    let [enabled, mode] = memory(options);
    let settings = [
        ("mode", r#""client""#.to_owned()),
        ("connect/endpoints", format!("[\"{router}\"]")),
        ("connect/timeout_ms", ROUTER_MS.to_string()),
        ("connect/exit_on_failure", "true".to_owned()),
        enabled,
        mode,
        certificates(options),
    ];
    match zenoh::open(config(&settings)?).wait() {
        Ok(session) => Ok((session, Role::Client(router.to_owned()))),
        Err(e) => {
            let certificate = match options.transport {
                Transport::Quic => ", give the certificate of its authority by the option `authority`",
                Transport::Tcp | Transport::Udp => "",
            };
            let text = format!(
                "router={router}: no router of zenoh answered there within {} s; start one with `zenohd -l {router}`{certificate}, \
                 or leave the option out for peers without a router (zenoh: {})",
                ROUTER_MS / 1000,
                text_of(&e)
            );
            Err(Fail::new(TB_EIO, text))
        }
    }
}

fn peer(options: &Options) -> Outcome<(Session, Role)> {
    let locator =
        |address: IpAddr, port: u16| format!("{}/{}", options.transport.word(), SocketAddr::new(address, port));
    // Of two places, the one with the larger address connects, so that no two sessions connect to each other.
    let smaller = options.peers.iter().filter(|peer| **peer < options.address);
    let places: Vec<String> = smaller.map(|peer| locator(*peer, options.port)).collect();
    let first = locator(options.address, options.port);
    if is_free(options) {
        // Another session of this place may listen since the look.
        if let Ok(session) = zenoh::open(peer_config(options, &first, &places)?).wait() {
            return Ok((session, Role::Peer { listens: first, connects: places }));
        }
    }
    let (listens, connects) = (locator(options.address, 0), [vec![first], places].concat());
    let session = zenoh::open(peer_config(options, &listens, &connects)?).wait().map_err(|e| {
        let text = format!(
            "address={}: no session can listen there, is it an address of this host? (zenoh: {})",
            options.address,
            text_of(&e)
        );
        Fail::new(TB_EIO, text)
    })?;
    Ok((session, Role::Peer { listens, connects }))
}

fn peer_config(options: &Options, listens: &str, connects: &[String]) -> Outcome<Config> {
    let [enabled, mode] = memory(options);
    let connects: Vec<String> = connects.iter().map(|at| format!("\"{at}\"")).collect();
    config(&[
        ("mode", r#""peer""#.to_owned()),
        ("listen/endpoints", format!("[\"{listens}\"]")),
        ("listen/exit_on_failure", "true".to_owned()),
        ("connect/endpoints", format!("[{}]", connects.join(", "))),
        ("connect/timeout_ms", "-1".to_owned()),
        ("connect/exit_on_failure", "false".to_owned()),
        ("connect/retry", "{ period_init_ms: 20, period_max_ms: 4000, period_increase_factor: 2 }".to_owned()),
        enabled,
        mode,
        certificates(options),
    ])
}

/// Whether the port of the domain is free at the own address.
fn is_free(options: &Options) -> bool {
    let at = (options.address, options.port);
    match options.transport {
        Transport::Tcp => std::net::TcpListener::bind(at).is_ok(),
        Transport::Udp | Transport::Quic => std::net::UdpSocket::bind(at).is_ok(),
    }
}
