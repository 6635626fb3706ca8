//! The specification of a lab: its path and its places.

use crate::step::{Layout, Room, Shape, Step};
use crate::wanted::Wanted;
use crate::wiring::{Port, Wiring};
use tailbound_model::{
    ContainerNetwork, ExistingEnd, GatesBy, GatesSpec, LaunchBy, LaunchSpec, Nanos, PathSpec, PlaceSpec, PoliceSpec,
    ShapingSpec, TrialSpec, VlanSpec, VmSpec, publisher_end, subscriber_end,
};

/// The path and the places of a trial. Trials with equal specifications share one lab.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LabSpec {
    /// Path that joins the places of the lab's ends.
    pub path: PathSpec,
    /// Place of the ping end and of all other sending ends of the lab.
    pub ping: PlaceSpec,
    /// Place of the pong end and of all other receiving ends of the lab.
    pub pong: PlaceSpec,
    /// Number of sending ends of the lab.
    pub publishers: u32,
    /// Number of receiving ends of the lab.
    pub subscribers: u32,
    /// Whether each end of the lab has its own place.
    pub apart: bool,
    /// VLAN on top of the path. If there is a VLAN, its interfaces have the addresses of the ends.
    pub vlan: Option<VlanSpec>,
    /// Gates of the interfaces of sending ends, and of receiving ends.
    pub gates: [Option<GatesSpec>; 2],
    /// Traffic classes of the interfaces of sending ends, and of receiving ends, with their credits.
    pub shaping: [Option<ShapingSpec>; 2],
    /// Gates for the packets that the interfaces of sending ends receive, and of receiving ends.
    pub police: [Option<PoliceSpec>; 2],
    /// Launch times of the messages that the ping end sends.
    pub launch: Option<LaunchSpec>,
}

impl From<&TrialSpec> for LabSpec {
    fn from(trial: &TrialSpec) -> LabSpec {
        LabSpec {
            path: trial.path.clone(),
            ping: trial.ping.place.clone(),
            pong: trial.pong.place.clone(),
            publishers: trial.measure.publishers(),
            subscribers: trial.measure.subscribers(),
            apart: trial.measure.flow().is_some_and(|f| f.apart),
            vlan: trial.vlan.clone(),
            gates: [trial.ping.gates.clone(), trial.pong.gates.clone()],
            shaping: [trial.ping.shaping.clone(), trial.pong.shaping.clone()],
            police: [trial.ping.police.clone(), trial.pong.police.clone()],
            launch: trial.stream.and_then(|stream| stream.launch),
        }
    }
}

impl LabSpec {
    /// Whether network namespaces are made for the lab, which needs root or a user namespace.
    pub fn makes_namespaces(&self) -> bool {
        let made = matches!(self.path, PathSpec::Veth { .. } | PathSpec::Bridge { .. });
        let without_namespaces = matches!(self.path, PathSpec::Datagram { .. } | PathSpec::Existing { .. });
        made || (self.is_wired() && !without_namespaces)
    }

    /// Whether the lab needs wiring, which is made before guests start: if an end is a guest, or the path uses XDP or
    /// Open vSwitch.
    pub fn is_wired(&self) -> bool {
        let guest = [&self.ping, &self.pong].into_iter().any(|place| matches!(place, PlaceSpec::Vm(_)));
        match self.path {
            PathSpec::Loopback => false,
            // These paths use the wiring also between network namespaces.
            PathSpec::Xdp { .. } | PathSpec::OpenVswitch { .. } => true,
            _ => guest,
        }
    }

    /// Whether Tailbound makes the whole wiring, so that no guest is attached to interfaces of the user.
    pub(crate) fn is_private(&self) -> bool {
        self.is_wired() && !matches!(self.path, PathSpec::Existing { .. })
    }

