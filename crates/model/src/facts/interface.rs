//! Properties of a network interface, as the kernel reports them.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// One network interface with its properties and addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// Index of the network interface within its network namespace.
    pub index: u32,
    /// Name of the network interface.
    pub name: String,
    /// MTU of the network interface in bytes.
    pub mtu: u32,
    /// True if an administrator has enabled the interface (`ip link set up`).
    pub enabled: bool,
    /// True if the operational state of the interface is `up`. Loopback, tun and dummy devices never report a state;
    /// other devices report it with a delay.
    pub operational: bool,
    /// True if the device reports no operational state, or has not reported it yet.
    pub unreported: bool,
    /// True if the lower layer of the interface is up (IFF_LOWER_UP). The kernel sets this flag immediately, while
    /// `operational` may become true up to a second later.
    pub carrier: bool,
    /// True if the network interface carries multicast.
    pub multicast: bool,
    /// Number of transmit queues of the network interface.
    pub tx_queues: Option<u32>,
    /// Number of receive queues of the network interface.
    pub rx_queues: Option<u32>,
    /// Index of the bridge or bond of which the interface is a port.
    pub controller: Option<u32>,
    /// For a bridge: the forwarding settings of the bridge.
    pub bridge: Option<BridgeState>,
    /// For the interface of a VLAN: the VLAN and the priorities of its frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<crate::VlanSpec>,
    /// IP addresses of the network interface with their prefix lengths, in the kernel's order.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// Settings of a bridge that decide when and where it forwards packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BridgeState {
    /// True if the bridge uses the spanning tree protocol.
    pub spanning_tree: bool,
    /// True if the bridge forwards multicast packets only to ports that joined the group (IGMP snooping).
    pub multicast_snooping: bool,
    /// Time before a new port of the bridge forwards packets, in hundredths of a second.
    pub forward_delay: u32,
}

impl Interface {
    /// True if the interface can carry datagrams, as far as the device reports it.
    pub fn up(&self) -> bool {
        self.enabled && self.has_link()
    }

    /// True if the other side of the link is present, as far as the device reports it.
    pub fn has_link(&self) -> bool {
        self.operational || (self.unreported && self.carrier)
    }

    /// IPv4 addresses of the network interface, in the kernel's order.
    pub fn ipv4(&self) -> impl Iterator<Item = std::net::Ipv4Addr> + '_ {
        self.addresses.iter().filter_map(|(address, _)| match address {
            IpAddr::V4(v4) => Some(*v4),
            IpAddr::V6(_) => None,
        })
    }
}
