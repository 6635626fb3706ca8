//! What joins the places.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// A path as a study names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathSpec {
    /// The loopback interface of the controller's network namespace.
    Loopback,
    /// A veth pair between two network namespaces.
    Veth {
        /// MTU in octets; `None` = the kernel's default, 1500.
        mtu: Option<u32>,
        /// How long each end holds back what it sends; `None` = it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay: Option<Nanos>,
    },
    /// A bridge in a namespace of its own, joined to each place by a veth pair.
    Bridge {
        /// MTU in octets of every interface; `None` = 1500.
        mtu: Option<u32>,
    },
    /// Guests on a macvtap device each, over one lower device; an end of this host on the other side of that device.
    Macvtap {
        /// MTU in octets; `None` = 1500.
        mtu: Option<u32>,
    },
    /// Guests on a tap device each, ends of this host on a veth pair each; programs at the driver (XDP) hand each packet on to
    /// the other one.
    Xdp {
        /// Where the programs run.
        mode: XdpMode,
        /// MTU in octets; `None` = 1500.
        mtu: Option<u32>,
    },
    /// Guests on a tap device each, ends of this host on a veth pair each, which are ports of an Open vSwitch of its own.
    OpenVswitch {
        /// How it takes packets from them.
        ports: SwitchPorts,
        /// MTU in octets; `None` = 1500.
        mtu: Option<u32>,
    },
    /// Two guests whose programs hand each other the packets as datagrams on the file system: no privilege.
    Datagram {
        /// MTU in octets; `None` = 1500.
        mtu: Option<u32>,
    },
    /// Interfaces that the user has set up; checked, and changed by nothing but settings of the host.
    Existing {
        /// The ping side.
        ping: ExistingEnd,
        /// The pong side.
        pong: ExistingEnd,
    },
}

/// Where an XDP program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// In the driver, before the kernel has made a packet of it.
    Native,
    /// In the kernel, on what the driver has handed over.
    Generic,
}

/// How an Open vSwitch takes packets from its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchPorts {
    /// As packet sockets on tap devices, in its own process.
    Tap,
    /// As AF_XDP sockets, by programs in the driver.
    AfXdpNative,
    /// As AF_XDP sockets, by programs after the driver.
    AfXdpGeneric,
    /// In the kernel (module `openvswitch`).
    Kernel,
}

impl XdpMode {
    /// As a study writes it.
    pub fn word(self) -> &'static str {
        match self {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        }
    }
}

impl SwitchPorts {
    /// As a study writes it.
    pub fn word(self) -> &'static str {
        match self {
            SwitchPorts::Tap => "tap",
            SwitchPorts::AfXdpNative => "af-xdp-native",
            SwitchPorts::AfXdpGeneric => "af-xdp-generic",
            SwitchPorts::Kernel => "kernel",
        }
    }
}

/// One side of an existing path: an interface, an address, or both; of a guest what its card is attached to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ExistingEnd {
    /// Interface name; looked up by the address when absent. Of a guest: that of this host which its card is attached to.
    pub interface: Option<String>,
    /// IP address; the interface's first when absent. Of a guest: that which it is given, with prefix length.
    pub address: Option<String>,
    /// PCI address of the card of this host that a guest is given (`0000:03:00.0`), in place of an interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl ExistingEnd {
    /// The address with its prefix length, `10.9.0.5/24`; `None` where it is missing or not such a one.
    pub fn given_address(&self) -> Option<(Ipv4Addr, u8)> {
        let (address, prefix) = self.address.as_deref()?.split_once('/')?;
        let digits = prefix.bytes().all(|b| b.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|prefix| digits && (1..=31).contains(prefix))?;
        Some((address.parse().ok()?, prefix))
    }

    /// The device is named by what the kernel calls a device of PCI: domain, bus, slot and function, in hexadecimal digits.
    pub fn has_pci_address(&self) -> bool {
        let parts = |device: &str| -> Option<bool> {
            let (domain, rest) = device.split_once(':')?;
            let (bus, rest) = rest.split_once(':')?;
            let (slot, function) = rest.split_once('.')?;
            let hex = |text: &str, length: usize| {
                text.len() == length && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            };
            Some(
                hex(domain, 4) && hex(bus, 2) && hex(slot, 2) && function.len() == 1 && ("0"..="7").contains(&function),
            )
        };
        self.device.as_deref().and_then(parts).unwrap_or(false)
    }
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |f: &mut fmt::Formatter<'_>, name: &str, mtu: &Option<u32>| match mtu {
            Some(mtu) => write!(f, "{name} mtu {mtu}"),
            None => f.write_str(name),
        };
        match self {
            PathSpec::Loopback => f.write_str("loopback"),
            PathSpec::Veth { mtu, delay } => {
                with(f, "veth", mtu)?;
                delay.map_or(Ok(()), |delay| write!(f, " delay {delay}"))
            }
            PathSpec::Bridge { mtu } => with(f, "bridge", mtu),
            PathSpec::Macvtap { mtu } => with(f, "macvtap", mtu),
            PathSpec::Xdp { mode, mtu } => with(f, &format!("xdp {}", mode.word()), mtu),
            PathSpec::OpenVswitch { ports, mtu } => with(f, &format!("open-vswitch {}", ports.word()), mtu),
            PathSpec::Datagram { mtu } => with(f, "datagram", mtu),
            PathSpec::Existing { ping, pong } => {
                let side = |e: &ExistingEnd| e.interface.clone().or(e.device.clone()).or(e.address.clone());
                match (side(ping), side(pong)) {
                    // Between the addresses that the places were given.
                    (None, None) => f.write_str("existing"),
                    (ping, pong) => {
                        write!(f, "existing {} to {}", ping.unwrap_or_default(), pong.unwrap_or_default())
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_given_has_a_prefix_length() {
        let given = |text: &str| ExistingEnd { address: Some(text.into()), ..ExistingEnd::default() }.given_address();
        assert_eq!(given("10.9.0.5/24"), Some((Ipv4Addr::new(10, 9, 0, 5), 24)));
        for text in ["10.9.0.5", "10.9.0.5/", "10.9.0.5/0", "10.9.0.5/32", "10.9.0.5/+4", "fe80::1/64", "a/24"] {
            assert_eq!(given(text), None, "{text}");
        }
    }

    #[test]
    fn a_device_has_the_address_that_the_kernel_calls_it_by() {
        let is = |text: &str| ExistingEnd { device: Some(text.into()), ..ExistingEnd::default() }.has_pci_address();
        assert!(is("0000:03:00.0") && is("0001:af:1f.7"));
        for text in ["03:00.0", "0000:03:00.8", "0000:03:00", "0000:3:00.0", "0000:03:00.0,x=1", "0000:AF:00.0"] {
            assert!(!is(text), "{text}");
        }
    }
}