    /// Guests of the lab in which no end runs, each with the end whose guest it is a neighbour of: the neighbours of the
    /// ping's guest, then the neighbours of the pong's guest. If both ends are in one guest, its neighbours are listed once.
    pub fn neighbours(&self) -> Vec<(&'static str, VmSpec)> {
        let mut places = vec![("ping", &self.ping), ("pong", &self.pong)];
        places.dedup_by_key(|(_, place)| *place);
        let of_place = |(end, place): (&'static str, &PlaceSpec)| match place {
            PlaceSpec::Vm(guest) => guest.neighbours().map(|neighbour| (end, neighbour)).collect(),
            _ => Vec::new(),
        };
        places.into_iter().flat_map(of_place).collect()
    }

    /// The ends of the lab, and after them the neighbours, in the form (`Port`) that the wiring of guests needs.
    pub fn ports(&self) -> Vec<Port> {
        let port = |end: usize| match self.place(end) {
            PlaceSpec::Vm(guest) => Port::Guest { queues: guest.queues },
            _ if matches!(self.path, PathSpec::Existing { .. }) => Port::Existing,
            _ => Port::Host { queues: self.wanted(end).map_or(1, Wanted::queues) },
        };
        let neighbours = self.neighbours();
        let neighbours = neighbours.iter().map(|(_, guest)| Port::Guest { queues: guest.queues });
        (0..self.places()).map(port).chain(neighbours).collect()
    }

