//! Common parts of the protocol between the controller and every agent: hello messages, heartbeats, time limits, and
//! the reasons for which an agent is lost.

use std::time::Duration;
use tailbound_wire::{CAUSES, Hello, Message, PROTOCOL_MAX, PROTOCOL_MIN, SO_FAR, WireError};

/// Time without received bytes after which an agent on this host counts as lost. Agents send a heartbeat every second.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// Time without received bytes after which an agent on another host ends itself, ns.
pub(super) const LEASE_NS: i64 = 30_000_000_000;
/// Period of the controller's heartbeats to agents on other hosts, much shorter than the silence after which such an
/// agent ends itself.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Reason why an agent can no longer be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Lost {
    /// The agent's stream has ended, so that nothing more can be received. The text says how the agent ended.
    #[error("{0}")]
    StreamEnded(String),
    /// The controller could not send a message to the agent.
    #[error("the agent no longer reads its control stream ({0})")]
    NotReading(String),
    /// The controller cannot read the agent's stream.
    #[error("the control stream of the agent broke ({0})")]
    StreamBroken(String),
    /// Nothing was received from the agent, not even a heartbeat.
    #[error("nothing was received from the agent for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The agent sent heartbeats, but no answer.
    #[error("the agent did not answer in time")]
    NoAnswer,
    /// The bytes that the agent sent are not frames of the protocol between controller and agent.
    #[error("{0}")]
    BadFrame(#[from] WireError),
    /// The agent sent a message that the protocol does not allow at this point.
    #[error("the agent sent {got} instead of {expected}")]
    Unexpected {
        /// Message that was received from the agent, as text.
        got: String,
        /// Name of the message that the protocol expects at this point.
        expected: &'static str,
    },
    /// Controller and agent have no protocol version in common.
    #[error(
        "the agent supports protocol {min} to {max}, this release supports {PROTOCOL_MIN} to {PROTOCOL_MAX}: use \
         tailbound {release} on both sides"
    )]
    OtherProtocol {
        /// Lowest protocol version that the agent supports.
        min: u32,
        /// Highest protocol version that the agent supports.
        max: u32,
        /// Tailbound release of the agent.
        release: String,
    },
    /// The agent sent sample memory that does not fit the controller's order.
    #[error("{0}")]
    BadMemory(&'static str),
    /// The agent reported that its measuring process failed.
    #[error("{0}")]
    Reported(String),
}

impl Lost {
    /// Makes the error for a message that the protocol does not allow at this point.
    pub fn unexpected(got: &Message, expected: &'static str) -> Lost {
        Lost::Unexpected { got: format!("{got:?}"), expected }
    }

    /// True if the agent's stream has ended, so that the agent cannot be asked for its samples.
    pub fn is_stream_ended(&self) -> bool {
        matches!(self, Lost::StreamEnded(_))
    }
}

/// Makes the hello message, which the controller sends to an agent first.
pub(super) fn hello(lease_ns: i64) -> Hello {
    Hello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        tailbound: env!("CARGO_PKG_VERSION").into(),
        session: String::new(),
        capabilities: vec![crate::log::capability(), SO_FAR.to_owned(), CAUSES.to_owned()],
        lease_ns,
        boot_id: String::new(),
        clock: String::new(),
        pid: std::process::id() as i32,
    }
}

/// Checks the hello message of an agent: both sides must have a protocol version in common.
///
/// # Errors
/// The agent has no common protocol version, or its first message is not hello.
pub(super) fn accept_hello(message: Message) -> Result<Hello, Lost> {
    match message {
        Message::Hello(h) if h.protocol_max >= PROTOCOL_MIN && h.protocol_min <= PROTOCOL_MAX => Ok(h),
        Message::Hello(h) => {
            Err(Lost::OtherProtocol { min: h.protocol_min, max: h.protocol_max, release: h.tailbound })
        }
        other => Err(Lost::unexpected(&other, "hello")),
    }
}
