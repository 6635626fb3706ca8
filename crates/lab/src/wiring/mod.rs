//! Wiring of guests: the taps, macvtap devices, XDP programs, switches and passed-through cards that carry the packets
//! of virtual machines. The wiring is made before the guests start.
//!
//! Input: a path, its ends ([`Port`]) and the journal. Output: for each guest the descriptors, socket names or device
//! that QEMU needs ([`Plug`]), for each end on this host a network namespace, and counters which prove that packets
//! took the path. This module knows nothing of QEMU's command line, of programs in a guest, or of measuring.
//!
//! As in a [`Lab`](crate::Lab), interfaces lie in network namespaces without a name, and XDP programs are kept by
//! descriptors of this process. The processes of Open vSwitch and the directory of their sockets, which the kernel does
//! not remove by itself, are in the journal.

mod action;
mod bpf;
mod check;
mod existing;
mod make;
mod plan;
mod port;
mod switch;
mod tap;
pub(crate) mod vfio;

use crate::counters::interface_counters;
use crate::error::LabError;
use crate::netns::{NetNs, run_in};
use crate::rooms::{Rooms, wait_until_left};
use crate::step::{self, At, Room, prefix};
use existing::Attachment;
use port::mac;
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use switch::Daemon;
use tailbound_host::{EntryId, Journal};
use tailbound_model::{Attached, PathSpec};

pub use check::vhost_lack;
pub use plan::carries_offloads;
pub use port::{GuestInterface, Joined, Plug, Port};

/// Begin of the names of interfaces for `--dry-run`.
const DESCRIBED: &str = "tbRUN";

/// The wiring of a path from its making (`up`) to its removal (`down`). If this value is dropped, the namespaces are
/// released but the journal entries stay: call [`down`](Wiring::down) instead.
#[derive(Debug)]
pub struct Wiring {
    ports: Vec<Port>,
    /// Whether the addresses of the ends are on a VLAN on top of the path.
    has_vlan: bool,
    prefix: String,
    mtu: u32,
    /// Guests that are attached to interfaces or devices of the user.
    attachments: Vec<Attachment>,
    dir: PathBuf,
    plugs: Vec<Option<Plug>>,
    /// Copies of the descriptors that were given to QEMU. They keep the interfaces and counters in existence after the
    /// guests have ended.
    kept: Vec<OwnedFd>,
    redirect: Option<bpf::Redirect>,
    passing: Vec<OwnedFd>,
    daemons: Vec<Daemon>,
    rooms: Rooms,
    /// Journal entries of the wiring: for each network namespace that was made, an entry with the purpose ([`Room`]) of
    /// the namespace; for the directory, an entry without a purpose.
    entries: Vec<(Option<Room>, EntryId)>,
}

impl Wiring {
    /// Lines for `--dry-run`: each step of making the wiring as a command, and the privilege that the step needs.
    pub fn describe(path: Joined<'_>, ports: &[Port]) -> Vec<String> {
        if let PathSpec::Existing { .. } = path.0 {
            return existing::describe(path.0, ports);
        }
        let actions = plan::plan(path, ports, DESCRIBED, Path::new("SCRATCH/wiring"));
        actions.iter().map(action::Action::with_privilege).collect()
    }

    /// Takes the plug of a guest (the descriptors, socket names or device for QEMU); `None` for an end on this host, or
    /// if the plug was taken before.
    pub fn plug(&mut self, end: usize) -> Option<Plug> {
        self.plugs.get_mut(end)?.take()
    }

    /// Network namespace, interface and address of an end on this host. The interface is up and has the route for
    /// multicast; the namespace has no IPv6.
    pub fn host_end(&self, end: usize) -> Option<(NetNs, String, Ipv4Addr)> {
        let At { room, name } =
            if self.has_vlan { plan::vlan(&self.prefix, end) } else { plan::host(&self.prefix, end) };
        Some((self.rooms.get(room).ok()?.clone(), name, Wiring::address(end)))
    }

    /// Name of the interface by which an end on this host sends, which is below its VLAN; `None` if the wiring has made none for it.
    pub(crate) fn sends_by(&self, end: usize) -> Option<String> {
        self.ports.get(end)?.host_queues().map(|_| plan::host(&self.prefix, end).name)
    }

    /// Names for `--dry-run`: the interface by which an end on this host sends, and the one with its address.
    pub(crate) fn described_host_end(end: usize, has_vlan: bool) -> (String, String) {
        let below = plan::host(DESCRIBED, end).name;
        let on_top = if has_vlan { plan::vlan(DESCRIBED, end).name } else { below.clone() };
        (below, on_top)
    }

    /// Address of the end with this number, in 10.177.0.0/24. The address of a guest is set inside the guest.
    pub fn address(end: usize) -> Ipv4Addr {
        step::address(end)
    }

    /// Hardware address of a guest's card on a path that Tailbound makes.
    pub fn mac(end: usize) -> [u8; 6] {
        mac(end)
    }

    /// Settings of the interface of a guest, which are made inside the guest.
    pub fn inside(&self, end: usize) -> GuestInterface {
        let made =
            GuestInterface { mac: Some(mac(end)), address: Wiring::address(end), prefix: step::PREFIX, mtu: self.mtu };
        let Some(one) = self.attachments.iter().find(|one| one.end == end) else { return made };
        let mac = one.has_made_card().then_some(one.mac);
        GuestInterface { mac, address: one.address, prefix: one.prefix, mtu: one.mtu }
    }

    /// Reads again the interface or device of the user to which a guest's card is attached; blocks for a moment.
    ///
    /// # Errors
    /// The interfaces of this host cannot be read.
    pub fn attached(&self, end: usize) -> io::Result<Option<Attached>> {
        let one = self.attachments.iter().find(|one| one.end == end);
        one.map(|one| existing::attached(one, &self.prefix)).transpose()
    }

    /// Reads the counters of each end's interface: `interface.*` as in /proc/net/dev (`rx` is from the end, `tx` to the
    /// end), `xdp.redirected` (packets from the end that an XDP program redirected), and `switch.*` (counters of Open
    /// vSwitch). The counters are empty for Unix sockets, or if they cannot be read. Blocks for a moment.
    pub fn counters(&self) -> Vec<(String, BTreeMap<String, i64>)> {
        let netns = self.rooms.get(Room::Wiring).ok();
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

    /// Removes the wiring. The guests and the processes of ends on this host must have ended before.
    ///
    /// # Errors
    /// A process still uses a namespace or does not end (then its journal entry stays), or the journal cannot be
    /// written.
    pub async fn down(self, journal: &Journal) -> Result<(), LabError> {
        let Wiring { plugs, kept, redirect, passing, daemons, rooms, entries, .. } = self;
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
                    wait_until_left(room, inode).await.and_then(|()| Ok(journal.done(entry)?))
                }
            });
        }
        results.into_iter().collect()
    }
}

fn begin(
    (path, on_top): Joined<'_>,
    (ports, attachments): (&[Port], Vec<Attachment>),
    run_id: &str,
    scratch: &Path,
) -> Wiring {
    Wiring {
        ports: ports.to_vec(),
        has_vlan: on_top.is_some(),
        prefix: prefix(run_id),
        mtu: plan::mtu(path),
        attachments,
        dir: scratch.join("wiring"),
        plugs: ports.iter().map(|_| None).collect(),
        kept: Vec::new(),
        redirect: None,
        passing: Vec::new(),
        daemons: Vec::new(),
        rooms: Rooms::default(),
        entries: Vec::new(),
    }
}
