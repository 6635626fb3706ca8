//! Network settings of one end of a lab's path.

use std::net::IpAddr;

/// Network settings of one end of the path between the places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndNet {
    /// Name of the end's network interface inside its network namespace.
    pub interface: String,
    /// IP address of the end's network interface.
    pub address: IpAddr,
    /// Address of the other end. If there are several other ends, it is the address of the first.
    pub peer: IpAddr,
    /// MTU of the interface in bytes, as read back from the kernel.
    pub mtu: u32,
    /// Whether the end's network interface carries multicast.
    pub multicast: bool,
    /// These network settings as options for the function `open` of a driver: `interface`, `address`, `peers`,
    /// `multicast` (`on` or `off`).
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
