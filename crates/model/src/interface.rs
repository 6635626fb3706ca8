//! A network interface as the kernel tells it.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// One interface with its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// Index within its namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// MTU in octets.
    pub mtu: u32,
    /// Set up by an administrator (`ip link set up`).
    pub enabled: bool,
    /// Operational state is `up`. Loopback, tun and dummy devices never report one; others report it with a delay.
    pub operational: bool,
    /// The device reports no operational state, or not yet.
    pub unreported: bool,
    /// The lower layer is there (IFF_LOWER_UP); true at once, while `operational` may follow up to a second later.
    pub carrier: bool,
    /// Carries multicast.
    pub multicast: bool,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// Index of the bridge or bond it belongs to.
    pub controller: Option<u32>,
    /// For a bridge: how it forwards.
    pub bridge: Option<BridgeState>,
    /// For the interface of a VLAN: which, and the priorities that its frames have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<crate::VlanSpec>,
    /// Addresses with their prefix lengths, in the kernel's order.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// Settings of a bridge that decide when and where it forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BridgeState {
    /// Spanning tree protocol is on.
    pub spanning_tree: bool,
    /// Multicast goes only where somebody asked for it.
    pub multicast_snooping: bool,
    /// Time before a new port forwards, in hundredths of a second.
    pub forward_delay: u32,
}

impl Interface {
    /// Can carry datagrams, as far as the device tells.
    pub fn up(&self) -> bool {
        self.enabled && self.has_link()
    }

    /// Something is on the other side, as far as the device tells.
    pub fn has_link(&self) -> bool {
        self.operational || (self.unreported && self.carrier)
    }

    /// IPv4 addresses, in the kernel's order.
    pub fn ipv4(&self) -> impl Iterator<Item = std::net::Ipv4Addr> + '_ {
        self.addresses.iter().filter_map(|(address, _)| match address {
            IpAddr::V4(v4) => Some(*v4),
            IpAddr::V6(_) => None,
        })
    }
}
