//! Facts about hosts, paths and clocks: the circumstances under which a result was measured.

use serde::{Deserialize, Serialize};

/// One fact about a host, e.g. the kernel version. A fact that could not be read is stored with the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Key of the fact with dots, e.g. `kernel.release`, `cpu.governor`, `sched.rt_runtime_us`.
    pub key: String,
    /// Value of the fact about a host, or the reason why it is unknown.
    pub value: FactValue,
    /// File or system call from which the fact was read.
    pub source: String,
}

/// The value of a fact about a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactValue {
    /// The fact is text, without white space at the begin and the end.
    Text(String),
    /// The fact is a whole number; the key of the fact names the unit.
    Number(i64),
    /// The value of the fact is true or false.
    Flag(bool),
    /// The fact was not read; the text is the reason.
    Unknown(String),
}

/// All facts of one host at one point in time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostFacts {
    /// Name of the host to which the facts belong.
    pub host: String,
    /// Id of the current boot of the host's kernel.
    pub boot_id: String,
    /// The facts of the host, sorted by key.
    pub facts: Vec<Fact>,
}

impl HostFacts {
    /// The value of the host's fact with this key.
    pub fn get(&self, key: &str) -> Option<&FactValue> {
        self.facts.iter().find(|f| f.key == key).map(|f| &f.value)
    }
}

/// Results of the path check, which sends plain datagrams over the path before the driver starts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PathFacts {
    /// Interface, address, MTU and other properties of the path at each end.
    pub ends: Vec<PathEnd>,
    /// Payload in bytes of the largest UDP datagram that passed from ping to pong, among the sizes that were tried; 0
    /// if none passed.
    pub max_datagram_ping_to_pong: u64,
    /// Payload in bytes of the largest UDP datagram that passed from pong to ping, among the sizes that were tried; 0
    /// if none passed.
    pub max_datagram_pong_to_ping: u64,
    /// True if a datagram passed that was larger than the MTU, so that the datagram must have been fragmented.
    pub fragments_pass: bool,
    /// True if multicast passed from ping to pong; `None` if multicast was not tried.
    pub multicast_passes: Option<bool>,
    /// Shortest round trip of a datagram of the path check, ns.
    pub probe_round_trip_ns: Option<i64>,
    /// Names of the ends, except the first two, to which or from which no datagram of the path check passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<String>,
    /// Sentences for the user about datagrams that do not pass.
    pub remarks: Vec<String>,
    /// How the ends find each other: the discovery method and the reason for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<crate::DiscoveryFacts>,
    /// DDS Security of the ends; absent if the study asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<crate::SecurityFacts>,
}

/// One side of a path: the interface of one end and its properties.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PathEnd {
    /// Name of the end at this side of the path: `ping` or `pong`.
    pub end: String,
    /// Name of the network interface that the end uses.
    pub interface: String,
    /// IP address that the end uses on the path.
    pub address: String,
    /// MTU of the end's network interface in bytes.
    pub mtu: u32,
    /// True if the end's network interface is operational.
    pub up: bool,
    /// Link speed of the end's network interface in Mbit/s, if the device reports the speed.
    pub speed_mbit_s: Option<i64>,
    /// Number of transmit queues of the end's network interface.
    pub tx_queues: Option<u32>,
    /// Number of receive queues of the end's network interface.
    pub rx_queues: Option<u32>,
    /// Names of the offload features of the interface that are on.
    pub offloads: Vec<String>,
    /// The VLAN of the interface, and the priorities of its frames, as the kernel reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<crate::VlanSpec>,
    /// The gates of the interface, as the kernel reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<crate::GatesFact>,
    /// The traffic classes of the interface and their credits, as the kernel reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaping: Option<crate::ShapingFact>,
    /// The queue of the interface for messages with launch times, as the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<crate::LaunchQueueFact>,
    /// Facts about the device behind the interface, read on the machine that has the device: `queues.rx`, `queues.tx`,
    /// `virtio.features`, `interrupt.NUMBER`. Empty if there is no device or the device cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub card: Vec<Fact>,
    /// For a guest on a network of the user: the interface or device of the controller's host to which the guest's card
    /// is attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Attached>,
}

/// Attachment of a guest's network card to an interface or device of the host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attached {
    /// Kind of the attachment: `bridge`, `macvtap`, or `device` for a card that the guest controls directly.
    pub kind: String,
    /// Interface of the host to which the guest's card is attached, or PCI address of the device.
    pub to: String,
    /// The tap or macvtap device that was made for the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// For a bridge: the other ports of the bridge. For a macvtap device: the interface below the device.
    pub interfaces: Vec<AttachedInterface>,
}

/// An interface through which a guest's packets may leave the host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AttachedInterface {
    /// Name of the network interface on the host of the guest.
    pub name: String,
    /// Kind of a virtual device, as `ip -d link` prints the kind; absent for a physical device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the kernel's driver for the device, if the kernel reports the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Link speed of the network interface in Mbit/s, if the device reports the speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit_s: Option<i64>,
}

/// One reading of the offset CLOCK_REALTIME - CLOCK_MONOTONIC: CLOCK_REALTIME is read between two readings of
/// CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Monotonic time at which the offset between the clocks was read, ns.
    pub at_ns: i64,
    /// Offset between the clocks, CLOCK_REALTIME - CLOCK_MONOTONIC, ns.
    pub offset_ns: i64,
    /// Time between the two readings of the monotonic clock, ns: the largest possible error of the offset.
    pub width_ns: i64,
}

/// A span of monotonic time in which the clock was stepped, so that converted timestamps in the span cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidWindow {
    /// Begin of the time span in which the clock was stepped, monotonic time in ns.
    pub from_ns: i64,
    /// End of the time span in which the clock was stepped, monotonic time in ns.
    pub to_ns: i64,
    /// Size of the step of the clock, ns.
    pub step_ns: i64,
}
