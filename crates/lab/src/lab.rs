//! A lab while it stands.

use crate::apply::{Rooms, apply, failed};
use crate::end::EndNet;
use crate::error::{LabError, Lack};
use crate::existing::{self, Found, Hosts};
use crate::netns::{NetNs, processes_in};
use crate::probe::{self, Side};
use crate::site::{Far, Site, unexpected};
use crate::spec::LabSpec;
use crate::step::{Layout, Room, Step, prefix};
use crate::under::Under;
use crate::verify::{settled, verify};
use crate::vlan;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tailbound_host::{EntryId, Journal};
use tailbound_model::{Ask, Attached, Counted, PathFacts, Told, Undo};

/// How long ended processes may take to leave a namespace.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// Places and path of a trial. Dropping it lets go of its namespaces, but its journal entries stay: call
/// [`down`](Lab::down).
#[derive(Debug)]
pub struct Lab {
    spec: LabSpec,
    /// As [`LabSpec::places`] counts them.
    ends: Vec<Side>,
    /// What guests are attached to, by end, where that is the user's.
    attached: Vec<Option<Attached>>,
    rooms: Rooms,
    /// Of each namespace that was made, and of each interface in one that was given.
    entries: Vec<(Option<Room>, EntryId)>,
}

impl Lab {
    /// Builds the lab and reads back that it is as asked. On any error everything done so far is undone.
    ///
    /// What [`LabSpec::check`] finds, the step that failed, or the difference that was read back.
    pub async fn up(spec: &LabSpec, run_id: &str, journal: &Journal) -> Result<Lab, LabError> {
        Lab::up_with(spec, run_id, journal, (&[], None)).await
    }

