//! What one end needs to know of the network.

use std::net::IpAddr;

/// One end's side of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndNet {
    /// Interface name inside the end's network namespace.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Address of the other end, or the first of them.
    pub peer: IpAddr,
    /// MTU of the interface in octets, as read back.
    pub mtu: u32,
    /// Whether the interface carries multicast.
    pub multicast: bool,
    /// The same for a driver's `open`: `interface`, `address`, `peers`, `multicast` (`on` or `off`).
    pub driver_options: Vec<(String, String)>,
}

impl EndNet {
    pub(crate) fn new(interface: &str, address: IpAddr, peers: &[IpAddr], mtu: u32, multicast: bool) -> EndNet {
        let all: Vec<String> = peers.iter().map(IpAddr::to_string).collect();
        let peer = peers.first().copied().unwrap_or(address);
        let options = [
            ("interface", interface.to_owned()),
            ("address", address.to_string()),
            ("peers", all.join(",")),
            ("multicast", if multicast { "on" } else { "off" }.to_owned()),
        ];
        let driver_options = options.map(|(key, value)| (key.to_owned(), value)).to_vec();
        EndNet { interface: interface.to_owned(), address, peer, mtu, multicast, driver_options }
    }
}
