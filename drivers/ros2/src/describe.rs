//! The description that the `ros2` driver gives of itself, as data.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tailbound_abi::{TB_ABI_MAJOR, TB_ABI_MINOR};

use crate::options::{DEFAULT_DOMAIN, MAX_DOMAIN};
use crate::sample::MAX_PAYLOAD_BYTES;
use crate::{events, qos};

/// Version of the library ros2-client; a test compares it with the lock file.
pub const ROS2_CLIENT: &str = "0.12.1";
/// Version of the library RustDDS; a test compares it with the lock file.
pub const RUSTDDS: &str = "0.15.1";

/// Roles of threads by their names, which the kernel truncates to 15 characters. One thread of RustDDS receives and
/// sends.
pub const ROLES: [(&str, &str); 3] =
    [("receive", "RustDDS Partici"), ("discovery", "RustDDS discove"), ("discovery", events::NAME)];

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
    let word = |key: &str, value: &str, help: &str| {
        let mut option = option(key, "enum", Some(value), help);
        option["values"] = json!([value]);
        option
    };
    let bytes = |key: &str, help: &str| {
        let mut option = option(key, "integer", Some("8388608"), help);
        option["unit"] = json!("B");
        option
    };
    let domain = DEFAULT_DOMAIN.to_string();
    json!({
        "name": "ros2",
        "version": RUSTDDS,
        "versions": {"driver": env!("CARGO_PKG_VERSION"), "ros2-client": ROS2_CLIENT, "rustdds": RUSTDDS},
        "abi": format!("{TB_ABI_MAJOR}.{TB_ABI_MINOR}"),
        "capabilities": ["source_timestamps"],
        "limits": {"max_payload_bytes": MAX_PAYLOAD_BYTES},
        "options": [
            option("domain", "integer", Some(&domain), &format!("DDS domain, 0 to {MAX_DOMAIN}, as in ROS_DOMAIN_ID; \
                the environment variable itself is not read.")),
            option(
                "participants",
                "integer",
                Some("1"),
                "Number of participants of the session, 1 or 2, each with one node; the QoS policy `participant` of \
                    an end point selects the participant by its number (0 or 1)."
            ),
            option("node", "string", None, "Name of the node, with its namespace; the default is /tailbound_PID_N."),
            option("address", "string", None, "IPv4 address of the interface that is announced and used for multicast. The sockets are bound to all addresses."),
            word("naming", "ros2", "Names of topics and type on the wire."),
            word("transport", "udp", "Transport of samples."),
            bytes("socket_receive_buffer_size", "Size of the receive buffer that is requested from the kernel."),
            bytes("socket_send_buffer_size", "Size of the send buffer that is requested from the kernel."),
        ],
        "qos": qos::described(),
        "receive_modes": ["block", "spin"],
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
        for (name, version) in [("ros2-client", ROS2_CLIENT), ("rustdds", RUSTDDS)] {
            assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"")), "{name} {version}");
        }
    }
}
