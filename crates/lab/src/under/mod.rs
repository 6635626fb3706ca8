//! What carries the packets of virtual machines: made before the guests start, it gives each of them its plug.
//!
//! In: a path, its ends ([`Port`]) and the journal. Out: for each guest the descriptors or the names of sockets that its
//! program takes ([`Plug`]), for each end of this host a network namespace, and counters which prove that packets took
//! the path. It knows nothing of QEMU, of what runs in a guest, or of measuring.
//!
//! As in a [`Lab`](crate::Lab) everything lies in network namespaces without a name; programs at interfaces are held by
//! descriptors of this process. What the kernel does not remove by itself - the processes of Open vSwitch and the
//! directory of their sockets - stands in the journal.

mod bpf;
mod check;
mod deed;
mod make;
mod plan;
mod switch;
mod tap;
mod users;
pub(crate) mod vfio;

use crate::apply::Rooms;
use crate::counters::interface_counters;
use crate::error::LabError;
use crate::lab::left;
use crate::netns::{NetNs, run_in};
use crate::step::{self, At, Room, prefix};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use switch::Daemon;
use tailbound_host::{EntryId, Journal};
use tailbound_model::{Attached, PathSpec, VlanSpec};
use users::Attachment;

pub use check::vhost_lack;
pub use plan::carries_offloads;

/// A path, and the VLAN on top of it.
pub type Joined<'a> = (&'a PathSpec, Option<&'a VlanSpec>);

/// What is at an end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// A guest, with as many pairs of queues of its interface.
    Guest {
        /// At least 1.
        queues: u32,
    },
    /// This host: a network namespace made for it.
    Host,
    /// What the user has set up, here or elsewhere: nothing is made for it.
    Users,
}

/// What a guest's program is given for its interface.
#[derive(Debug)]
pub enum Plug {
    /// A tap or macvtap device.
    Tap {
        /// One for each pair of queues, closed at exec. Packets have a `virtio_net_hdr` of 10 octets before them until the
        /// program asks for another length.
        fds: Vec<OwnedFd>,
        /// The interface, in a namespace that nobody else sees.
        name: String,
    },
    /// Two sockets on the file system.
    Datagram {
        /// Of this guest, which its program makes.
        local: PathBuf,
        /// Of the other one.
        remote: PathBuf,
    },
    /// A card of the machine, by its PCI address.
    Device(String),
}

/// What a guest's interface is, inside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inside {
    /// Hardware address; `None` = that of a card that it is given whole.
    pub mac: Option<[u8; 6]>,
    /// Its address.
    pub address: Ipv4Addr,
    /// Length of the network part.
    pub prefix: u8,
    /// MTU in octets.
    pub mtu: u32,
}

/// The path while it stands. Dropping it lets go of its namespaces, but what is in the journal stays: call
/// [`down`](Under::down).
#[derive(Debug)]
pub struct Under {
    ports: Vec<Port>,
    /// There is one on top, which has the addresses.
    has_vlan: bool,
    prefix: String,
    mtu: u32,
    /// Guests on what the user has set up.
    attachments: Vec<Attachment>,
    dir: PathBuf,
    plugs: Vec<Option<Plug>>,
    /// Further descriptors of the plugs: their interfaces, and so their counters, outlive the guests.
    kept: Vec<OwnedFd>,
    redirect: Option<bpf::Redirect>,
    passing: Vec<OwnedFd>,
    daemons: Vec<Daemon>,
    rooms: Rooms,
    /// Of each namespace that was made, and of the directory.
    entries: Vec<(Option<Room>, EntryId)>,
}

impl Under {
    /// What would be done, one line each: the step as a command would say it, and the privilege it takes.
    pub fn describe(path: Joined<'_>, ports: &[Port]) -> Vec<String> {
        if let PathSpec::Existing { .. } = path.0 {
            return users::describe(path.0, ports);
        }
        let deeds = plan::plan(path, ports, "tbRUN", Path::new("SCRATCH/under"));
        deeds.iter().map(deed::Deed::with_privilege).collect()
    }

    /// The plug of an end, once; `None` for an end of this host.
    pub fn plug(&mut self, end: usize) -> Option<Plug> {
        self.plugs.get_mut(end)?.take()
    }

    /// An end of this host: its network namespace, the interface in it, and its address. It is up, its multicast goes to
    /// that interface, and it has no IPv6.
    pub fn host_end(&self, end: usize) -> Option<(NetNs, String, Ipv4Addr)> {
        let At { room, name } =
            if self.has_vlan { plan::vlan(&self.prefix, end) } else { plan::host(&self.prefix, end) };
        Some((self.rooms.get(room).ok()?.clone(), name, Under::address(end)))
    }

