//! Send settings and counters of a writer: the answer to `query("flow")`, with the same names for every driver.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::error::{Code, DriverError};
use crate::session::Session;

/// Send settings and counters of a writer. If a middleware does not report a value, the value is absent and `by`
/// contains the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Number of peers that are matched with the writer now.
    pub matched: u32,
    /// Whether messages sent with `TB_SEND_BATCH` wait for further messages or for `flush`.
    pub batching: Batching,
    /// Number of messages that may be sent and not acknowledged before `send` waits; absent if there is no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unacked_limit: Option<u64>,
    /// Number of bytes that may be sent and not acknowledged, as the middleware counts them; absent if there is no such
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unacked_limit_bytes: Option<u64>,
    /// How a message of the writer is sent to several readers.
    pub data: DataWay,
    /// Number of bytes that the writer sent again, as the middleware counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_bytes: Option<u64>,
    /// Number of times that the writer's `send` waited for acknowledgements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_times: Option<u64>,
    /// Total time for which the writer's `send` waited for acknowledgements, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
    /// For each key of [`Flow::EXPLAINED`]: the setting or counter of the middleware from which the value comes, or the
    /// reason why there is no value.
    pub by: BTreeMap<String, String>,
}

/// Whether a writer collects messages in batches before it sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batching {
    /// The driver does not support batches: every message is sent immediately.
    None,
    /// The driver supports batches, but the writer does not use them.
    Off,
    /// The writer collects messages and sends several messages together.
    On,
}

/// How a writer's message is sent to several readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataWay {
    /// Each reader gets a separate message (unicast).
    Unicast,
    /// One message (multicast) goes to all readers.
    Multicast,
    /// The middleware itself chooses between unicast and multicast.
    Either,
}

impl Flow {
    /// Keys that the member `by` of a writer's flow must contain.
    pub const EXPLAINED: [&str; 5] = ["batching", "unacked_limit", "data", "retransmitted", "throttled"];
}

impl Session {
    /// Reads the send settings and counters of a writer; `None` if the driver does not answer `flow`.
    ///
    /// # Errors
    /// The driver returned an error, or an answer that is not valid.
    pub fn flow(&self, writer: Endpoint) -> Result<Option<Flow>, DriverError> {
        let text = match self.query(writer, "flow") {
            Err(e) if e.code == Code::EUNSUPPORTED => return Ok(None),
            other => other?,
        };
        serde_json::from_str(&text).map(Some).map_err(|e| DriverError {
            driver: self.driver_name().to_owned(),
            call: "query",
            code: Code::EINVAL,
            text: format!("the answer to `flow` does not have the form that the ABI requires ({e}): {text}"),
        })
    }
}
