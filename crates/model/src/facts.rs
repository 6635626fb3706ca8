//! Circumstances of a result.

use serde::{Deserialize, Serialize};

/// One thing read from a host. A fact that could not be read is kept, with the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Dotted key, e.g. `kernel.release`, `cpu.governor`, `sched.rt_runtime_us`.
    pub key: String,
    /// What was read.
    pub value: FactValue,
    /// Where: a file or a call.
    pub source: String,
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactValue {
    /// Text as read, trimmed.
    Text(String),
    /// A whole number (unit in the key).
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// Not read, and why.
    Unknown(String),
}

/// All facts of one host at one time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostFacts {
    /// Host name.
    pub host: String,
    /// Boot id of the kernel.
    pub boot_id: String,
    /// Sorted by key.
    pub facts: Vec<Fact>,
}

impl HostFacts {
    /// The fact with this key.
    pub fn get(&self, key: &str) -> Option<&FactValue> {
        self.facts.iter().find(|f| f.key == key).map(|f| &f.value)
    }
}

/// What was found about the path before the driver started, and its counters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PathFacts {
    /// `ping` or `pong` -> interface, address, MTU and so on.
    pub ends: Vec<PathEnd>,
    /// Largest datagram (UDP payload octets) that passed, of those tried; 0 = none.
    pub max_datagram_ping_to_pong: u64,
    /// As above, the other way.
    pub max_datagram_pong_to_ping: u64,
    /// Largest datagram sent that must have been fragmented and passed.
    pub fragments_pass: bool,
    /// Multicast passed from ping to pong; `None` = not tried.
    pub multicast_passes: Option<bool>,
    /// Smallest of the probe round trips, ns.
    pub probe_round_trip_ns: Option<i64>,
    /// Further ends that nothing passes to, or from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<String>,
    /// Sentences about what does not pass.
    pub remarks: Vec<String>,
    /// How the ends were told to find each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<crate::DiscoveryFacts>,
}

/// One side of a path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PathEnd {
    /// `ping` or `pong`.
    pub end: String,
    /// Interface name.
    pub interface: String,
    /// Address in use.
    pub address: String,
    /// MTU in octets.
    pub mtu: u32,
    /// Operational state.
    pub up: bool,
    /// Link speed in Mbit/s, where the device tells it.
    pub speed_mbit_s: Option<i64>,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// Offload features that are on.
    pub offloads: Vec<String>,
    /// The VLAN that the interface is of, and the priorities of its frames, as the kernel tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<crate::VlanSpec>,
    /// The device behind it, as its own machine sees it: `queues.rx`, `queues.tx`, `virtio.features`, `interrupt.NUMBER`;
    /// empty without a device, or where it cannot be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub card: Vec<Fact>,
    /// Of a guest on a network of the user's: what its card is attached to, on the controller's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Attached>,
}

/// What the card of a guest is attached to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attached {
    /// `bridge`, `macvtap`, or `device` for a card that the guest was given whole.
    pub kind: String,
    /// The interface of the host, or the PCI address.
    pub to: String,
    /// The tap or macvtap device that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The other ports of that bridge, or the interface below the macvtap device.
    pub interfaces: Vec<AttachedInterface>,
}

/// An interface that a guest's packets may leave the host by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AttachedInterface {
    /// Name.
    pub name: String,
    /// Kind of a virtual device, as `ip -d link` prints it; absent = none, as of a physical one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The kernel's driver, where the device tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Link speed, where the device tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit_s: Option<i64>,
}

/// One bracketed reading: REALTIME - MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Monotonic time of the reading.
    pub at_ns: i64,
    /// realtime - monotonic.
    pub offset_ns: i64,
    /// Width of the bracket: the offset is known to within this.
    pub width_ns: i64,
}

/// A span of monotonic time in which converted stamps cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidWindow {
    /// Begin.
    pub from_ns: i64,
    /// End.
    pub to_ns: i64,
    /// By how much the clock was stepped, ns.
    pub step_ns: i64,
}
