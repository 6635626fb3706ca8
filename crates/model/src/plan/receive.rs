//! Receive modes of the ends of a measurement.

use serde::{Deserialize, Serialize};

/// Receive mode: how the measuring code receives messages from the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveMode {
    /// Messages are received in a callback on a thread of the middleware.
    #[default]
    Listener,
    /// A thread of the end blocks until a message arrives.
    Block,
    /// A thread of the end polls for messages without pause.
    Spin,
    /// One thread waits for the next slot and for messages at the same time, and handles them one after the other.
    Executor,
}
