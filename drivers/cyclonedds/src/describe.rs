//! What the driver says of itself, as data.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tailbound_abi::side::Session as _;
use tailbound_abi::{TB_ABI_MAJOR, TB_ABI_MINOR};

use crate::config::{DEFAULT_DOMAIN, MAX_DOMAIN};
use crate::qos;
use crate::session::Session;

/// Version of the Cyclone DDS that is linked in. A test compares it with what the library itself says.
pub const NATIVE_VERSION: &str = "11.0.1";

/// Roles of Cyclone's threads by name. The first match counts.
pub const ROLES: [(&str, &str); 9] = [
    ("receive", "recv*"),
    ("event", "tev"),
    ("discovery", "dq.builtins"),
    ("receive", "dq.*"),
    ("send", "xmit*"),
    ("discovery", "lease"),
    ("other", "gc"),
    ("other", "debmon"),
    ("other", "fsm"),
];

/// The role of a thread of that name, if it is one of Cyclone's.
pub fn role(thread: &str) -> Option<&'static str> {
    let matches = |glob: &str| match glob.strip_suffix('*') {
        Some(start) => thread.starts_with(start),
        None => thread == glob,
    };
    ROLES.iter().find(|(_, glob)| matches(glob)).map(|(role, _)| *role)
}

/// The JSON of `describe`.
pub fn describe() -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| CString::new(description().to_string()).unwrap_or_default())
}

fn description() -> Value {
    json!({
        "name": "cyclonedds",
        "version": NATIVE_VERSION,
        "versions": {"driver": env!("CARGO_PKG_VERSION"), "cyclonedds": NATIVE_VERSION},
        "abi": format!("{TB_ABI_MAJOR}.{TB_ABI_MINOR}"),
        "capabilities": ["batch", "source_timestamps"],
        "limits": {"max_payload_bytes": Session::MAX_PAYLOAD_BYTES},
        "options": options(),
        "qos": qos::described(),
        "receive_modes": ["listener", "block", "spin"],
        "packages": [],
        "roles": ROLES.map(|(role, glob)| json!({"role": role, "name_glob": glob})),
    })
}

fn options() -> Value {
    let option = |key: &str, kind: &str, help: &str| json!({"key": key, "type": kind, "help": help});
    let with = |mut base: Value, member: &str, value: Value| {
        base[member] = value;
        base
    };
    let word = |key: &str, values: &[&str], help: &str| with(option(key, "enum", help), "values", json!(values));
    let bytes = |key: &str, help: &str| with(option(key, "integer", help), "unit", json!("B"));
    json!([
        with(
            option("domain", "integer", &format!("DDS domain on the network, 0 to {MAX_DOMAIN}.")),
            "default",
            json!(DEFAULT_DOMAIN.to_string())
        ),
        option("interface", "string", "Name of the network interface; without it Cyclone chooses one."),
        option("address", "string", "Address of the network interface, in place of its name."),
        option(
            "peers",
            "list",
            "Addresses where participants are looked for, with or without a port; a name stands for all its addresses."
        ),
        word(
            "multicast",
            &["on", "off", "spdp"],
            "Use of multicast; spdp: for discovery only. Without it: if the interface has it."
        ),
        with(
            option("multicast_ttl", "integer", "Hops that multicast may go; 0 stays on the host, 1 on the link."),
            "default",
            json!("1")
        ),
        with(
            word("naming", &["dds", "ros2"], "Names of topics and type on the wire: plain, or as ROS 2 has them."),
            "default",
            json!("dds")
        ),
        with(
            word(
                "instance",
                &["own", "shared"],
                "Each session its own Cyclone domain instance, or one for all of this process with this domain: then Cyclone delivers between them directly.",
            ),
            "default",
            json!("own")
        ),
        with(
            option(
                "participants",
                "integer",
                "Participants of the session, 1 or 2, in one domain instance; an end point is in that which `participant` of its creation names, from 0."
            ),
            "default",
            json!("1")
        ),
        with(word("transport", &["udp"], "Transport."), "default", json!("udp")),
        bytes("max_message_size", "Largest UDP payload (General/MaxMessageSize)."),
        bytes("fragment_size", "Size of the fragments of a large sample (General/FragmentSize)."),
        bytes("socket_receive_buffer_size", "Receive buffer asked of the kernel (Internal/SocketReceiveBufferSize)."),
        bytes("socket_send_buffer_size", "Send buffer asked of the kernel (Internal/SocketSendBufferSize)."),
        word(
            "receive_threads",
            &["single", "multiple"],
            "One receive thread for all sockets, or one each (Internal/MultipleReceiveThreads)."
        ),
        option(
            "max_participant_index",
            "integer",
            "How many participants of one host are looked for without multicast (Discovery/MaxAutoParticipantIndex)."
        ),
        word(
            "data",
            &["unicast", "multicast"],
            "Way of samples to several readers: one each, or one for all (AllowMulticast, NetworkInterface/@prefer_multicast). Without it Cyclone chooses."
        ),
        option(
            "unacked_limit",
            "integer",
            "Messages that a reliable writer with history keep-all has unacknowledged before it waits (Watermarks, as octets of `payload`)."
        ),
        bytes("payload", "Payload of the messages that unacked_limit counts."),
        option(
            "threads",
            "list",
            "Scheduling of Cyclone's threads by role (Threads/Thread): ROLE:realtime:PRIORITY:CPUS or ROLE:timeshare::CPUS, CPUs as 0+1."
        ),
        option(
            "config",
            "config",
            "Your own configuration in the form of CYCLONEDDS_URI (XML, or a file:// address), used exactly as it is: nothing is generated. The environment variable is never read."
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_of_cyclones_threads() {
        for (thread, expected) in [
            ("recv", Some("receive")),
            ("recvMC", Some("receive")),
            ("tev", Some("event")),
            ("dq.builtins", Some("discovery")),
            ("dq.user", Some("receive")),
            ("xmit.user", Some("send")),
            ("gc", Some("other")),
            ("tailbound", None),
        ] {
            assert_eq!(role(thread), expected, "{thread}");
        }
    }
}
