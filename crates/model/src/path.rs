//! What joins the places.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

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

/// One side of an existing path: an interface, an address, or both.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ExistingEnd {
    /// Interface name; looked up by the address when absent.
    pub interface: Option<String>,
    /// IP address; the interface's first when absent.
    pub address: Option<String>,
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
                let side = |e: &ExistingEnd| e.interface.clone().or(e.address.clone());
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
