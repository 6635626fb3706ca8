//! The path: the network that joins the places of the ends.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// A path between the places of a trial, as a study asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathSpec {
    /// Path over the loopback interface of the controller's network namespace.
    Loopback,
    /// Path over a veth pair between two network namespaces.
    Veth {
        /// MTU of the path in bytes; `None` means the kernel's default, 1500.
        mtu: Option<u32>,
        /// Delay that each end adds to every packet that it sends; `None` means no delay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay: Option<Nanos>,
    },
    /// A bridge in a separate network namespace, joined to each place by a veth pair.
    Bridge {
        /// MTU of every interface of the path in bytes; `None` means 1500.
        mtu: Option<u32>,
    },
    /// A macvtap device for each guest, all on top of one other device. An end on this host is at the other end of that
    /// device.
    Macvtap {
        /// MTU of the path in bytes; `None` means 1500.
        mtu: Option<u32>,
    },
    /// A tap device for each guest and a veth pair for each end on this host. XDP programs forward each packet from one
    /// interface to the other.
    Xdp {
        /// Where the XDP programs that forward packets run.
        mode: XdpMode,
        /// MTU of the path in bytes; `None` means 1500.
        mtu: Option<u32>,
    },
    /// A tap device for each guest and a veth pair for each end on this host; all are ports of an Open vSwitch that is
    /// started for the run.
    OpenVswitch {
        /// How the Open vSwitch of the path receives packets from its ports.
        ports: SwitchPorts,
        /// MTU of the path in bytes; `None` means 1500.
        mtu: Option<u32>,
    },
    /// Two guests whose QEMU processes exchange packets as datagrams over Unix sockets; this needs no privilege.
    Datagram {
        /// MTU of the path in bytes; `None` means 1500.
        mtu: Option<u32>,
    },
    /// Interfaces that the user has set up. Tailbound checks them and changes only host settings.
    Existing {
        /// The user's interface or address at the ping end.
        ping: ExistingEnd,
        /// The user's interface or address at the pong end.
        pong: ExistingEnd,
    },
}

/// Where an XDP program that forwards packets runs: in the network driver or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// The XDP program runs in the network driver, before the kernel has made a packet buffer.
    Native,
    /// The XDP program runs in the kernel, after the network driver has passed the packet to the kernel.
    Generic,
}

/// How an Open vSwitch receives packets from its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchPorts {
    /// Open vSwitch receives packets through packet sockets on tap devices, in the switch's own process.
    Tap,
    /// Open vSwitch receives packets through AF_XDP sockets; the XDP programs run in the network driver.
    AfXdpNative,
    /// Open vSwitch receives packets through AF_XDP sockets; the XDP programs run in the kernel, after the network
    /// driver.
    AfXdpGeneric,
    /// Open vSwitch receives packets in the kernel (module `openvswitch`).
    Kernel,
}

impl XdpMode {
    /// Word for this place of the XDP program in a study file, e.g. `native`.
    pub fn word(self) -> &'static str {
        match self {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        }
    }
}

impl SwitchPorts {
    /// Word for this kind of switch port in a study file, e.g. `tap`.
    pub fn word(self) -> &'static str {
        match self {
            SwitchPorts::Tap => "tap",
            SwitchPorts::AfXdpNative => "af-xdp-native",
            SwitchPorts::AfXdpGeneric => "af-xdp-generic",
            SwitchPorts::Kernel => "kernel",
        }
    }
}

/// One end of an existing path: an interface, an address, or both. For a guest: the interface or device of the host to
/// which the guest's network card is attached.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ExistingEnd {
    /// Name of the interface; if absent, the interface is found by the address. For a guest: the interface of this host
    /// to which the guest's card is attached.
    pub interface: Option<String>,
    /// IP address; if absent, the first address of the interface. For a guest: the address that the guest gets, with
    /// prefix length.
    pub address: Option<String>,
    /// PCI address (`0000:03:00.0`) of a card of this host that the guest controls directly, in place of an interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl ExistingEnd {
    /// IP address and prefix length of the end, from text such as `10.9.0.5/24`; `None` if the address is missing or
    /// has another form.
    pub fn given_address(&self) -> Option<(Ipv4Addr, u8)> {
        let (address, prefix) = self.address.as_deref()?.split_once('/')?;
        let digits = prefix.bytes().all(|b| b.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|prefix| digits && (1..=31).contains(prefix))?;
        Some((address.parse().ok()?, prefix))
    }

    /// True if the device is written as the kernel writes PCI addresses: domain, bus, slot and function, in hexadecimal
    /// digits.
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
                    // The path uses the addresses of the places.
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
