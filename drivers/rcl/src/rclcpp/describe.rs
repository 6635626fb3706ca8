//! The description that the driver `rclcpp` gives of itself, as data.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use serde_json::json;
use tailbound_abi::{TB_ABI_MAJOR, TB_ABI_MINOR};

use super::{options, shim};
use crate::describe::{ROLES, options as common_options};
use crate::environment::{lacks, version};
use crate::message::MAX_PAYLOAD_BYTES;
use crate::qos;

/// Roles of threads by their names: threads of the executor, which run the program of a user, and threads of the middleware.
pub fn roles() -> Vec<(&'static str, &'static str)> {
    [("main", "rclcpp.exec")].into_iter().chain(ROLES).collect()
}

/// Returns the JSON with which the driver's function `describe` answers.
pub fn describe() -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| {
        let rclcpp = version("rclcpp").unwrap_or_else(|| "not sourced".to_owned());
        let options: Vec<_> = common_options().into_iter().chain(options::described()).collect();
        let roles: Vec<_> = roles().iter().map(|(role, glob)| json!({"role": role, "name_glob": glob})).collect();
        let mut all = json!({
            "name": "rclcpp",
            "versions": {"driver": env!("CARGO_PKG_VERSION"), "rclcpp": rclcpp},
            "abi": format!("{TB_ABI_MAJOR}.{TB_ABI_MINOR}"),
            "capabilities": ["source_timestamps"],
            "limits": {"max_payload_bytes": MAX_PAYLOAD_BYTES},
            "options": options,
            "qos": qos::described(),
            "receive_modes": ["listener"],
            "packages": [],
            "roles": roles,
        });
        if let Some(why) = lacks().or_else(shim::lacks) {
            all["lacks"] = json!(why);
        }
        CString::new(all.to_string()).unwrap_or_default()
    })
}
