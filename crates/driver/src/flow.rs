//! How a writer's samples flow: the answer to `query("flow")`, the same words for every driver.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Code, DriverError};
use crate::session::{Endpoint, Session};

/// What is in effect for a writer now. Where a middleware does not tell a figure it is absent, and `by` has the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Peers that are matched now; one that has gone is not among them.
    pub matched: u32,
    /// Whether messages sent with `TB_SEND_BATCH` wait for others or for `flush`.
    pub batching: Batching,
    /// Most messages that are sent and not acknowledged before `send` waits; absent without a limit in messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unacked_limit: Option<u64>,
    /// The limit in octets, as the middleware counts them, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unacked_limit_bytes: Option<u64>,
    /// By which way a message goes to several readers.
    pub data: DataWay,
    /// Octets sent again, as the middleware counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_bytes: Option<u64>,
    /// How often `send` waited for acknowledgements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_times: Option<u64>,
    /// How long it waited in all, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
    /// For each key of [`Flow::EXPLAINED`]: the setting or counter of the middleware that the value is from, or why
    /// there is none.
    pub by: BTreeMap<String, String>,
}

/// State of batching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batching {
    /// The driver has none: every message goes out at once.
    None,
    /// It has, and this writer does not use it.
    Off,
    /// This writer batches.
    On,
}

/// A way of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataWay {
    /// A message of its own for each reader.
    Unicast,
    /// One message for all.
    Multicast,
    /// The middleware chooses.
    Either,
}

impl Flow {
    /// Keys that `by` has.
    pub const EXPLAINED: [&str; 5] = ["batching", "unacked_limit", "data", "retransmitted", "throttled"];
}

impl Session {
    /// How samples of a writer flow; `None` with a driver that does not answer `flow`.
    ///
    /// # Errors
    /// What the driver returned, and an answer that is none.
    pub fn flow(&self, writer: Endpoint) -> Result<Option<Flow>, DriverError> {
        let text = match self.query(writer, "flow") {
            Err(e) if e.code == Code::EUNSUPPORTED => return Ok(None),
            other => other?,
        };
        serde_json::from_str(&text).map(Some).map_err(|e| DriverError {
            driver: self.driver_name().to_owned(),
            call: "query",
            code: Code::EINVAL,
            text: format!("the answer to `flow` is not what the ABI asks for ({e}): {text}"),
        })
    }
}