    /// Lines for `--dry-run`: each step of making the lab and the path check as a command, with the privilege that it
    /// needs.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for place in [&self.ping, &self.pong] {
            match place {
                PlaceSpec::Ssh(ssh) => {
                    let what = match &ssh.program {
                        Some(program) => format!("start {program} on the host"),
                        None => {
                            "copy the bundle to the host if the host does not have it, and start the agent".to_owned()
                        }
                    };
                    lines.push(format!("{place}: log in, {what}  [your login on the host]"));
                }
                PlaceSpec::Pod(_) => {
                    let all = (0..self.places()).filter(|end| self.place(*end) == place).count();
                    let what = match all {
                        _ if !self.apart || all == 1 => {
                            "make the pod, wait until the pod runs, delete the pod".to_owned()
                        }
                        n => format!("make {n} pods, wait until all pods run, delete the pods"),
                    };
                    lines.push(format!("{place}: {what} afterwards  [your rights in the cluster]"));
                }
                PlaceSpec::Domain(domain) => {
                    let steered = if domain.asks_for_threads() {
                        "pin the threads of the domain, restore their CPUs"
                    } else {
                        "read the state of the domain"
                    };
                    let (reached, rights) = match domain.ssh {
                        Some(_) => (
                            "log in to the domain, copy the bundle to it",
                            "your rights with libvirt, your login in the domain",
                        ),
                        None => (
                            "connect to Tailbound in the domain over the domain's channels",
                            "your rights with libvirt, root",
                        ),
                    };
                    lines.push(format!(
                        "{place}: start the domain if it does not run (virsh), {steered} afterwards, {reached}  [{rights}]"
                    ));
                }
                PlaceSpec::Vm(guest) => lines.extend(describe_guest(guest)),
                PlaceSpec::Container(_) => {
                    lines.push(format!(
                        "{place}: make and start the container, remove the container afterwards  [root]"
                    ));
                }
                _ => {}
            }
        }
        lines.dedup();
        lines.extend(self.describe_up());
        lines.push(
            "path check: send UDP datagrams of at most 65507 B in both directions, and to a multicast group of \
             239.255/16 (TTL 1) where the interfaces carry multicast  [no privilege]"
                .into(),
        );
        lines
    }

    /// Network options for the driver of an end (0 is ping, 1 is pong) that are known before the lab is made; empty if
    /// the lab makes its own network.
    pub fn known_options(&self, end: usize) -> Vec<(String, String)> {
        let Layout::Found(ends) = self.layout() else { return Vec::new() };
        let [ping, pong] = &*ends;
        let (own, other) = if end == 0 { (ping, pong) } else { (pong, ping) };
        // The loopback interface of Linux has no multicast.
        let multicast = (self.path == PathSpec::Loopback).then(|| "off".to_owned());
        let options = [
            ("interface", own.interface.clone()),
            ("address", own.address.clone()),
            ("peers", other.address.clone()),
            ("multicast", multicast),
        ];
        options.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }

    fn describe_up(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.is_wired() {
            all = Wiring::describe((&self.path, self.vlan.as_ref()), &self.ports());
            for (place, vlan) in [&self.ping, &self.pong].into_iter().zip(std::iter::repeat(&self.vlan)) {
                if let (PlaceSpec::Vm(guest), Some(vlan)) = (place, vlan) {
                    let command = crate::vlan::command("NIC", &format!("NIC.{}", vlan.id), vlan);
                    all.push(format!("guest {}: {command}  [no privilege of this host]", guest.name));
                }
            }
            if self.is_private() {
                all.extend((0..self.places()).flat_map(|end| self.describe_queues(end)));
                return all;
            }
        }
        match self.layout() {
            Layout::Made(shape) => {
                let steps = shape.steps("tbRUN");
                let policed = (0..self.places()).filter_map(|end| self.describe_police(end, &steps));
                steps.iter().map(Step::with_privilege).chain(policed).collect()
            }
            Layout::Found(ends) => {
                let read = ends
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| !matches!(self.place(*i), PlaceSpec::Vm(_)) || !self.is_wired());
                let lines = read.map(|(i, end): (usize, &ExistingEnd)| {
                    let wanted = match (&end.interface, &end.address) {
                        (Some(interface), Some(address)) => format!("interface {interface} with address {address}"),
                        (Some(interface), None) => format!("interface {interface} and its first IPv4 address"),
                        (None, Some(address)) => format!("the interface with address {address}"),
                        (None, None) if matches!(self.place(i), PlaceSpec::Pod(_)) => {
                            "the interface with the address that the cluster gave the pod".to_owned()
                        }
                        (None, None) if matches!(self.place(i), PlaceSpec::Container(_)) => {
                            "the interface with the first address that podman or ctr gave the container".to_owned()
                        }
                        (None, None) => "an interface that the study does not name".to_owned(),
                    };
                    let (place, privilege) = match self.place(i) {
                        PlaceSpec::ExistingNetns(name) => (format!("network namespace {name}"), "CAP_SYS_ADMIN"),
                        place @ (PlaceSpec::Ssh(_) | PlaceSpec::Pod(_) | PlaceSpec::Domain(_)) => {
                            (place.to_string(), "no privilege")
                        }
                        place @ PlaceSpec::Container(_) => (place.to_string(), "root"),
                        _ => ("this network namespace".to_owned(), "no privilege"),
                    };
                    match self.wanted(i).map(|wanted| wanted.command("INTERFACE")) {
                        None => format!("read {wanted} in {place} for {}; nothing is changed  [{privilege}]", self.name(i)),
                        Some(command) => format!(
                            "read {wanted} in {place} for {}; {command}; its queue discipline is restored afterwards  [root: \
                             CAP_NET_ADMIN]",
                            self.name(i)
                        ),
                    }
                });
                all.extend(lines);
                all
            }
        }
    }

    /// Number of places of the lab. Place 0 has the ping end, the next places have the receiving ends, and the last
    /// places have the further sending ends.
    pub fn places(&self) -> usize {
        if self.apart { (self.publishers + self.subscribers) as usize } else { 2 }
    }

    /// Whether the end at the place with this number sends.
    pub fn sends(&self, end: usize) -> bool {
        end == 0 || (self.apart && end > self.subscribers as usize)
    }

    /// Name of the first end at the place with this number, such as `ping` or `pong3`.
    pub fn name(&self, end: usize) -> &'static str {
        match end {
            0 => "ping",
            n if self.sends(n) => publisher_end((n - self.subscribers as usize + 1) as u8),
            n => subscriber_end(n as u8),
        }
    }

    /// Gates of the interface of the end with this number.
    pub(crate) fn gates_of(&self, end: usize) -> Option<&GatesSpec> {
        self.gates[usize::from(!self.sends(end))].as_ref()
    }

    /// What the end with this number asks for at the interface by which it sends, in the place of its queue discipline.
    pub(crate) fn wanted(&self, end: usize) -> Option<Wanted<'_>> {
        let gates = self.gates_of(end).filter(|gates| gates.by != GatesBy::Existing);
        let launch = self.launch_of(end).filter(|launch| launch.by == LaunchBy::Etf);
        let wanted = gates.map(|gates| Wanted::Gates(gates, launch));
        wanted.or_else(|| self.shaping_of(end).map(Wanted::Shaping)).or_else(|| launch.map(Wanted::Launch))
    }

    /// Launch times of the messages that the end with this number sends.
    pub(crate) fn launch_of(&self, end: usize) -> Option<LaunchSpec> {
        self.launch.filter(|_| end == 0)
    }

    /// Traffic classes of the interface of the end with this number.
    pub(crate) fn shaping_of(&self, end: usize) -> Option<&ShapingSpec> {
        self.shaping[usize::from(!self.sends(end))].as_ref()
    }

    /// Gate for the packets that the interface of the end with this number receives.
    pub(crate) fn police_of(&self, end: usize) -> Option<&PoliceSpec> {
        self.police[usize::from(!self.sends(end))].as_ref()
    }

    /// Lines for `--dry-run`: the queue disciplines and the policing of the interface that the wiring makes for an end on this host.
    fn describe_queues(&self, end: usize) -> impl Iterator<Item = String> {
        let (below, on_top) = Wiring::described_host_end(end, self.vlan.is_some());
        let queues = self.wanted(end).map(|wanted| wanted.command(&below));
        let police = self
            .police_of(end)
            .map(|police| format!("while messages are measured: {}", crate::police::command(&on_top, police)));
        [queues, police]
            .into_iter()
            .flatten()
            .map(move |line| format!("{}: {line}  [CAP_NET_ADMIN within the new namespace]", Room::Host(end).name()))
    }

    /// Line for `--dry-run`: the policing of the interface to which these steps give the address of the end.
    fn describe_police(&self, end: usize, steps: &[Step]) -> Option<String> {
        let police = self.police_of(end)?;
        let room = Room::End(self.name(end));
        let at = steps.iter().find_map(|step| match step {
            Step::Address { at, .. } if at.room == room => Some(at),
            _ => None,
        })?;
        let command = crate::police::command(&at.name, police);
        Some(format!(
            "{}, while messages are measured: {command}  [CAP_NET_ADMIN within the new namespace]",
            room.name()
        ))
    }

    /// Specification of the place of the end with this number.
    pub fn place(&self, end: usize) -> &PlaceSpec {
        if self.sends(end) { &self.ping } else { &self.pong }
    }

    /// Numbers of the places with which the end at a place communicates.
    pub(crate) fn peers(&self, end: usize) -> impl Iterator<Item = usize> {
        let sends = self.sends(end);
        (0..self.places()).filter(move |other| self.sends(*other) != sends)
    }

    fn rooms(&self) -> Vec<Room> {
        (0..self.places()).map(|end| Room::End(self.name(end))).collect()
    }

    pub(crate) fn layout(&self) -> Layout {
        match &self.path {
            // The wiring was made before the guests started.
            _ if self.is_private() => Layout::Found(Box::default()),
            PathSpec::Loopback => {
                let lo = ExistingEnd { interface: Some("lo".into()), address: Some("127.0.0.1".into()), device: None };
                Layout::Found(Box::new([lo.clone(), lo]))
            }
            PathSpec::Existing { ping, pong } => {
                // A guest has the configured address on its only interface.
                let of = |place: &PlaceSpec, end: &ExistingEnd| match place {
                    PlaceSpec::Vm(_) => ExistingEnd::default(),
                    _ => end.clone(),
                };
                Layout::Found(Box::new([of(&self.ping, ping), of(&self.pong, pong)]))
            }
            PathSpec::Macvtap { .. }
            | PathSpec::Xdp { .. }
            | PathSpec::OpenVswitch { .. }
            | PathSpec::Datagram { .. } => Layout::Found(Box::default()),
            PathSpec::Veth { mtu, delay } => Layout::Made(self.shape(false, *mtu, *delay)),
            PathSpec::Bridge { mtu } => Layout::Made(self.shape(true, *mtu, None)),
        }
    }

    fn shape(&self, bridged: bool, mtu: Option<u32>, delay: Option<Nanos>) -> Shape {
        let gates = (0..self.places()).filter_map(|end| Some((end, self.gates_of(end)?.clone()))).collect();
        let shaping = (0..self.places()).filter_map(|end| Some((end, self.shaping_of(end)?.clone()))).collect();
        let (rooms, given, vlan) = (self.rooms(), self.given(), self.vlan.clone());
        Shape { bridged, mtu, delay, rooms, given, vlan, gates, shaping, launch: self.launch }
    }

    /// The ends of the lab that are in containers, whose empty network namespaces the lab uses.
    fn given(&self) -> Vec<Room> {
        let has_namespace = |place: &PlaceSpec| match place {
            PlaceSpec::Container(container) => container.network == ContainerNetwork::None,
            _ => false,
        };
        (0..self.places()).filter(|end| has_namespace(self.place(*end))).map(|end| Room::End(self.name(end))).collect()
    }
}

