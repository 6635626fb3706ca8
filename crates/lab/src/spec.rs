//! What a lab is asked to be.

use crate::step::{Layout, Room, Shape, Step};
use crate::under::{Port, Under};
use tailbound_model::{
    ContainerNetwork, ExistingEnd, Nanos, PathSpec, PlaceSpec, TrialSpec, VlanSpec, publisher_end, subscriber_end,
};

/// The path and the places of a trial. Trials with an equal spec share one lab.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LabSpec {
    /// What joins the places.
    pub path: PathSpec,
    /// Where the ping end runs, and every other that sends.
    pub ping: PlaceSpec,
    /// Where the pong end runs, and every other that receives.
    pub pong: PlaceSpec,
    /// How many send.
    pub publishers: u32,
    /// How many receive.
    pub subscribers: u32,
    /// Each end in a place of its own.
    pub apart: bool,
    /// On top of the path: its interfaces have the addresses of the ends.
    pub vlan: Option<VlanSpec>,
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
        }
    }
}

impl LabSpec {
    /// Whether network namespaces are made for it, which needs root or a user namespace.
    pub fn makes_namespaces(&self) -> bool {
        let made = matches!(self.path, PathSpec::Veth { .. } | PathSpec::Bridge { .. });
        let by_nothing = matches!(self.path, PathSpec::Datagram { .. } | PathSpec::Existing { .. });
        made || (self.is_wired() && !by_nothing)
    }

    /// What joins its ends is made before they start: where one is a guest, and by a switch or programs.
    pub fn is_wired(&self) -> bool {
        let guest = [&self.ping, &self.pong].into_iter().any(|place| matches!(place, PlaceSpec::Vm(_)));
        match self.path {
            PathSpec::Loopback => false,
            // These join network namespaces, too.
            PathSpec::Xdp { .. } | PathSpec::OpenVswitch { .. } => true,
            _ => guest,
        }
    }

    /// What joins its ends is not the user's.
    pub(crate) fn is_private(&self) -> bool {
        self.is_wired() && !matches!(self.path, PathSpec::Existing { .. })
    }

    /// What its ends want of that.
    pub fn ports(&self) -> Vec<Port> {
        let port = |end: usize| match self.place(end) {
            PlaceSpec::Vm(guest) => Port::Guest { queues: guest.queues },
            _ if matches!(self.path, PathSpec::Existing { .. }) => Port::Users,
            _ => Port::Host,
        };
        (0..self.places()).map(port).collect()
    }

