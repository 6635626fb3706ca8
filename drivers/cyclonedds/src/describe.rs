//! The description that the `cyclonedds` driver gives of itself, as data.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tailbound_abi::{TB_ABI_MAJOR, TB_ABI_MINOR};

use crate::config::{DEFAULT_DOMAIN, MAX_DOMAIN};
use crate::sample::MAX_PAYLOAD_BYTES;
use crate::{qos, security, threads};

/// Version of the linked Cyclone DDS. A test compares it with the version that the library reports.
pub const NATIVE_VERSION: &str = "11.0.1";

/// Name of the driver. The build with DDS Security has a name of its own, because a study may compare both.
const NAME: &str = if security::LINKED { "cyclonedds-security" } else { "cyclonedds" };

/// Returns the JSON with which the driver's function `describe` answers.
pub fn describe() -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| CString::new(description().to_string()).unwrap_or_default())
}

fn description() -> Value {
    json!({
        "name": NAME,
        "version": NATIVE_VERSION,
        "versions": {"driver": env!("CARGO_PKG_VERSION"), "cyclonedds": NATIVE_VERSION},
        "abi": format!("{TB_ABI_MAJOR}.{TB_ABI_MINOR}"),
        "capabilities": ["batch", "source_timestamps"],
        "limits": {"max_payload_bytes": MAX_PAYLOAD_BYTES},
        "options": options(),
        "qos": qos::described(),
        "receive_modes": ["listener", "block", "spin"],
        "packages": if security::LINKED { json!(["libssl3"]) } else { json!([]) },
        "roles": threads::ROLES.map(|(role, glob)| json!({"role": role, "name_glob": glob})),
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
    let mut all = json!([
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
            "Addresses at which participants are searched, with or without a port; a host name means all addresses of \
                the host."
        ),
        word(
            "multicast",
            &["on", "off", "spdp"],
            "Use of multicast; spdp means for discovery only. If not given, multicast is used if the interface has it."
        ),
        with(
            option(
                "multicast_ttl",
                "integer",
                "Maximum number of hops of multicast; 0 stays on the host, 1 on the link."
            ),
            "default",
            json!("1")
        ),
        with(
            word("naming", &["dds", "ros2"], "Names of topics and type on the wire: plain, or as in ROS 2."),
            "default",
            json!("dds")
        ),
        with(
            word(
                "instance",
                &["own", "shared"],
                "Whether each session has its own Cyclone domain instance, or all sessions of this process with this domain share one: then Cyclone delivers between them directly.",
            ),
            "default",
            json!("own")
        ),
        with(
            option(
                "participants",
                "integer",
                "Number of participants of the session, 1 or 2, in one domain instance; the QoS policy `participant` \
                    of an end point selects the participant by its number (0 or 1)."
            ),
            "default",
            json!("1")
        ),
        with(word("transport", &["udp"], "Transport of samples."), "default", json!("udp")),
        bytes("max_message_size", "Largest UDP payload (General/MaxMessageSize)."),
        bytes("fragment_size", "Size of the fragments of a large sample (General/FragmentSize)."),
        bytes(
            "socket_receive_buffer_size",
            "Size of the receive buffer that is requested from the kernel (Internal/SocketReceiveBufferSize)."
        ),
        bytes(
            "socket_send_buffer_size",
            "Size of the send buffer that is requested from the kernel (Internal/SocketSendBufferSize)."
        ),
        word(
            "receive_threads",
            &["single", "multiple"],
            "One receive thread for all sockets, or one for each socket (Internal/MultipleReceiveThreads)."
        ),
        option(
            "max_participant_index",
            "integer",
            "Number of participants of one host that are searched without multicast (Discovery/MaxAutoParticipantIndex)."
        ),
        word(
            "data",
            &["unicast", "multicast"],
            "How a sample is sent to several readers: one message for each reader, or one for all (AllowMulticast, NetworkInterface/@prefer_multicast). If not given, Cyclone chooses."
        ),
        option(
            "unacked_limit",
            "integer",
            "Number of unacknowledged messages at which a reliable writer with history keep-all waits (Watermarks, in bytes that follow from `payload`)."
        ),
        bytes("payload", "Payload of the messages that `unacked_limit` counts."),
        option(
            "threads",
            "list",
            "Scheduling of Cyclone's threads by role (Threads/Thread): ROLE:realtime:PRIORITY:CPUS or ROLE:timeshare::CPUS, CPUs as 0+1."
        ),
        option(
            "config",
            "config",
            "Your own configuration in the form of CYCLONEDDS_URI (XML, or a file:// address), used unchanged, in \
                place of the configuration that the driver generates. The environment variable is never read."
        ),
    ]);
    if let (true, Some(all)) = (security::LINKED, all.as_array_mut()) {
        all.extend(security::FILES.iter().map(|file| option(file.key, "string", file.help)));
    }
    all
}