/// Lines for `--dry-run` about a guest and its neighbours.
fn describe_guest(guest: &VmSpec) -> impl Iterator<Item = String> + '_ {
    let line = |guest: &VmSpec, what: &str| {
        let privilege = if guest.needs_privilege() { "CAP_SYS_NICE or CAP_IPC_LOCK" } else { "no privilege" };
        format!("{guest}: {what}  [{privilege}]")
    };
    let own = line(guest, "start the guest with QEMU, wait until the guest answers, end the guest");
    let beside = move |guest: VmSpec| line(&guest, "the same, before the messages are sent; no end runs in it");
    std::iter::once(own).chain(guest.neighbours().map(beside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::SshSpec;

    #[test]
    fn a_dry_run_prints_what_is_done_on_another_host() {
        let far = |program: Option<&str>| {
            PlaceSpec::Ssh(SshSpec {
                host: "guest-1".into(),
                directory: None,
                program: program.map(str::to_owned),
                remove: false,
            })
        };
        let spec = |ping, pong| LabSpec {
            path: PathSpec::Loopback,
            ping,
            pong,
            publishers: 1,
            subscribers: 1,
            apart: false,
            vlan: None,
            gates: [None, None],
            shaping: [None, None],
            police: [None, None],
            launch: None,
        };
        let both = spec(far(None), far(None)).describe();
        let begin = "ssh guest-1: log in, copy the bundle to the host if the host does not have it, and start the \
                     agent  [your login";
        assert!(both[0].starts_with(begin) && both[1].starts_with("read interface lo"), "{both:?}");
        let installed = spec(PlaceSpec::Process, far(Some("/opt/tailbound"))).describe();
        assert_eq!(installed[0], "ssh guest-1: log in, start /opt/tailbound on the host  [your login on the host]");
    }

    #[test]
    fn a_dry_run_prints_what_is_read_where_and_with_which_privilege() {
        let end = |interface: &str| ExistingEnd { interface: Some(interface.into()), ..ExistingEnd::default() };
        let path = PathSpec::Existing { ping: end("eth1"), pong: end("tap0") };
        let spec = LabSpec {
            path,
            ping: PlaceSpec::Process,
            pong: PlaceSpec::ExistingNetns("blue".into()),
            publishers: 1,
            subscribers: 1,
            apart: false,
            vlan: None,
            gates: [None, None],
            shaping: [None, None],
            police: [None, None],
            launch: None,
        };
        assert!(!spec.makes_namespaces());
        let lines = spec.describe();
        assert_eq!(
            lines[0],
            "read interface eth1 and its first IPv4 address in this network namespace for ping; nothing is changed  [no \
             privilege]"
        );
        assert_eq!(
            lines[1],
            "read interface tap0 and its first IPv4 address in network namespace blue for pong; nothing is changed  \
             [CAP_SYS_ADMIN]"
        );
        assert!(lines[2].starts_with("path check: "));
        assert_eq!(lines.len(), 3);
    }
}
