//! The steps that make a lab, as data: `up` executes the steps, `describe` prints them, and the verification after `up`
//! compares the interfaces with the steps.

use crate::{launch, netem, shaping};
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use tailbound_model::{ExistingEnd, GatesSpec, LaunchSpec, MADE_KBIT_S, Nanos, ShapingFact, ShapingSpec, VlanSpec};

/// Whether the path is made by Tailbound or exists already.
pub(crate) enum Layout {
    Made(Shape),
    /// Interfaces and addresses of an existing path, at the sending ends and at the receiving ends.
    Found(Box<[ExistingEnd; 2]>),
}

/// Description of a path between ends that Tailbound makes.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub bridged: bool,
    pub mtu: Option<u32>,
    /// Delay that is added to the packets that each end sends.
    pub delay: Option<Nanos>,
    /// The network namespaces of the ends of the path. More than two are possible only with a bridge.
    pub rooms: Vec<Room>,
    /// The network namespaces of the path that belong to containers and are empty.
    pub given: Vec<Room>,
    /// VLAN on top of the path, for the interface of every end.
    pub vlan: Option<VlanSpec>,
    /// Gates of the interface of each end with gates, by the number of the end.
    pub gates: BTreeMap<usize, GatesSpec>,
    /// Traffic classes of the interface of each end that has them, by the number of the end.
    pub shaping: BTreeMap<usize, ShapingSpec>,
    /// Launch times of the messages of the first end.
    pub launch: Option<LaunchSpec>,
}

/// A network namespace of the lab, by its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Network namespace of the end with this name.
    End(&'static str),
    /// Network namespace of the bridge that joins the ends.
    Bridge,
    /// Network namespace of the wiring, which carries the packets of guests.
    Wiring,
    /// Network namespace of an end on this host that communicates with guests, by the number of the end.
    Host(usize),
    /// The network namespace of this process, whose interfaces belong to the user.
    Here,
}

impl Room {
    pub fn name(self) -> &'static str {
        match self {
            Room::End(name) => name,
            Room::Bridge => "bridge",
            Room::Wiring => "wiring",
            Room::Host(_) => "host",
            Room::Here => "here",
        }
    }
}

/// A network interface of the lab, given by its network namespace and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At {
    pub room: Room,
    pub name: String,
}

/// MTU of a new Ethernet interface in bytes, if the study does not name an MTU.
pub(crate) const DEFAULT_MTU: u32 = 1500;
/// Possible MTUs of a path in bytes: from the minimum of IPv4 (RFC 791) to the maximum of a veth device.
pub(crate) const MTU_RANGE: std::ops::RangeInclusive<u32> = 68..=65_535;
/// The network of all IPv4 multicast groups, as the destination of a route: address and prefix length.
pub(crate) const MULTICAST: (Ipv4Addr, u8) = (Ipv4Addr::new(224, 0, 0, 0), 4);
/// IP address of the end with this number. All labs use the same addresses, because each lab has its own namespaces.
pub(crate) fn address(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 177, 0, end as u8 + 1)
}
pub(crate) const PREFIX: u8 = 24;

