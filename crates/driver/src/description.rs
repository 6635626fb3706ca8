//! The driver's description of itself: the JSON that `describe` returns. Options are checked against this description
//! before anything runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The JSON that a driver's function `describe` returns. Unknown members of the JSON are ignored, so a newer driver can
/// still be loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// Name of the driver in a study: lower-case letters, digits and `_`.
    pub name: String,
    /// Version of each component: `driver`, and each native library by its own name.
    pub versions: BTreeMap<String, String>,
    /// Optional features of the driver: `loan`, `batch`, `txtime`, `scripted_clock`, `kernel_rx_timestamps`,
    /// `hw_rx_timestamps`, `source_timestamps`.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Limits of the driver, for example the longest payload.
    pub limits: Limits,
    /// Options that the driver's function `open` accepts.
    #[serde(default)]
    pub options: Vec<DriverOption>,
    /// QoS policies that the driver's function `create` accepts.
    #[serde(default)]
    pub qos: Vec<QosPolicy>,
    /// Receive modes that readers of the driver support.
    pub receive_modes: Vec<ReceiveMode>,
    /// Names of the distribution packages with the driver's native library; empty if no package is needed.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Reason why the driver cannot be opened on this machine, with what to do; absent if nothing is known to be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// Rules that give a role to each of the driver's threads.
    #[serde(default)]
    pub roles: Vec<ThreadRole>,
}

impl Description {
    /// Whether the driver's description declares the capability with this name.
    pub fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|c| c == capability)
    }

    /// Finds the driver option with this key in the driver's description.
    pub fn option(&self, key: &str) -> Option<&DriverOption> {
        self.options.iter().find(|o| o.key == key)
    }

    /// Whether the driver supports the given receive mode.
    pub fn receives(&self, mode: ReceiveMode) -> bool {
        self.receive_modes.contains(&mode)
    }
}

/// Limits of a driver, for example the longest payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Longest payload that the driver supports, in bytes.
    pub max_payload_bytes: u64,
}

/// One option that the driver's function `open` accepts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverOption {
    /// Key of the driver option, as the driver gets it in a `tb_kv`.
    pub key: String,
    /// Form of the driver option's value, e.g. a whole number.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// Value of the driver option if the option is not given; absent if the library decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Unit of the driver option's value, if the value is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Allowed words for the driver option, if its type is `enum`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Values that are possible on this machine, if the driver knows them; other values are not possible here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<Vec<String>>,
    /// Description of the driver option in one sentence.
    pub help: String,
}

/// Form of a driver option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OptionType {
    /// The value of the driver option is any text.
    String,
    /// The value of the driver option is a whole decimal number.
    Integer,
    /// The value of the driver option is a decimal number.
    Number,
    /// The value of the driver option is `on` or `off`.
    Bool,
    /// The value of the driver option is one of the words in `values`.
    Enum,
    /// The value of the driver option is a list of items separated by commas.
    List,
    /// The value of the driver option is the text of a configuration file, or a path to such a file.
    Config,
}

/// One QoS policy that `create` accepts and `query("qos")` reads back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QosPolicy {
    /// Key of the QoS policy in `tb_kv`, for example `reliability`.
    pub policy: String,
    /// Allowed values of the QoS policy; only examples if `open_ended` is true.
    pub values: Vec<String>,
    /// Whether the QoS policy accepts other values too, such as numbers or durations.
    #[serde(default)]
    pub open_ended: bool,
    /// Values that the QoS policy cannot have together with the value of an option.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<Exclusion>,
}

/// A value of a QoS policy that is impossible with the value of a driver option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exclusion {
    /// Value of the QoS policy that is impossible.
    pub value: String,
    /// Key of the driver option with which the value of the QoS policy is impossible.
    pub option: String,
    /// Value of the driver option with which the value of the QoS policy is impossible.
    pub is: String,
    /// Reason why both are impossible together.
    pub why: String,
}

/// Receive mode: how a reader receives samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiveMode {
    /// The middleware calls the loading program on a thread of the middleware.
    Listener,
    /// A thread of the loading program blocks in the function `wait`.
    Block,
    /// A thread of the loading program polls with the function `take`.
    Spin,
}

impl ReceiveMode {
    /// All receive modes that a driver can support.
    pub const ALL: [ReceiveMode; 3] = [ReceiveMode::Listener, ReceiveMode::Block, ReceiveMode::Spin];

    /// Constant of the receive mode in the ABI of drivers.
    pub fn raw(self) -> std::ffi::c_int {
        match self {
            ReceiveMode::Listener => tailbound_abi::TB_LISTENER,
            ReceiveMode::Block => tailbound_abi::TB_BLOCK,
            ReceiveMode::Spin => tailbound_abi::TB_SPIN,
        }
    }

    /// Word for the receive mode in a study file.
    pub fn name(self) -> &'static str {
        match self {
            ReceiveMode::Listener => "listener",
            ReceiveMode::Block => "block",
            ReceiveMode::Spin => "spin",
        }
    }
}

/// A rule that gives threads of the driver a role: by their name, or by the call during which they were created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRole {
    /// Role of the driver's threads to which the rule applies: `main` (threads that run the callbacks of a program, as an executor
    /// does), `receive`, `send`, `event`, `discovery` or `other`.
    pub role: String,
    /// Pattern for the name of the thread, in which `*` matches any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_glob: Option<String>,
    /// Function of the driver during whose call the thread is created: `open` or `create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born_in: Option<String>,
    /// Index of the thread among the threads that are created during the same call, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
}
