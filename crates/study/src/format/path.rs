//! Paths between the ends of a trial.

use super::Duration;
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// The path: the network that joins the ends of a trial.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PathChoice {
    /// The loopback interface of the network namespace in which Tailbound was started.
    Loopback,
    /// A veth pair between two network namespaces.
    Veth(VethKeys),
    /// A bridge in a separate network namespace, joined to each end by a veth pair, or to a virtual machine by a tap
    /// device.
    Bridge(LinkKeys),
    /// For virtual machines: a macvtap device for each virtual machine, all on one lower device. An end on this host is
    /// at the other side of the lower device.
    Macvtap(LinkKeys),
    /// For two virtual machines or network namespaces: a tap device or veth pair for each end, and XDP programs that
    /// forward each packet from one interface to the other.
    Xdp(XdpKeys),
    /// For virtual machines and network namespaces: a tap device or veth pair for each end; all these devices are ports
    /// of an Open vSwitch that is started for the run.
    OpenVswitch(SwitchKeys),
    /// For two virtual machines: the QEMU processes exchange packets as datagrams over Unix sockets. This needs no
    /// privilege.
    Datagram(LinkKeys),
    /// Existing interfaces: Tailbound checks these interfaces and changes only the settings in `host`. A guest's
    /// network card is attached to the given interface.
    Existing(Box<ExistingKeys>),
}

/// Options of a path that is a veth pair.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VethKeys {
    /// MTU of the path in bytes, 68 to 65535. Default: 1500.
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<At<u32>>,
    /// Delay that each end adds to every packet that it sends (netem of the kernel), at most 1 s: a round trip takes at
    /// least twice as long. Default: no delay.
    pub delay: Option<At<Duration>>,
}

/// Options of a network path that Tailbound creates.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkKeys {
    /// MTU of the path in bytes, 68 to 65535. Default: 1500.
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<At<u32>>,
}

/// Options of a network path with XDP programs that forward packets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct XdpKeys {
    /// Where the XDP programs of the path run. Default: `native`.
    pub mode: Option<XdpChoice>,
    /// MTU of the path in bytes, 68 to 65535. Default: 1500.
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<At<u32>>,
}

/// Where the XDP programs of a path run.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum XdpChoice {
    /// The XDP program runs in the network driver, before the kernel has made a packet buffer.
    Native,
    /// The XDP program runs in the kernel, after the network driver has passed on the packet. This works with any
    /// network driver.
    Generic,
}

/// Options of a network path over an Open vSwitch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchKeys {
    /// How Open vSwitch receives packets from its ports. Default: `tap`.
    pub ports: Option<PortsChoice>,
    /// MTU of the path in bytes, 68 to 65535. Default: 1500.
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<At<u32>>,
}

/// How an Open vSwitch receives packets from its ports.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PortsChoice {
    /// Open vSwitch receives packets through packet sockets, in the switch's own process.
    Tap,
    /// Open vSwitch receives packets through AF_XDP sockets; the XDP programs run in the network driver.
    AfXdpNative,
    /// Open vSwitch receives packets through AF_XDP sockets; the XDP programs run in the kernel, after the network
    /// driver.
    AfXdpGeneric,
    /// Open vSwitch receives packets in the kernel, by the module `openvswitch`.
    Kernel,
}

/// Both sides of an existing network path: ping end and pong end.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExistingKeys {
    /// Interface or address of the existing path at the ping end.
    pub ping: At<SideKeys>,
    /// Interface or address of the existing path at the pong end.
    pub pong: At<SideKeys>,
}

/// One side of an existing path: an interface, an address, or both. For a guest: the interface or device of the host to
/// which the guest's network card is attached.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SideKeys {
    /// Name of the interface. Default: the interface that has the address. For a guest: the interface of this host to
    /// which the guest's card is attached; a bridge gets a tap device as a port, any other interface gets a macvtap
    /// device.
    pub interface: Option<At<String>>,
    /// IPv4 address of the end. Default: the first address of the interface. For a guest: the address that the guest
    /// gets, with prefix length, e.g. `10.9.0.5/24`; required.
    pub address: Option<At<String>>,
    /// For a guest, in place of `interface`: PCI address of a network card of this host that the guest controls
    /// directly (VFIO), e.g. `"0000:03:00.0"`. `modules` of the guest names the kernel module of the card.
    pub device: Option<At<String>>,
}
