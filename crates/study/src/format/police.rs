//! Keys of a study file for the policing of received packets by a gate.

use super::{Duration, Size};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// A gate for the IPv4 packets that the interface of an end receives while messages are measured (IEEE 802.1Qci, action `gate` of
/// tc). What arrives while the gate is closed is dropped.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PoliceKeys {
    /// The gate control list, which begins again after its last entry.
    pub entries: At<Vec<PoliceEntryKeys>>,
    /// The list begins this time after a whole second of TAI (CLOCK_TAI). Default: 0 s.
    pub base: Option<At<Duration>>,
    /// The packets that are policed; all others pass. Default: all IPv4 packets.
    pub only: Option<At<PoliceOnlyChoice>>,
}

/// Packets that are policed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PoliceOnlyChoice {
    /// UDP packets to the port at which the end receives the messages (driver `udp`).
    Messages,
    /// UDP packets to this port. Of a datagram in several fragments, only the first fragment has a port.
    Port(At<u32>),
}

/// An entry of the gate control list for received packets.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PoliceEntryKeys {
    /// Whether received packets pass.
    pub gate: GateChoice,
    /// Time for which the entry is in force.
    #[serde(rename = "for")]
    pub time: At<Duration>,
    /// Number of bytes that pass while the entry is in force, for an open gate; a packet counts with its IP header. Default: no limit.
    pub most: Option<At<Size>>,
}

/// Whether received packets pass a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GateChoice {
    /// Received packets pass.
    Open,
    /// Received packets are dropped.
    Closed,
}
