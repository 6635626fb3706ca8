//! The description that the `rcl` driver gives of itself, as data.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tailbound_abi::{TB_ABI_MAJOR, TB_ABI_MINOR};

use crate::environment::{lacks, middlewares, version};
use crate::listen;
use crate::message::MAX_PAYLOAD_BYTES;
use crate::options::{DEFAULT_DOMAIN, MAX_DOMAIN};
use crate::qos;

/// Roles of threads by their names, of all middlewares of ROS 2 that the driver may load. The first pattern that matches
/// applies.
pub const ROLES: [(&str, &str); 15] = [
    ("receive", listen::THREAD),
    // Cyclone DDS.
    ("receive", "recv*"),
    ("event", "tev"),
    ("discovery", "dq.builtins"),
    ("receive", "dq.*"),
    ("send", "xmit*"),
    ("discovery", "lease"),
    ("other", "gc"),
    // Fast DDS from 2.13 on.
    ("receive", "dds.udp*"),
    ("receive", "dds.shm*"),
    ("send", "dds.asyn*"),
    ("event", "dds.ev*"),
    // zenoh.
    ("receive", "rx-*"),
    ("send", "tx-*"),
    ("other", "net-*"),
];

/// Returns the JSON with which the driver's function `describe` answers.
pub fn describe() -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| CString::new(description().to_string()).unwrap_or_default())
}

/// An option of a driver, as data.
pub fn option(key: &str, kind: &str, default: Option<&str>, help: &str) -> Value {
    let mut option = json!({"key": key, "type": kind, "help": help});
    if let Some(default) = default {
        option["default"] = json!(default);
    }
    option
}

/// The options that both drivers of ROS 2 have.
pub fn options() -> Vec<Value> {
    let domain = DEFAULT_DOMAIN.to_string();
    vec![
        option(
            "domain",
            "integer",
            Some(&domain),
            &format!(
                "Domain, 0 to {MAX_DOMAIN}, as in ROS_DOMAIN_ID; the \
            environment variable itself is not read."
            ),
        ),
        option(
            "participants",
            "integer",
            Some("1"),
            "Number of contexts of the session, 1 or 2, each with one node; the QoS policy `participant` of an end \
                point selects the context by its number (0 or 1).",
        ),
        option("node", "string", None, "Name of the node; the default is tailbound_PID_N."),
        rmw(),
        option(
            "address",
            "string",
            None,
            "Address of the interface that the middleware uses (rmw_cyclonedds_cpp only; other \
            middlewares choose by themselves).",
        ),
        option(
            "peers",
            "list",
            None,
            "Addresses of hosts that are asked for their end points (rmw_cyclonedds_cpp only).",
        ),
        multicast(),
        option(
            "config",
            "config",
            None,
            "Text for CYCLONEDDS_URI in place of the options address, peers and multicast \
            (rmw_cyclonedds_cpp only).",
        ),
    ]
}

fn description() -> Value {
    let rcl = version("rcl").unwrap_or_else(|| "not sourced".to_owned());
    let mut all = json!({
        "name": "rcl",
        "versions": {"driver": env!("CARGO_PKG_VERSION"), "rcl": rcl},
        "abi": format!("{TB_ABI_MAJOR}.{TB_ABI_MINOR}"),
        "capabilities": ["source_timestamps"],
        "limits": {"max_payload_bytes": MAX_PAYLOAD_BYTES},
        "options": options(),
        "qos": qos::described(),
        "receive_modes": ["listener", "block", "spin"],
        "packages": [],
        "roles": ROLES.map(|(role, glob)| json!({"role": role, "name_glob": glob})),
    });
    if let Some(why) = lacks() {
        all["lacks"] = json!(why);
    }
    all
}

fn rmw() -> Value {
    let help = "Middleware that ROS 2 loads, as in RMW_IMPLEMENTATION; the default is the one that ROS 2 chooses.";
    let mut rmw = option("rmw", "string", None, help);
    if let Some(here) = middlewares() {
        rmw["here"] = json!(here);
    }
    rmw
}

fn multicast() -> Value {
    json!({"key": "multicast", "type": "bool", "help": "Whether the middleware may use multicast; without it, the middleware decides \
        (rmw_cyclonedds_cpp only)."})
}