/// One step of making a lab: one change to namespaces or interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Step of making a lab: make a network namespace without a name.
    Namespace(Room),
    /// Step of making a lab: use the empty network namespace of a container.
    Given(Room),
    /// Step: disable IPv6 in a network namespace, because neighbour discovery, router discovery and MLD reports of IPv6
    /// would disturb the measured traffic.
    NoIpv6(Room),
    /// Step: make a veth pair, which is two joined interfaces.
    Pair {
        near: At,
        far: At,
        mtu: u32,
        /// Number of transmit queues of both interfaces.
        queues: [u16; 2],
        /// Number of receive queues of the far interface.
        receives: u16,
    },
    /// Step: make a bridge without spanning tree, forwarding delay and multicast snooping, so that the bridge forwards
    /// at once and sends multicast to every port.
    Bridge {
        at: At,
        mtu: u32,
    },
    /// Step of making a lab: make an interface a port of the bridge.
    Join {
        port: At,
        bridge: String,
    },
    /// Step: make a VLAN interface on top of another interface.
    Vlan {
        at: At,
        below: String,
        vlan: VlanSpec,
    },
    Address {
        at: At,
        address: Ipv4Addr,
        prefix: u8,
    },
    Up(At),
    /// Step of making a lab: delay the packets that an interface sends.
    Delay {
        at: At,
        delay: Nanos,
    },
    /// Step of making a lab: open and close gates for the packets that an interface sends; with `launch`, the packets of one class have
    /// launch times.
    Gates {
        at: At,
        gates: GatesSpec,
        launch: Option<LaunchSpec>,
    },
    /// Step of making a lab: give the packets that an interface sends traffic classes, and some classes credits.
    Shaping {
        at: At,
        shaping: ShapingFact,
    },
    /// Step of making a lab: give an interface a queue whose packets have launch times.
    Launch {
        at: At,
        launch: LaunchSpec,
    },
    /// Step: add a route for multicast, for programs that do not choose an interface.
    MulticastRoute(At),
}

impl Shape {
    fn is_given(&self, room: Room) -> bool {
        self.given.contains(&room)
    }

    /// Returns all steps that make the path, in order. Interface names begin with `prefix`, which has at most 10
    /// characters.
    pub fn steps(&self, prefix: &str) -> Vec<Step> {
        let mtu = self.mtu.unwrap_or(DEFAULT_MTU);
        let at = |room, suffix: &str| At { room, name: format!("{prefix}-{suffix}") };
        let ends: Vec<At> = self.rooms.iter().enumerate().map(|(i, room)| at(*room, &format!("p{i}"))).collect();
        let mut rooms: Vec<Room> = ends.iter().map(|end| end.room).collect();
        if self.bridged {
            rooms.push(Room::Bridge);
        }
        // The queue disciplines of gates and of launch times want more than one queue.
        let shaped = |end: usize| self.shaping.get(&end).map(|shaping| shaping.asked(mtu, MADE_KBIT_S));
        let queues = |end: usize| match (self.gates.get(&end), self.launch) {
            (Some(gates), _) => gates.queues().max(2),
            _ if self.shaping.contains_key(&end) => self.shaping[&end].queues().iter().sum::<u16>().max(2),
            (None, Some(_)) if end == 0 => launch::QUEUES,
            _ => 1,
        };
        let mut steps = Vec::new();
        for room in &rooms {
            steps.push(if self.is_given(*room) { Step::Given(*room) } else { Step::Namespace(*room) });
            steps.push(Step::NoIpv6(*room));
            steps.push(Step::Up(At { room: *room, name: "lo".into() }));
        }
        if self.bridged {
            let bridge = at(Room::Bridge, "b");
            steps.push(Step::Bridge { at: bridge.clone(), mtu });
            for (i, end) in ends.iter().enumerate() {
                let port = at(Room::Bridge, &format!("q{i}"));
                steps.push(Step::Pair {
                    near: end.clone(),
                    far: port.clone(),
                    mtu,
                    queues: [queues(i), 1],
                    receives: 1,
                });
                steps.push(Step::Join { port: port.clone(), bridge: bridge.name.clone() });
                steps.push(Step::Up(port));
            }
            steps.push(Step::Up(bridge));
        } else {
            let queues = [queues(0), queues(1)];
            steps.push(Step::Pair { near: ends[0].clone(), far: ends[1].clone(), mtu, queues, receives: 1 });
        }
        for (i, end) in ends.into_iter().enumerate() {
            let on_top = at(end.room, &format!("v{i}"));
            let delay = self.delay.map(|delay| Step::Delay { at: end.clone(), delay });
            let launch = self.launch.filter(|_| i == 0);
            let gates = self.gates.get(&i).map(|gates| Step::Gates { at: end.clone(), gates: gates.clone(), launch });
            let launch = launch.filter(|_| gates.is_none()).map(|launch| Step::Launch { at: end.clone(), launch });
            let shaping = shaped(i).map(|shaping| Step::Shaping { at: end.clone(), shaping });
            steps.extend(addressed(end, self.vlan.as_ref().map(|vlan| (on_top, vlan)), i));
            steps.extend(delay);
            steps.extend(gates);
            steps.extend(shaping);
            steps.extend(launch);
        }
        steps
    }
}

