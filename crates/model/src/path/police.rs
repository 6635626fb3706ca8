//! Policing of received packets by a gate (IEEE 802.1Qci): as the study asks for it, and as the kernel reports it.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A gate for the IPv4 packets that the interface of an end receives, as the study asks for it. What arrives while the gate is closed
/// is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PoliceSpec {
    /// The gate control list, which begins again after its last entry.
    pub entries: Vec<PoliceEntry>,
    /// The list begins this time after a whole second of CLOCK_TAI.
    #[serde(default)]
    pub base: Nanos,
    /// The packets that the gate polices; all others pass. `None` = all IPv4 packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<PoliceOnly>,
}

/// Packets that are policed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoliceOnly {
    /// UDP packets to the port at which the driver of the end receives the messages.
    Messages,
    /// UDP packets to this port.
    Port(u16),
}

/// An entry of the gate control list for received packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PoliceEntry {
    /// Whether the gate is open.
    pub open: bool,
    /// Time for which the entry is in force.
    pub time: Nanos,
    /// Number of bytes after which the gate drops everything else of the entry; `None` = no limit. A packet counts with its IP header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_bytes: Option<u32>,
}

impl PoliceSpec {
    /// Time after which the list begins again.
    pub fn cycle(&self) -> Nanos {
        Nanos(self.entries.iter().map(|entry| entry.time.0).sum())
    }
}

impl fmt::Display for PoliceSpec {
    /// For example `open 5 ms, closed 15 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, entry) in self.entries.iter().enumerate() {
            let word = if entry.open { "open" } else { "closed" };
            write!(f, "{}{word} {}", if number > 0 { ", " } else { "" }, entry.time)?;
            entry.most_bytes.map_or(Ok(()), |most| write!(f, " for at most {most} B"))?;
        }
        match self.only {
            None => Ok(()),
            Some(PoliceOnly::Messages) => f.write_str(", only the messages"),
            Some(PoliceOnly::Port(port)) => write!(f, ", only to port {port}"),
        }
    }
}

/// A gate for received packets during a trial, as the kernel reports it (action `gate`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PoliceFact {
    /// The gate control list.
    pub entries: Vec<PoliceEntry>,
    /// Time after which the list begins again, ns.
    pub cycle_ns: i64,
    /// Time of CLOCK_TAI to which the begins of the cycles refer, ns.
    pub base_ns: i64,
    /// Number of IPv4 packets that reached the gate while messages were measured, with the warm-up.
    pub packets: u64,
    /// Number of these packets that the gate dropped.
    pub dropped: u64,
    /// Number of dropped packets that were beyond the bytes of an open entry.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overfull: u64,
    /// UDP port to which packets are policed; `None` = all IPv4 packets are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycle_is_the_sum_of_the_entries() {
        let entry = |open, ms| PoliceEntry { open, time: Nanos::from_millis(ms), most_bytes: None };
        let mut police = PoliceSpec { entries: vec![entry(true, 5), entry(false, 15)], base: Nanos(0), only: None };
        assert_eq!((police.cycle(), police.to_string()), (Nanos::from_millis(20), "open 5 ms, closed 15 ms".into()));
        (police.entries[0].most_bytes, police.only) = (Some(900), Some(PoliceOnly::Port(7_411)));
        assert_eq!(police.to_string(), "open 5 ms for at most 900 B, closed 15 ms, only to port 7411");
    }
}
