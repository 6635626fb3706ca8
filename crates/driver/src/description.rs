//! What a driver says of itself: the JSON of `describe`, by which options are checked before anything runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `describe`. Unknown members are ignored, so that a newer driver still loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// Name by which a study asks for the driver: lower-case letters, digits and `_`.
    pub name: String,
    /// Versions by component: `driver`, and each native library by its own name.
    pub versions: BTreeMap<String, String>,
    /// What the driver can do beyond the mandatory functions: `loan`, `batch`, `txtime`, `scripted_clock`,
    /// `kernel_rx_timestamps`, `hw_rx_timestamps`, `source_timestamps`.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Limits.
    pub limits: Limits,
    /// Options of `open`.
    #[serde(default)]
    pub options: Vec<DriverOption>,
    /// QoS policies of `create`.
    #[serde(default)]
    pub qos: Vec<QosPolicy>,
    /// Ways in which a reader can be served.
    pub receive_modes: Vec<ReceiveMode>,
    /// Packages of the native library, as the distributions name them; empty when nothing is needed.
    #[serde(default)]
    pub packages: Vec<String>,
    /// How to tell the driver's own threads apart.
    #[serde(default)]
    pub roles: Vec<ThreadRole>,
}

impl Description {
    /// Whether the driver has a capability.
    pub fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|c| c == capability)
    }

    /// The option of that key.
    pub fn option(&self, key: &str) -> Option<&DriverOption> {
        self.options.iter().find(|o| o.key == key)
    }

    /// Whether readers can be served in that mode.
    pub fn receives(&self, mode: ReceiveMode) -> bool {
        self.receive_modes.contains(&mode)
    }
}

/// Limits of a driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Longest payload in octets.
    pub max_payload_bytes: u64,
}

/// One option of `open`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverOption {
    /// Key in `tb_kv`.
    pub key: String,
    /// How the value is written.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// Value that applies when the option is not given; absent when the library decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Unit of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Allowed words of type `enum`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// One sentence for people.
    pub help: String,
}

/// How an option's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OptionType {
    /// Any text.
    String,
    /// A whole decimal number.
    Integer,
    /// A decimal number.
    Number,
    /// `on` or `off`.
    Bool,
    /// One of `values`.
    Enum,
    /// Items joined by commas.
    List,
    /// The text of a configuration file, or a path to it.
    Config,
}

/// One QoS policy that `create` understands and `query("qos")` reads back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QosPolicy {
    /// Key in `tb_kv`, e.g. `reliability`.
    pub policy: String,
    /// Values, or examples when `open_ended`.
    pub values: Vec<String>,
    /// Other values than those listed are understood too (a number, a duration).
    #[serde(default)]
    pub open_ended: bool,
}

/// How a reader is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiveMode {
    /// The middleware calls on its own thread.
    Listener,
    /// A thread of the host blocks in `wait`.
    Block,
    /// A thread of the host calls `take` without pause.
    Spin,
}

impl ReceiveMode {
    /// All of them.
    pub const ALL: [ReceiveMode; 3] = [ReceiveMode::Listener, ReceiveMode::Block, ReceiveMode::Spin];

    /// The constant of the ABI.
    pub fn raw(self) -> std::ffi::c_int {
        match self {
            ReceiveMode::Listener => tailbound_abi::TB_LISTENER,
            ReceiveMode::Block => tailbound_abi::TB_BLOCK,
            ReceiveMode::Spin => tailbound_abi::TB_SPIN,
        }
    }

    /// The word used in studies.
    pub fn name(self) -> &'static str {
        match self {
            ReceiveMode::Listener => "listener",
            ReceiveMode::Block => "block",
            ReceiveMode::Spin => "spin",
        }
    }
}

/// How threads of the driver are told apart: by name, or by the call in which they were born.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRole {
    /// `receive`, `send`, `event`, `discovery` or `other`.
    pub role: String,
    /// Pattern with `*` over the thread's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_glob: Option<String>,
    /// Call during which the thread is made: `open` or `create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born_in: Option<String>,
    /// Which of the threads made in that call, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
}