    /// As [`up`](Lab::up), with the other hosts that are among its places, and what joins guests.
    ///
    /// # Errors
    /// As `up`.
    pub async fn up_with(
        spec: &LabSpec,
        run_id: &str,
        journal: &Journal,
        (hosts, under): (Hosts<'_>, Option<&Under>),
    ) -> Result<Lab, LabError> {
        let lacks = spec.lacks(under.is_some());
        if !lacks.is_empty() {
            return Err(LabError::Lacks(lacks));
        }
        match spec.layout() {
            Layout::Found(ends) => {
                let found = existing::find_all(spec, &ends, hosts, under).map_err(LabError::Lacks)?;
                if let Some(vlan) = &spec.vlan {
                    let verify = |(end, found): (usize, &Found)| vlan::verify(&found.interface, spec.name(end), vlan);
                    found.iter().enumerate().try_for_each(verify)?;
                }
                let addresses: Vec<IpAddr> = found.iter().map(|e| e.address.into()).collect();
                let peers = |end| spec.peers(end).map(|other| addresses[other]).collect::<Vec<_>>();
                let ends = found.into_iter().enumerate().map(|(end, found)| found.into_side(&peers(end))).collect();
                let failed = |e| LabError::read("reading what guests are attached to", "here", e);
                let attached = under.map(|under| (0..spec.places()).map(|end| under.attached(end)).collect());
                let attached = attached.unwrap_or_else(|| Ok(Vec::new())).map_err(failed)?;
                Ok(Lab { spec: spec.clone(), ends, attached, rooms: Rooms::default(), entries: Vec::new() })
            }
            Layout::Made(shape) => {
                let (mut rooms, mut entries) = (Rooms::default(), Vec::new());
                let steps = shape.steps(&prefix(run_id));
                let given = given(spec, hosts).map_err(|lack| LabError::Lacks(vec![lack]))?;
                match make(&steps, (spec, &given), run_id, journal, (&mut rooms, &mut entries)).await {
                    Ok(ends) => Ok(Lab { spec: spec.clone(), ends, attached: Vec::new(), rooms, entries }),
                    Err(error) => {
                        rooms.take_all().for_each(drop);
                        for (namespace, entry) in entries.into_iter().rev() {
                            // The first error is the one to tell; an entry that stays is void once this process ends.
                            match namespace {
                                Some(_) => drop(journal.done(entry)),
                                None => drop(journal.undo(entry)),
                            }
                        }
                        Err(error)
                    }
                }
            }
        }
    }

    /// How many ends there are.
    pub fn places(&self) -> usize {
        self.ends.len()
    }

    fn side(&self, end: usize) -> &Side {
        &self.ends[end]
    }

    /// What an end needs to know of the network: 0 (ping), 1 (pong) and, each in a place of its own, further ones.
    pub fn end(&self, end: usize) -> &EndNet {
        &self.side(end).net
    }

    /// The network namespace of an end; `None` = it is on another host.
    pub fn netns(&self, end: usize) -> Option<&NetNs> {
        match &self.side(end).site {
            Site::Here(netns) | Site::Inside(netns, _) => Some(netns),
            Site::There(_) => None,
        }
    }

    /// A word that is equal for ends that share a network namespace.
    pub fn space(&self, end: usize) -> String {
        self.side(end).site.identity()
    }

    /// This program made to run where the end is; `command` starts it on this host.
    pub fn command(&self, end: usize, mut command: Command) -> Command {
        match &self.side(end).site {
            Site::There(far) | Site::Inside(_, far) => return far.program(),
            Site::Here(netns) if !netns.is_own() => {
                let netns = netns.clone();
                // SAFETY: between fork and exec the closure makes one system call on a descriptor that it owns, and
                // allocates nothing.
                unsafe { command.pre_exec(move || netns.enter()) };
            }
            Site::Here(_) => {}
        }
        command
    }

    /// The path check: sends plain datagrams both ways and reads the facts of both interfaces. Takes some milliseconds
    /// when everything passes, at most about five seconds when nothing does.
    ///
    /// No socket could be opened, or an interface not be read. A path that passes nothing is not an error but facts.
    pub async fn probe(&self) -> Result<PathFacts, LabError> {
        let mut facts = probe::probe(&self.ends, &self.spec).await?;
        for (end, attached) in facts.ends.iter_mut().zip(&self.attached) {
            end.attached.clone_from(attached);
        }
        Ok(facts)
    }

    /// Counters of the end's interface (`interface.*`) and of IP and UDP in its network namespace (`Ip.*`, `Udp.*`,
    /// `IpExt.*`, named as in /proc/net/snmp and netstat), and throttling of its control group; empty when they cannot be read. Blocks for a moment.
    pub fn counters(&self, end: usize) -> BTreeMap<String, i64> {
        let side = self.side(end);
        match side.site.ask(Ask::Counters(side.net.interface.clone())) {
            Ok(Told::Counters(counters)) => counters,
            _ => BTreeMap::new(),
        }
    }

    /// Counters of all interfaces of the end's network namespace, and of IP and UDP in it. Blocks for a moment.
    ///
    /// # Errors
    /// The namespace cannot be entered, its counters not be read, or its host does not answer.
    pub fn counted(&self, end: usize) -> io::Result<Counted> {
        match self.side(end).site.ask(Ask::Counted)? {
            Told::Counted(counted) => Ok(counted),
            other => Err(unexpected(&other)),
        }
    }

    /// A UDP port that is free on the end's address. Blocks for a moment.
    ///
    /// # Errors
    /// The namespace cannot be entered, no port is free, or its host does not answer.
    pub fn free_port(&self, end: usize) -> io::Result<u16> {
        match self.side(end).site.ask(Ask::FreePort(self.side(end).net.address))? {
            Told::Port(port) => Ok(port),
            other => Err(unexpected(&other)),
        }
    }

    /// The namespaces of both ends were made for this lab: nobody else sends in them.
    pub fn is_made(&self) -> bool {
        !self.entries.is_empty() || self.spec.is_private()
    }

    /// Takes the lab down. The processes inside must have been ended before.
    ///
    /// A process still holds a namespace (its journal entry stays), or the journal cannot be written.
    pub async fn down(self, journal: &Journal) -> Result<(), LabError> {
        let Lab { ends, rooms, entries, .. } = self;
        drop(ends);
        let mut first_error = None;
        for (_, entry) in entries.iter().filter(|(namespace, _)| namespace.is_none()) {
            if let Err(error) = journal.undo(*entry) {
                first_error.get_or_insert(error.into());
            }
        }
        for (room, netns) in rooms.take_all() {
            let inode = netns.inode();
            drop(netns);
            let Some((_, entry)) = entries.iter().find(|(namespace, _)| *namespace == Some(room)) else { continue };
            let result = left(room, inode).await.and_then(|()| Ok(journal.done(*entry)?));
            if let Err(error) = result {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

impl Found {
    fn into_side(self, peers: &[IpAddr]) -> Side {
        let Found { site, interface, address } = self;
        let net = EndNet::new(&interface.name, address.into(), peers, interface.mtu, interface.multicast);
        Side { site, net }
    }
}

/// The ends that bring a network namespace with them.
type Given = Vec<(Room, NetNs, Arc<dyn Far>)>;

fn given(spec: &LabSpec, hosts: Hosts<'_>) -> Result<Given, Lack> {
    let mut given = Vec::new();
    for end in (0..spec.places()).filter(|end| spec.place(*end).is_reached()) {
        let far = existing::reached(spec.place(end), hosts.get(end).and_then(Option::as_ref))?;
        given.extend(far.netns().map(|netns| (Room::End(spec.name(end)), netns, far)));
    }
    Ok(given)
}

/// Takes all steps and reads the result back.
async fn make(
    steps: &[Step],
    (spec, given): (&LabSpec, &Given),
    run_id: &str,
    journal: &Journal,
    (rooms, entries): (&mut Rooms, &mut Vec<(Option<Room>, EntryId)>),
) -> Result<Vec<Side>, LabError> {
    let brought = |room: Room| given.iter().find(|(of, ..)| *of == room).map(|(_, netns, far)| (netns, far));
    for step in steps {
        if let Step::Namespace(room) = step {
            rooms.add(*room, namespace(*room, run_id, journal, entries)?);
        } else if let Step::Given(room) = step {
            let missing = || failed(step, io::Error::other("it brings none"));
            rooms.add(*room, brought(*room).ok_or_else(missing)?.0.clone());
        } else {
            // What is made in a namespace that stays does not go with it.
            if let Step::Pair { near, far, .. } = step
                && let Some((at, (netns, _))) = [near, far].into_iter().find_map(|at| Some((at, brought(at.room)?)))
            {
                let undo = Undo::DeleteInterface { name: at.name.clone(), ifindex: None, netns_inode: netns.inode() };
                entries.push((None, journal.before(undo)?));
            }
            apply(step, rooms).await?;
        }
    }
    if rooms.get(Room::Bridge).is_ok() {
        verify(Room::Bridge, &settled(Room::Bridge, rooms, steps).await?, steps)?;
    }
    let mut ends = Vec::new();
    for end in 0..spec.places() {
        let mut made = side(end, spec, steps, rooms).await?;
        if let Some((netns, far)) = brought(Room::End(spec.name(end))) {
            made.site = Site::Inside(netns.clone(), far.clone());
        }
        ends.push(made);
    }
    Ok(ends)
}

/// Makes a namespace, with its entry in the journal.
pub(crate) fn namespace(
    room: Room,
    run_id: &str,
    journal: &Journal,
    entries: &mut Vec<(Option<Room>, EntryId)>,
) -> Result<NetNs, LabError> {
    let undo = |inode| Undo::UnnamedNetns { inode, what: format!("{} of run {run_id}", room.name()) };
    let entry = journal.before(undo(0))?;
    entries.push((Some(room), entry));
    let netns = NetNs::make().map_err(|error| failed(&Step::Namespace(room), error))?;
    journal.update(entry, undo(netns.inode()))?;
    Ok(netns)
}

/// Verifies one end and says what it needs to know.
async fn side(end: usize, spec: &LabSpec, steps: &[Step], rooms: &Rooms) -> Result<Side, LabError> {
    let room = Room::End(spec.name(end));
    let found = settled(room, rooms, steps).await?;
    verify(room, &found, steps)?;
    let incomplete =
        || LabError::read("reading the interfaces back", room.name(), io::Error::other("it has no address"));
    let (name, own) = address_of(room, steps).ok_or_else(incomplete)?;
    let peers = spec.peers(end).filter_map(|other| Some(address_of(Room::End(spec.name(other)), steps)?.1));
    let peers: Vec<IpAddr> = peers.collect();
    let interface = found.iter().find(|i| i.name == name).ok_or_else(incomplete)?;
    let netns = rooms.get(room).map_err(|e| LabError::read("entering the namespace", room.name(), e))?.clone();
    Ok(Side { site: Site::Here(netns), net: EndNet::new(name, own, &peers, interface.mtu, interface.multicast) })
}

/// Interface and address that the steps give an end.
fn address_of(room: Room, steps: &[Step]) -> Option<(&str, IpAddr)> {
    steps.iter().find_map(|step| match step {
        Step::Address { at, address, .. } if at.room == room => Some((at.name.as_str(), (*address).into())),
        _ => None,
    })
}

/// Waits until no process is left in a namespace.
pub(crate) async fn left(room: Room, inode: u64) -> Result<(), LabError> {
    let end = Instant::now() + LEAVE_WITHIN;
    loop {
        let holders = processes_in(inode);
        if holders.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            let processes = holders.iter().map(|(pid, name)| format!("{pid} ({name})")).collect::<Vec<_>>().join(", ");
            return Err(LabError::StillHeld { place: room.name().to_owned(), processes });
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