    /// What `up` and the path check would do, one line each: the step as a command would say it, and the privilege it
    /// takes.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for place in [&self.ping, &self.pong] {
            match place {
                PlaceSpec::Ssh(ssh) => {
                    let what = match &ssh.program {
                        Some(program) => format!("start {program} there"),
                        None => "copy the bundle there, unless it is there already, and start it".to_owned(),
                    };
                    lines.push(format!("{place}: log in, {what}  [your login there]"));
                }
                PlaceSpec::Pod(_) => {
                    let all = (0..self.places()).filter(|end| self.place(*end) == place).count();
                    let what = match all {
                        _ if !self.apart || all == 1 => "make it, wait until it runs, delete it".to_owned(),
                        n => format!("make {n} of them, wait until they run, delete them"),
                    };
                    lines.push(format!("{place}: {what} afterwards  [your rights there]"));
                }
                PlaceSpec::Domain(domain) => {
                    let steered =
                        if domain.asks_for_threads() { "pin its threads, put them back" } else { "look at it" };
                    let (reached, rights) = match domain.ssh {
                        Some(_) => ("log in, copy the bundle there", "your rights with libvirt, your login there"),
                        None => ("speak over its channels with Tailbound in it", "your rights with libvirt, root"),
                    };
                    lines.push(format!(
                        "{place}: start it if it does not run (virsh), {steered} afterwards, {reached}  [{rights}]"
                    ));
                }
                PlaceSpec::Vm(guest) => {
                    let privilege = match guest.needs_privilege() {
                        true => "CAP_SYS_NICE or CAP_IPC_LOCK",
                        false => "no privilege",
                    };
                    lines.push(format!("{place}: start it with QEMU, wait until it answers, end it  [{privilege}]"));
                }
                PlaceSpec::Container(_) => {
                    lines.push(format!("{place}: make and start it, remove it afterwards  [root]"));
                }
                _ => {}
            }
        }
        lines.dedup();
        lines.extend(self.describe_up());
        lines.push(
            "path check: UDP datagrams of at most 65507 B both ways, and to a group of 239.255/16 (TTL 1) where the \
             interfaces carry multicast  [no privilege]"
                .into(),
        );
        lines
    }

    /// What a driver at this end (0 ping, 1 pong) would be told of the network, as far as it is known before the lab is up:
    /// nothing where the lab makes its own.
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
            all = Under::describe((&self.path, self.vlan.as_ref()), &self.ports());
            for (place, vlan) in [&self.ping, &self.pong].into_iter().zip(std::iter::repeat(&self.vlan)) {
                if let (PlaceSpec::Vm(guest), Some(vlan)) = (place, vlan) {
                    let command = crate::vlan::command("NIC", &format!("NIC.{}", vlan.id), vlan);
                    all.push(format!("guest {}: {command}  [no privilege of this host]", guest.name));
                }
            }
            if self.is_private() {
                return all;
            }
        }
        match self.layout() {
            Layout::Made(shape) => shape.steps("tbRUN").iter().map(Step::with_privilege).collect(),
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
                            "the interface with the address that the cluster gave it".to_owned()
                        }
                        (None, None) if matches!(self.place(i), PlaceSpec::Container(_)) => {
                            "the interface with the first address that its client gave it".to_owned()
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
                    format!("read {wanted} in {place} for {}; nothing is changed  [{privilege}]", self.name(i))
                });
                all.extend(lines);
                all
            }
        }
    }

    /// How many places there are: that of the ping end (0), of those that receive (from 1 on), of further ones that send.
    pub fn places(&self) -> usize {
        if self.apart { (self.publishers + self.subscribers) as usize } else { 2 }
    }

    /// The end at a place sends.
    pub fn sends(&self, end: usize) -> bool {
        end == 0 || (self.apart && end > self.subscribers as usize)
    }

    /// The name of the first end at a place: `ping`, `pong3`.
    pub fn name(&self, end: usize) -> &'static str {
        match end {
            0 => "ping",
            n if self.sends(n) => publisher_end((n - self.subscribers as usize + 1) as u8),
            n => subscriber_end(n as u8),
        }
    }

    /// What is asked of a place.
    pub fn place(&self, end: usize) -> &PlaceSpec {
        if self.sends(end) { &self.ping } else { &self.pong }
    }

    /// The places of those that an end speaks with.
    pub(crate) fn peers(&self, end: usize) -> impl Iterator<Item = usize> {
        let sends = self.sends(end);
        (0..self.places()).filter(move |other| self.sends(*other) != sends)
    }

    fn rooms(&self) -> Vec<Room> {
        (0..self.places()).map(|end| Room::End(self.name(end))).collect()
    }

    pub(crate) fn layout(&self) -> Layout {
        match &self.path {
            // What carries the packets of guests is made before they start.
            _ if self.is_private() => Layout::Found(Box::default()),
            PathSpec::Loopback => {
                let lo = ExistingEnd { interface: Some("lo".into()), address: Some("127.0.0.1".into()), device: None };
                Layout::Found(Box::new([lo.clone(), lo]))
            }
            PathSpec::Existing { ping, pong } => {
                // A guest has the address that it was given, on its only interface.
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
        Shape { bridged, mtu, delay, rooms: self.rooms(), given: self.given(), vlan: self.vlan.clone() }
    }

    /// The ends that bring an empty network namespace with them.
    fn given(&self) -> Vec<Room> {
        let brings = |place: &PlaceSpec| match place {
            PlaceSpec::Container(container) => container.network == ContainerNetwork::None,
            _ => false,
        };
        (0..self.places()).filter(|end| brings(self.place(*end))).map(|end| Room::End(self.name(end))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::SshSpec;

    #[test]
    fn a_dry_run_says_what_is_done_on_another_host() {
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
        };
        let both = spec(far(None), far(None)).describe();
        let begin = "ssh guest-1: log in, copy the bundle there, unless it is there already, and start it  [your login";
        assert!(both[0].starts_with(begin) && both[1].starts_with("read interface lo"), "{both:?}");
        let installed = spec(PlaceSpec::Process, far(Some("/opt/tailbound"))).describe();
        assert_eq!(installed[0], "ssh guest-1: log in, start /opt/tailbound there  [your login there]");
    }

    #[test]
    fn a_dry_run_says_what_is_read_where_and_with_which_right() {
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