/// Returns the steps that give an end its address and set its interface up. With a VLAN, the VLAN interface gets the
/// address and the interface below it has no address.
pub(crate) fn addressed(interface: At, on_top: Option<(At, &VlanSpec)>, end: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let addressed = match on_top {
        Some((at, vlan)) => {
            steps.push(Step::Up(interface.clone()));
            steps.push(Step::Vlan { at: at.clone(), below: interface.name, vlan: vlan.clone() });
            at
        }
        None => interface,
    };
    steps.push(Step::Address { at: addressed.clone(), address: address(end), prefix: PREFIX });
    steps.push(Step::Up(addressed.clone()));
    steps.push(Step::MulticastRoute(addressed));
    steps
}

impl Step {
    /// Line for `--dry-run`: the step as a command, and the privilege that the step needs.
    pub fn with_privilege(&self) -> String {
        let privilege = match self {
            Step::Namespace(_) => "CAP_SYS_ADMIN, or no privilege in a user namespace",
            Step::Given(_) => "CAP_SYS_ADMIN",
            Step::Join { port: at, .. } | Step::Up(at) if at.room == Room::Here => "root: CAP_NET_ADMIN",
            _ => "CAP_NET_ADMIN within the new namespace",
        };
        format!("{self}  [{privilege}]")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Namespace(room) => write!(f, "{}: make an unnamed network namespace (unshare --net)", room.name()),
            Step::Given(room) => write!(f, "{}: enter the network namespace of its container", room.name()),
            Step::NoIpv6(room) => write!(f, "{}: sysctl net.ipv6.conf.{{all,default}}.disable_ipv6=1", room.name()),
            Step::Pair { near, far, mtu, queues, receives } => {
                let number = |sends: u16, receives: u16, all: bool| match (sends, all) {
                    (1, false) => String::new(),
                    (sends, false) => format!(" numtxqueues {sends}"),
                    (sends, true) => format!(" numtxqueues {sends} numrxqueues {receives}"),
                };
                let all = *receives > 1;
                let [of_near, of_far] = [number(queues[0], queues[1], all), number(queues[1], *receives, all)];
                write!(
                    f,
                    "{}: ip link add {} mtu {mtu}{of_near} type veth peer name {} mtu {mtu}{of_far} netns {}",
                    near.room.name(),
                    near.name,
                    far.name,
                    far.room.name()
                )
            }
            Step::Bridge { at, mtu } => write!(
                f,
                "{}: ip link add {} mtu {mtu} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
                at.room.name(),
                at.name
            ),
            Step::Join { port, bridge } => {
                write!(f, "{}: ip link set {} master {bridge}", port.room.name(), port.name)
            }
            Step::Vlan { at, below, vlan } => {
                write!(f, "{}: {}", at.room.name(), crate::vlan::command(below, &at.name, vlan))
            }
            Step::Address { at, address, prefix } => {
                write!(f, "{}: ip address add {address}/{prefix} dev {}", at.room.name(), at.name)
            }
            Step::Up(at) => write!(f, "{}: ip link set {} up", at.room.name(), at.name),
            Step::Delay { at, delay } => write!(
                f,
                "{}: tc qdisc add dev {} root netem delay {}ns limit {}",
                at.room.name(),
                at.name,
                delay.0,
                netem::LIMIT
            ),
            Step::Gates { at, gates, launch } => {
                write!(f, "{}: {}", at.room.name(), crate::gates::command(&at.name, gates))?;
                let below = launch.map(|launch| launch::command_below(&at.name, gates, &launch));
                below.filter(|text| !text.is_empty()).map_or(Ok(()), |text| write!(f, "; {text}"))
            }
            Step::Shaping { at, shaping } => write!(f, "{}: {}", at.room.name(), shaping::command(&at.name, shaping)),
            Step::Launch { at, launch } => write!(f, "{}: {}", at.room.name(), launch::command(&at.name, launch)),
            Step::MulticastRoute(at) => {
                write!(f, "{}: ip route add {}/{} dev {}", at.room.name(), MULTICAST.0, MULTICAST.1, at.name)
            }
        }
    }
}