    /// The address of an end, within 10.177.0.0/24. That of a guest's interface is set inside of it.
    pub fn address(end: usize) -> Ipv4Addr {
        step::address(end)
    }

    /// The hardware address of a guest's interface, on a path that is made.
    pub fn mac(end: usize) -> [u8; 6] {
        mac(end)
    }

    /// What the interface of a guest is to be, inside of it.
    pub fn inside(&self, end: usize) -> Inside {
        let made = Inside { mac: Some(mac(end)), address: Under::address(end), prefix: step::PREFIX, mtu: self.mtu };
        let Some(one) = self.attachments.iter().find(|one| one.end == end) else { return made };
        let mac = one.has_made_card().then_some(one.mac);
        Inside { mac, address: one.address, prefix: one.prefix, mtu: one.mtu }
    }

    /// What the card of a guest is attached to, where that is the user's; read anew, blocks for a moment.
    ///
    /// # Errors
    /// The interfaces of this host cannot be read.
    pub fn attached(&self, end: usize) -> io::Result<Option<Attached>> {
        let one = self.attachments.iter().find(|one| one.end == end);
        one.map(|one| users::attached(one, &self.prefix)).transpose()
    }

    /// Counters of the interface of each end: `interface.*` as in /proc/net/dev, where `rx` came from the end and `tx` went
    /// to it; `xdp.redirected`, packets from the end that a program handed on; `switch.*`, what Open vSwitch took and
    /// gave. Empty for sockets on the file system, and where they cannot be read. Blocks for a moment.
    pub fn counters(&self) -> Vec<(String, BTreeMap<String, i64>)> {
        let netns = self.rooms.get(Room::Under).ok();
        let here = self.rooms.get(Room::Here).ok();
        let read = |netns: &NetNs| {
            run_in(netns, || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default())?.join()
        };
        let dev: String = [netns, here].into_iter().flatten().filter_map(|netns| read(netns).ok()).collect();
        let switch = netns.filter(|_| !self.daemons.is_empty()).map(|netns| switch::counts((&self.dir, netns)));
        let mut switch = switch.and_then(Result::ok).unwrap_or_default();
        let one = |end: usize| {
            let name = plan::port(&self.prefix, end).name;
            let mut counters = interface_counters(&dev, &name);
            counters.extend(switch.remove(&name).unwrap_or_default());
            let redirected = self.redirect.as_ref().and_then(|redirect| redirect.count(end as u32).ok());
            counters.extend(redirected.map(|count| ("xdp.redirected".to_owned(), count)));
            (name, counters)
        };
        (0..self.ports.len()).map(one).collect()
    }

    /// Takes it down. The guests, and processes of this host's ends, must have been ended before.
    ///
    /// # Errors
    /// A process still holds a namespace or would not end (its journal entry stays), or the journal cannot be written.
    pub async fn down(self, journal: &Journal) -> Result<(), LabError> {
        let Under { plugs, kept, redirect, passing, daemons, rooms, entries, .. } = self;
        drop((plugs, kept, redirect, passing));
        let mut results = Vec::new();
        results.extend(daemons.into_iter().rev().map(|daemon| daemon.end(journal).map_err(LabError::from)));
        let mut inodes: Vec<(Room, u64)> = Vec::new();
        inodes.extend(rooms.take_all().map(|(room, netns)| (room, netns.inode())));
        for (room, entry) in entries.into_iter().rev() {
            results.push(match room {
                None => journal.undo(entry).map(drop).map_err(LabError::from),
                Some(room) => {
                    let inode = inodes.iter().find(|(of, _)| *of == room).map_or(0, |(_, inode)| *inode);
                    left(room, inode).await.and_then(|()| Ok(journal.done(entry)?))
                }
            });
        }
        results.into_iter().collect()
    }
}

/// Locally administered, as QEMU has them.
fn mac(end: usize) -> [u8; 6] {
    [0x52, 0x54, 0, 0xb1, 0, end as u8 + 1]
}

fn begin(
    (path, on_top): Joined<'_>,
    (ports, attachments): (&[Port], Vec<Attachment>),
    run_id: &str,
    scratch: &Path,
) -> Under {
    Under {
        ports: ports.to_vec(),
        has_vlan: on_top.is_some(),
        prefix: prefix(run_id),
        mtu: plan::mtu(path),
        attachments,
        dir: scratch.join("under"),
        plugs: ports.iter().map(|_| None).collect(),
        kept: Vec::new(),
        redirect: None,
        passing: Vec::new(),
        daemons: Vec::new(),
        rooms: Rooms::default(),
        entries: Vec::new(),
    }
}
