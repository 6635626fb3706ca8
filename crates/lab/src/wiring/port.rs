//! The ends of a path of guests, and the descriptors, socket names or device that QEMU is given for the interface of a
//! guest.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use tailbound_model::{PathSpec, VlanSpec};

/// A path, and the VLAN on top of it if there is a VLAN.
pub type Joined<'a> = (&'a PathSpec, Option<&'a VlanSpec>);

/// Kind of an end of a path that a guest uses: a guest, this host, or an interface that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// The end of the path is a guest.
    Guest {
        /// Number of pairs of queues of the guest's interface, at least 1.
        queues: u32,
    },
    /// An end on this host, in a network namespace that is made for the end.
    Host {
        /// Number of transmit queues of the end's interface, at least 1.
        queues: u16,
    },
    /// The user has set up the end, on this host or another host; nothing is made for the end.
    Existing,
}

/// Plug of a guest: the descriptors, socket names or device by which QEMU gives a network interface to the guest.
#[derive(Debug)]
pub enum Plug {
    /// The interface of the guest is a tap or macvtap device.
    Tap {
        /// One descriptor of the device for each pair of queues, closed at exec. Packets begin with a `virtio_net_hdr`
        /// of 10 bytes until QEMU requests another length.
        fds: Vec<OwnedFd>,
        /// Name of the tap or macvtap device, in a namespace of the wiring or of this process.
        name: String,
    },
    /// The interface of the guest uses two Unix datagram sockets.
    Datagram {
        /// Path of this guest's Unix socket, which QEMU makes.
        local: PathBuf,
        /// Path of the other guest's Unix socket.
        remote: PathBuf,
    },
    /// The guest gets a card of this host, given by its PCI address.
    Device(String),
}

/// Settings of the interface of a guest, which are made inside the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestInterface {
    /// Hardware address of the guest's card; `None` for a passed-through card, which keeps its own address.
    pub mac: Option<[u8; 6]>,
    /// IPv4 address of the guest's network interface.
    pub address: Ipv4Addr,
    /// Prefix length of the network of the guest's interface, in bits.
    pub prefix: u8,
    /// MTU of the guest's network interface in bytes.
    pub mtu: u32,
}

impl Port {
    /// Number of pairs of queues of the guest's interface; `None` if the end is not a guest.
    pub(super) fn queues(&self) -> Option<u32> {
        match self {
            Port::Guest { queues } => Some((*queues).max(1)),
            Port::Host { .. } | Port::Existing => None,
        }
    }

    /// Number of transmit queues of the interface of an end on this host; `None` if Tailbound makes no such interface.
    pub(super) fn host_queues(&self) -> Option<u16> {
        match self {
            Port::Host { queues } => Some((*queues).max(1)),
            Port::Guest { .. } | Port::Existing => None,
        }
    }
}

/// Hardware address for the card of a guest on a path that Tailbound makes: locally administered, with QEMU's prefix.
pub(super) fn mac(end: usize) -> [u8; 6] {
    [0x52, 0x54, 0, 0xb1, 0, end as u8 + 1]
}