/// Makes the prefix of interface names: `tb` and the last characters of the run id, so that names fit into 15
/// characters.
///
/// The names are only for people: the cleanup finds interfaces by their identity, and every lab has its own namespaces.
pub(crate) fn prefix(run_id: &str) -> String {
    let usable: Vec<char> = run_id.chars().filter(char::is_ascii_alphanumeric).collect();
    // The last characters of run ids differ more than the first.
    let tail = &usable[usable.len().saturating_sub(8)..];
    format!("tb{}", tail.iter().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_fits_an_interface_name() {
        for run in ["", "7", "20250131-120000-4711", "ü/ run"] {
            let (rooms, given) = (vec![Room::End("ping"); 128], Vec::new());
            let vlan = Some(VlanSpec { id: 4094, ..VlanSpec::default() });
            for step in (Shape {
                bridged: true,
                mtu: None,
                delay: None,
                rooms,
                given,
                vlan,
                gates: BTreeMap::new(),
                shaping: BTreeMap::new(),
                launch: None,
            })
            .steps(&prefix(run))
            {
                if let Step::Up(at) = step {
                    assert!(at.name.len() <= 15 && !at.name.contains(['/', ' ']), "{}", at.name);
                }
            }
        }
        assert_eq!(prefix("20250131-120000-4711"), "tb00004711");
    }

    #[test]
    fn the_dry_run_prints_each_step_as_a_command() {
        let (rooms, given) = (vec![Room::End("ping"), Room::End("pong")], Vec::new());
        let lines: Vec<String> = Shape {
            bridged: false,
            mtu: Some(9000),
            delay: Some(Nanos::from_millis(20)),
            rooms,
            given,
            vlan: None,
            gates: BTreeMap::new(),
            shaping: BTreeMap::new(),
            launch: None,
        }
        .steps("tbRUN")
        .iter()
        .map(Step::with_privilege)
        .collect();
        assert_eq!(
            lines[0],
            "ping: make an unnamed network namespace (unshare --net)  [CAP_SYS_ADMIN, or no privilege in a user \
             namespace]"
        );
        let pair = "ping: ip link add tbRUN-p0 mtu 9000 type veth peer name tbRUN-p1 mtu 9000 netns pong";
        assert!(lines.contains(&format!("{pair}  [CAP_NET_ADMIN within the new namespace]")), "{lines:#?}");
        let delay = "pong: tc qdisc add dev tbRUN-p1 root netem delay 20000000ns limit 1000000";
        assert!(lines.contains(&format!("{delay}  [CAP_NET_ADMIN within the new namespace]")), "{lines:#?}");
        assert_eq!(lines.len(), 15);
    }

    #[test]
    fn with_a_vlan_only_the_vlan_interface_has_the_address() {
        let vlan = Some(VlanSpec { id: 10, egress: [(6, 3), (7, 7)].into() });
        let (rooms, given) = (vec![Room::End("ping"), Room::End("pong")], Vec::new());
        let steps = Shape {
            bridged: false,
            mtu: None,
            delay: None,
            rooms,
            given,
            vlan,
            gates: BTreeMap::new(),
            shaping: BTreeMap::new(),
            launch: None,
        }
        .steps("tbRUN");
        let lines: Vec<String> = steps.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines[7..12],
            [
                "ping: ip link set tbRUN-p0 up",
                "ping: ip link add link tbRUN-p0 name tbRUN-v0 type vlan id 10 egress 6:3 7:7",
                "ping: ip address add 10.177.0.1/24 dev tbRUN-v0",
                "ping: ip link set tbRUN-v0 up",
                "ping: ip route add 224.0.0.0/4 dev tbRUN-v0",
            ]
        );
        assert!(!lines.iter().any(|line| line.contains("address") && line.contains("-p")), "{lines:#?}");
    }
}
