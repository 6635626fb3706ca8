//! The description that the `iceoryx2` driver gives of itself, as data.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tailbound_abi::{TB_ABI_MAJOR, TB_ABI_MINOR};

use crate::options::{DEFAULT_DOMAIN, DEFAULT_PEERS, MAX_DOMAIN, MOST_PEERS};
use crate::qos;
use crate::session::MAX_PAYLOAD_BYTES;

/// Version of the library iceoryx2; a test compares it with the lock file.
pub const ICEORYX2: &str = "0.10.0";

/// Returns the JSON with which the driver's function `describe` answers.
pub fn describe() -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| CString::new(description().to_string()).unwrap_or_default())
}

fn description() -> Value {
    let number = |key: &str, default: Option<String>, help: String| {
        let mut option = json!({"key": key, "type": "integer", "help": help});
        if let Some(default) = default {
            option["default"] = json!(default);
        }
        option
    };
    json!({
        "name": "iceoryx2",
        "version": ICEORYX2,
        "versions": {"driver": env!("CARGO_PKG_VERSION"), "iceoryx2": ICEORYX2},
        "abi": format!("{TB_ABI_MAJOR}.{TB_ABI_MINOR}"),
        "capabilities": [],
        "limits": {"max_payload_bytes": MAX_PAYLOAD_BYTES},
        "options": [
            number(
                "domain",
                Some(DEFAULT_DOMAIN.to_string()),
                format!("Domain, 0 to {MAX_DOMAIN}: the names of all files begin with iox2_tbDOMAIN_, so that other programs \
                    with iceoryx2 are not joined.")
            ),
            number(
                "max_peers",
                Some(DEFAULT_PEERS.to_string()),
                format!("Number of writers, and of readers, that a topic may have, 1 to {MOST_PEERS}: each writer has shared \
                    memory for the buffers of as many readers. A study sets it to the number that it has.")
            ),
            number(
                "buffer_size",
                None,
                "Number of messages in the buffer of a reader with history=keep-all, for each writer; the default is 1,000, or as \
                    many as fit into 32 MiB for all readers.".to_owned()
            ),
            {"key": "transport", "type": "enum", "default": "shm", "values": ["shm"],
             "help": "Transport of samples: shared memory of one host."},
        ],
        "qos": qos::described(),
        "receive_modes": ["block", "spin"],
        "packages": [],
        "roles": [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = include_str!("../Cargo.lock");
        assert!(lock.contains(&format!("name = \"iceoryx2\"\nversion = \"{ICEORYX2}\"")));
    }
}
