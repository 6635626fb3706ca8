//! The description that the `zenoh` driver gives of itself, as data.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tailbound_abi::{TB_ABI_MAJOR, TB_ABI_MINOR};

use crate::message::MAX_PAYLOAD_BYTES;
use crate::options::{BUFFERED, DEFAULT_DOMAIN, FIRST_PORT, MAX_DOMAIN};
use crate::qos;

/// Version of the library zenoh; a test compares it with the lock file.
pub const ZENOH: &str = "1.10.2";

/// Roles of threads by their names. `rx` receives and calls back, `tx` sends what waits, `app` runs tasks of the interface, `net`
/// keeps routes and links, `acc` accepts links. `Watchdog` threads belong to shared memory.
pub const ROLES: [(&str, &str); 6] = [
    ("receive", "rx-*"),
    ("send", "tx-*"),
    ("other", "app-*"),
    ("discovery", "net-*"),
    ("discovery", "acc-*"),
    ("other", "Watchdog*"),
];

/// Returns the JSON with which the driver's function `describe` answers.
pub fn describe() -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| CString::new(description().to_string()).unwrap_or_default())
}

fn description() -> Value {
    let option = |key: &str, kind: &str, default: Option<&str>, help: &str| {
        let mut option = json!({"key": key, "type": kind, "help": help});
        if let Some(default) = default {
            option["default"] = json!(default);
        }
        option
    };
    let words = |key: &str, default: Option<&str>, values: &[&str], help: &str| {
        let mut option = option(key, "enum", default, help);
        option["values"] = json!(values);
        option
    };
    let (domain, buffered) = (DEFAULT_DOMAIN.to_string(), BUFFERED.to_string());
    json!({
        "name": "zenoh",
        "version": ZENOH,
        "versions": {"driver": env!("CARGO_PKG_VERSION"), "zenoh": ZENOH},
        "abi": format!("{TB_ABI_MAJOR}.{TB_ABI_MINOR}"),
        "capabilities": [],
        "limits": {"max_payload_bytes": MAX_PAYLOAD_BYTES},
        "options": [
            option("domain", "integer", Some(&domain), &format!("Domain, 0 to {MAX_DOMAIN}: part of every key, and of the port.")),
            option("address", "string", Some("127.0.0.1"), "Address at which the session listens."),
            option("peers", "list", None, "Addresses of the other ends; the session connects to those that are smaller than its own."),
            option("port", "integer", None, &format!("Port of the first session at an address, to which others connect; the default is {FIRST_PORT} plus the domain.")),
            words("transport", Some("tcp"), &["tcp", "udp", "quic"], "Transport of links. Over udp, zenoh sends nothing again; quic encrypts, \
                between peers with a key that everyone can read."),
            option("router", "string", None, "Address of a router, such as tcp/10.0.0.1:7447: the session is its client, and does not \
                listen. The default is peers without a router."),
            option("authority", "string", None, "Path of the certificate (PEM) of the authority that signed the certificate of a router over \
                quic."),
            words("multicast", Some("off"), &["off"], "Scouting by multicast is always off."),
            option("express", "bool", Some("off"), "Whether each message is sent at once, without waiting for others in a batch."),
            words("congestion_control", None, &["block", "drop"], "What a publisher does if the queue to a peer is full; the default is \
                block with reliability=reliable, and drop with best-effort."),
            option("shared_memory", "bool", Some("off"), "Whether messages of 3,072 B and more are put into shared memory, with their \
                place in it on the link. All ends must be processes of one host."),
            option("buffer_size", "integer", Some(&buffered), "Number of messages in the queue of a reader with history=keep-all; \
                beyond it, the receiving thread waits."),
        ],
        "qos": qos::described(),
        "receive_modes": ["listener", "block", "spin"],
        "packages": [],
        "roles": ROLES.map(|(role, glob)| json!({"role": role, "name_glob": glob})),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = include_str!("../Cargo.lock");
        assert!(lock.contains(&format!("name = \"zenoh\"\nversion = \"{ZENOH}\"")));
    }
}
