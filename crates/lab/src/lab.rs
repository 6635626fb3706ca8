//! A lab from its making (`up`) to its removal (`down`).

use crate::apply::apply;
use crate::end::EndNet;
use crate::error::LabError;
use crate::existing::{self, Found, Hosts};
use crate::failure::failed;
use crate::netns::NetNs;
use crate::probe::{self, Side};
use crate::replaced;
use crate::rooms::{Rooms, make_namespace, wait_until_left};
use crate::site::{Far, Site, unexpected};
use crate::spec::LabSpec;
use crate::step::{Layout, Room, Step, prefix};
use crate::verify::{settled, verify};
use crate::vlan;
use crate::wiring::Wiring;
use crate::{gates, police};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use tailbound_host::{EntryId, Journal};
use tailbound_model::{
    Answer, Ask, Attached, Counted, LaunchSpec, PathFacts, PoliceFact, PoliceOnly, PoliceSpec, Problem, Undo,
};

/// The places and the path of a trial. If a lab is dropped, its network namespaces are released but its journal entries
/// stay: call [`down`](Lab::down) instead.
#[derive(Debug)]
pub struct Lab {
    spec: LabSpec,
    /// The ends of the lab, numbered like the places of [`LabSpec::places`].
    ends: Vec<Side>,
    /// For each end of the lab: the interface or device of the user to which a guest is attached.
    attached: Vec<Option<Attached>>,
    rooms: Rooms,
    /// Journal entries of the lab: for each network namespace that was made, an entry with the purpose ([`Room`]) of
    /// the namespace; for each interface that was made in a container's namespace, an entry without a purpose.
    entries: Vec<(Option<Room>, EntryId)>,
    /// Journal entries of interfaces of the user whose queue disciplines were replaced.
    replaced: Vec<EntryId>,
}

impl Lab {
    /// Builds the lab, reads its interfaces back and compares them with the specification. If an error occurs, all
    /// steps so far are undone.
    ///
    /// # Errors
    /// A problem found by [`LabSpec::check`], a failed step, or a difference between the specification and the values
    /// read back.
    pub async fn up(spec: &LabSpec, run_id: &str, journal: &Journal) -> Result<Lab, LabError> {
        Lab::up_with(spec, run_id, journal, (&[], None)).await
    }

    /// Builds the lab like [`up`](Lab::up), with the connections to the other hosts of its places, and with the wiring
    /// of its guests.
    ///
    /// # Errors
    /// See [`up`](Lab::up).
    pub async fn up_with(
        spec: &LabSpec,
        run_id: &str,
        journal: &Journal,
        (hosts, wiring): (Hosts<'_>, Option<&Wiring>),
    ) -> Result<Lab, LabError> {
        let lacks = spec.lacks(wiring.is_some());
        if !lacks.is_empty() {
            return Err(LabError::Lacks(lacks));
        }
        match spec.layout() {
            Layout::Found(ends) => {
                let found = existing::find_all(spec, &ends, hosts, wiring).map_err(LabError::Lacks)?;
                if let Some(vlan) = &spec.vlan {
                    let verify = |(end, found): (usize, &Found)| vlan::verify(&found.interface, spec.name(end), vlan);
                    found.iter().enumerate().try_for_each(verify)?;
                }
                let addresses: Vec<IpAddr> = found.iter().map(|e| e.address.into()).collect();
                let peers = |end| spec.peers(end).map(|other| addresses[other]).collect::<Vec<_>>();
                let ends = found.into_iter().enumerate();
                let ends: Vec<Side> = ends
                    .map(|(end, found)| {
                        let has = [spec.gates_of(end).is_some(), spec.shaping_of(end).is_some()];
                        let sends_by = wiring.and_then(|wiring| wiring.sends_by(end));
                        found.into_side(&peers(end), sends_by, (has, spec.launch_of(end)))
                    })
                    .collect();
                let failed = |e| LabError::read("reading the interfaces to which guests are attached", "here", e);
                let attached = wiring.map(|wiring| (0..spec.places()).map(|end| wiring.attached(end)).collect());
                let attached = attached.unwrap_or_else(|| Ok(Vec::new())).map_err(failed)?;
                let (mut replaced, rooms, entries) = (Vec::new(), Rooms::default(), Vec::new());
                if spec.is_private() {
                    set_at_made(spec, &ends, &rooms.second_ns).await?;
                } else if let Err(error) = replaced::set(spec, &ends, journal, &mut replaced).await {
                    // The first error is the one that is reported; an entry that stays is undone by the next start.
                    let _ = replaced::put_back(&replaced, journal);
                    return Err(error);
                }
                Ok(Lab { spec: spec.clone(), ends, attached, rooms, entries, replaced })
            }
            Layout::Made(shape) => {
                let (mut rooms, mut entries) = (Rooms::default(), Vec::new());
                let steps = shape.steps(&prefix(run_id));
                let given = given(spec, hosts).map_err(|problem| LabError::Lacks(vec![problem]))?;
                match make(&steps, (spec, &given), run_id, journal, (&mut rooms, &mut entries)).await {
                    Ok(ends) => {
                        let (attached, replaced) = (Vec::new(), Vec::new());
                        Ok(Lab { spec: spec.clone(), ends, attached, rooms, entries, replaced })
                    }
                    Err(error) => {
                        rooms.take_all().for_each(drop);
                        for (namespace, entry) in entries.into_iter().rev() {
                            // The first error is the one that is reported; an entry that stays is void when this
                            // process ends.
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

    /// Number of ends (places) in this lab.
    pub fn places(&self) -> usize {
        self.ends.len()
    }

    fn side(&self, end: usize) -> &Side {
        &self.ends[end]
    }

    /// Network settings of an end: number 0 is ping, 1 is pong, and higher numbers are further ends that have their own
    /// places.
    pub fn end(&self, end: usize) -> &EndNet {
        &self.side(end).net
    }

    /// Network namespace of an end; `None` if the end is on another host.
    pub fn netns(&self, end: usize) -> Option<&NetNs> {
        self.side(end).site.netns()
    }

    /// Text that identifies the network namespace of an end; equal for ends in the same namespace.
    pub fn space(&self, end: usize) -> String {
        self.side(end).site.identity()
    }

    /// Returns the command that runs a program at the place of an end; `command` is the command for this host.
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

    /// Does the path check: sends plain datagrams in both directions and reads the facts of all interfaces. The path
    /// check takes some milliseconds if all datagrams arrive, and at most about five seconds if none arrives.
    ///
    /// # Errors
    /// A socket could not be opened, or an interface could not be read. A path that carries no datagram is reported in
    /// the facts, not as an error.
    pub async fn probe(&self) -> Result<PathFacts, LabError> {
        let mut facts = probe::probe(&self.ends, &self.spec).await?;
        for (end, attached) in facts.ends.iter_mut().zip(&self.attached) {
            end.attached.clone_from(attached);
        }
        Ok(facts)
    }

    /// Reads the counters of the end's interface (`interface.*`), of IP and UDP in its network namespace (`Ip.*`,
    /// `Udp.*`, `IpExt.*`, with the names of /proc/net/snmp and netstat), and of CPU throttling of its control group.
    /// The map is empty if the counters cannot be read. Blocks for a moment.
    pub fn counters(&self, end: usize) -> BTreeMap<String, i64> {
        let side = self.side(end);
        match side.site.ask(Ask::Counters(side.net.interface.clone())) {
            Ok(Answer::Counters(counters)) => counters,
            _ => BTreeMap::new(),
        }
    }

    /// Reads the counters of all interfaces, and of IP and UDP, in the network namespace of an end. Blocks for a
    /// moment.
    ///
    /// # Errors
    /// The namespace cannot be entered, the counters cannot be read, or the host does not answer.
    pub fn counted(&self, end: usize) -> io::Result<Counted> {
        match self.side(end).site.ask(Ask::Counted)? {
            Answer::Counted(counted) => Ok(counted),
            other => Err(unexpected(&other)),
        }
    }

    /// Begins to police the packets that the ends receive, from a begin of their gate control lists on. `port`: the UDP port at which
    /// an end receives the messages, if it is known.
    ///
    /// # Errors
    /// The kernel refuses a gate, or reports another one; or the port of policed messages is not known.
    pub async fn begin_policing(&self, port: impl Fn(&str) -> Option<u16>) -> Result<(), LabError> {
        for (police, side, end) in self.policed() {
            let (netns, name, second_ns) = (self.netns_of(side)?, &side.net.interface, &self.rooms.second_ns);
            let port = match police.only {
                None => None,
                Some(PoliceOnly::Port(port)) => Some(port),
                Some(PoliceOnly::Messages) => Some(port(end).ok_or_else(|| {
                    let reason = io::Error::other("the driver reports no port at which it receives the messages");
                    LabError::read(format!("policing the messages that {name} receives"), end, reason)
                })?),
            };
            let put = police::put(netns, name, (police, port), gates::reference_ns(second_ns)).await;
            put.map_err(|error| {
                LabError::read(format!("setting the gate for packets that {name} receives"), end, error)
            })?;
        }
        Ok(())
    }

    /// Ends what [`begin_policing`](Lab::begin_policing) began. Returns each policed end, and what its gate counted since then.
    ///
    /// # Errors
    /// A gate cannot be read, or another program has removed it.
    pub async fn end_policing(&self) -> Result<Vec<(&'static str, PoliceFact)>, LabError> {
        let mut all = Vec::new();
        for (_, side, end) in self.policed() {
            let (netns, name) = (self.netns_of(side)?, &side.net.interface);
            let fact = police::end(netns, name).await;
            let failed = |error| LabError::read(format!("reading what the gate of {name} dropped"), end, error);
            all.push((end, fact.map_err(failed)?));
        }
        Ok(all)
    }

    /// The policed ends with their names.
    fn policed(&self) -> impl Iterator<Item = (&PoliceSpec, &Side, &'static str)> {
        let of = |(end, side)| Some((self.spec.police_of(end)?, side, self.spec.name(end)));
        self.ends.iter().enumerate().filter_map(of)
    }

    fn netns_of<'a>(&self, side: &'a Side) -> Result<&'a NetNs, LabError> {
        let elsewhere = || io::Error::other("the interface is on another host");
        let failed = || LabError::read("policing received packets", side.net.interface.clone(), elsewhere());
        side.site.netns().ok_or_else(failed)
    }

    /// Finds a UDP port that is free on the address of an end. Blocks for a moment.
    ///
    /// # Errors
    /// The namespace cannot be entered, no port is free, or the host does not answer.
    pub fn free_port(&self, end: usize) -> io::Result<u16> {
        match self.side(end).site.ask(Ask::FreePort(self.side(end).net.address))? {
            Answer::Port(port) => Ok(port),
            other => Err(unexpected(&other)),
        }
    }

    /// Whether the network namespaces of all ends were made for this lab, so that no other program sends packets in
    /// them.
    pub fn is_made(&self) -> bool {
        !self.entries.is_empty() || self.spec.is_private()
    }

    /// Removes the lab. The processes in its network namespaces must have ended before.
    ///
    /// # Errors
    /// A process still uses a namespace (then its journal entry stays), or the journal cannot be written.
    pub async fn down(self, journal: &Journal) -> Result<(), LabError> {
        let Lab { ends, rooms, entries, replaced, .. } = self;
        drop(ends);
        let mut first_error = replaced::put_back(&replaced, journal).err();
        for (_, entry) in entries.iter().filter(|(namespace, _)| namespace.is_none()) {
            if let Err(error) = journal.undo(*entry) {
                first_error.get_or_insert(error.into());
            }
        }
        for (room, netns) in rooms.take_all() {
            let inode = netns.inode();
            drop(netns);
            let Some((_, entry)) = entries.iter().find(|(namespace, _)| *namespace == Some(room)) else { continue };
            let result = wait_until_left(room, inode).await.and_then(|()| Ok(journal.done(*entry)?));
            if let Err(error) = result {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

impl Found {
    /// `sends_by`: name of the interface by which the end sends, if it is not the one with the address. `has`: whether that interface has
    /// gates, and traffic classes; `launch`: launch times of its messages.
    fn into_side(
        self,
        peers: &[IpAddr],
        sends_by: Option<String>,
        (has, launch): ([bool; 2], Option<LaunchSpec>),
    ) -> Side {
        let Found { site, interface, address } = self;
        let net = EndNet::new(&interface.name, address.into(), peers, interface.mtu, interface.multicast);
        let name = sends_by.unwrap_or_else(|| interface.name.clone());
        let [gated, shaped] = has.map(|has| has.then(|| name.clone()));
        let launching = launch.map(|launch| (name, launch.priority));
        Side { site, net, gated, shaped, launching }
    }
}

/// The ends in containers, whose empty network namespaces the lab uses: namespace and connection of each end.
type Given = Vec<(Room, NetNs, Arc<dyn Far>)>;

fn given(spec: &LabSpec, hosts: Hosts<'_>) -> Result<Given, Problem> {
    let mut given = Vec::new();
    for end in (0..spec.places()).filter(|end| spec.place(*end).is_reached()) {
        let far = existing::reached(spec.place(end), hosts.get(end).and_then(Option::as_ref))?;
        given.extend(far.netns().map(|netns| (Room::End(spec.name(end)), netns, far)));
    }
    Ok(given)
}

/// Sets what the study asks for at the interfaces that the wiring has made for ends on this host. They end with their network
/// namespaces, so that nothing is in the journal.
///
/// # Errors
/// The kernel refuses, or reports something else.
async fn set_at_made(spec: &LabSpec, ends: &[Side], second_ns: &OnceLock<i64>) -> Result<(), LabError> {
    for (end, side) in ends.iter().enumerate() {
        let (Some(wanted), Site::Here(netns)) = (spec.wanted(end), &side.site) else { continue };
        let launching = side.launching.as_ref().map(|(name, _)| name);
        let name = side.gated.as_ref().or(side.shaped.as_ref()).or(launching).unwrap_or(&side.net.interface);
        let at = (netns, name.as_str(), spec.name(end));
        wanted.put(at, (second_ns, gates::HANDLE)).await?;
    }
    Ok(())
}

/// Executes all steps that make a lab, and reads the interfaces back.
async fn make(
    steps: &[Step],
    (spec, given): (&LabSpec, &Given),
    run_id: &str,
    journal: &Journal,
    (rooms, entries): (&mut Rooms, &mut Vec<(Option<Room>, EntryId)>),
) -> Result<Vec<Side>, LabError> {
    let provided = |room: Room| given.iter().find(|(of, ..)| *of == room).map(|(_, netns, far)| (netns, far));
    for step in steps {
        if let Step::Namespace(room) = step {
            rooms.add(*room, make_namespace(*room, run_id, journal, entries)?);
        } else if let Step::Given(room) = step {
            let missing = || failed(step, io::Error::other("the container has no network namespace of its own"));
            rooms.add(*room, provided(*room).ok_or_else(missing)?.0.clone());
        } else {
            // An interface in a namespace that outlives the lab needs an undo of its own.
            if let Step::Pair { near, far, .. } = step
                && let Some((at, (netns, _))) = [near, far].into_iter().find_map(|at| Some((at, provided(at.room)?)))
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
        if let Some((netns, far)) = provided(Room::End(spec.name(end))) {
            made.site = Site::Inside(netns.clone(), far.clone());
        }
        ends.push(made);
    }
    Ok(ends)
}

/// Compares the interfaces of one end with the steps that made them, and returns the network settings of the end.
async fn side(end: usize, spec: &LabSpec, steps: &[Step], rooms: &Rooms) -> Result<Side, LabError> {
    let room = Room::End(spec.name(end));
    let found = settled(room, rooms, steps).await?;
    verify(room, &found, steps)?;
    let incomplete =
        || LabError::read("reading the interfaces back", room.name(), io::Error::other("the end has no address"));
    let (name, own) = address_of(room, steps).ok_or_else(incomplete)?;
    let peers = spec.peers(end).filter_map(|other| Some(address_of(Room::End(spec.name(other)), steps)?.1));
    let peers: Vec<IpAddr> = peers.collect();
    let interface = found.iter().find(|i| i.name == name).ok_or_else(incomplete)?;
    let netns = rooms.get(room).map_err(|e| LabError::read("entering the namespace", room.name(), e))?.clone();
    let net = EndNet::new(name, own, &peers, interface.mtu, interface.multicast);
    let gated = steps.iter().find_map(|step| match step {
        Step::Gates { at, .. } if at.room == room => Some(at.name.clone()),
        _ => None,
    });
    let shaped = steps.iter().find_map(|step| match step {
        Step::Shaping { at, .. } if at.room == room => Some(at.name.clone()),
        _ => None,
    });
    let launching = steps.iter().find_map(|step| match step {
        Step::Launch { at, launch } | Step::Gates { at, launch: Some(launch), .. } if at.room == room => {
            Some((at.name.clone(), launch.priority))
        }
        _ => None,
    });
    Ok(Side { site: Site::Here(netns), net, gated, shaped, launching })
}

/// Finds the interface and the address of an end in the steps that make the lab.
fn address_of(room: Room, steps: &[Step]) -> Option<(&str, IpAddr)> {
    steps.iter().find_map(|step| match step {
        Step::Address { at, address, .. } if at.room == room => Some((at.name.as_str(), (*address).into())),
        _ => None,
    })
}
