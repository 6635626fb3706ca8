//! The steps by which a lab is made, as data: `up` takes them, `describe` prints them, the check after `up` reads from
//! them what must be found.

use crate::netem;
use std::fmt;
use std::net::Ipv4Addr;
use tailbound_model::{ExistingEnd, Nanos, VlanSpec};

/// Made by us, or found.
pub(crate) enum Layout {
    Made(Shape),
    /// At the ends that send, and at those that receive.
    Found(Box<[ExistingEnd; 2]>),
}

/// A path that is made.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub bridged: bool,
    pub mtu: Option<u32>,
    /// How long each end holds back what it sends.
    pub delay: Option<Nanos>,
    /// The namespaces of the ends; more than two only with a bridge.
    pub rooms: Vec<Room>,
    /// Those of them that are brought along, and empty.
    pub given: Vec<Room>,
    /// On top of it, at every end.
    pub vlan: Option<VlanSpec>,
}

/// A namespace of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Of the end of this name.
    End(&'static str),
    Bridge,
    /// Of what carries the packets of guests.
    Under,
    /// Of an end of this host that guests speak with, by its number.
    Host(usize),
    /// The network namespace of this process, which the user has set up.
    Here,
}

impl Room {
    pub fn name(self) -> &'static str {
        match self {
            Room::End(name) => name,
            Room::Bridge => "bridge",
            Room::Under => "under",
            Room::Host(_) => "host",
            Room::Here => "here",
        }
    }
}

/// An interface by name, in its namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At {
    pub room: Room,
    pub name: String,
}

/// The kernel's MTU of a new Ethernet interface.
pub(crate) const DEFAULT_MTU: u32 = 1500;
/// What IPv4 needs at least (RFC 791) and what a veth device takes at most.
pub(crate) const MTU_RANGE: std::ops::RangeInclusive<u32> = 68..=65_535;
/// All multicast groups, the destination of a route.
pub(crate) const MULTICAST: (Ipv4Addr, u8) = (Ipv4Addr::new(224, 0, 0, 0), 4);
/// Addresses may be the same in every lab: each lies in namespaces of its own.
pub(crate) fn address(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 177, 0, end as u8 + 1)
}
pub(crate) const PREFIX: u8 = 24;

/// One thing that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make a network namespace without a name.
    Namespace(Room),
    /// Use the empty one that the end brings with it.
    Given(Room),
    /// No IPv6 there: its neighbour and router discovery and MLD reports would run beside the measured traffic.
    NoIpv6(Room),
    /// Two joined interfaces.
    Pair {
        near: At,
        far: At,
        mtu: u32,
    },
    /// A bridge without spanning tree, forwarding delay and snooping: it forwards at once, multicast to every port.
    Bridge {
        at: At,
        mtu: u32,
    },
    /// Make an interface a port of the bridge.
    Join {
        port: At,
        bridge: String,
    },
    /// An interface of a VLAN, on top of another one.
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
    /// Hold back what an interface sends.
    Delay {
        at: At,
        delay: Nanos,
    },
    /// Lets programs send multicast that do not name an interface.
    MulticastRoute(At),
}

impl Shape {
    fn is_given(&self, room: Room) -> bool {
        self.given.contains(&room)
    }

    /// All steps in order; interface names begin with `prefix` (at most 10 characters).
    pub fn steps(&self, prefix: &str) -> Vec<Step> {
        let mtu = self.mtu.unwrap_or(DEFAULT_MTU);
        let at = |room, suffix: &str| At { room, name: format!("{prefix}-{suffix}") };
        let ends: Vec<At> = self.rooms.iter().enumerate().map(|(i, room)| at(*room, &format!("p{i}"))).collect();
        let mut rooms: Vec<Room> = ends.iter().map(|end| end.room).collect();
        if self.bridged {
            rooms.push(Room::Bridge);
        }
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
                steps.push(Step::Pair { near: end.clone(), far: port.clone(), mtu });
                steps.push(Step::Join { port: port.clone(), bridge: bridge.name.clone() });
                steps.push(Step::Up(port));
            }
            steps.push(Step::Up(bridge));
        } else {
            steps.push(Step::Pair { near: ends[0].clone(), far: ends[1].clone(), mtu });
        }
        for (i, end) in ends.into_iter().enumerate() {
            let on_top = at(end.room, &format!("v{i}"));
            let delay = self.delay.map(|delay| Step::Delay { at: end.clone(), delay });
            steps.extend(addressed(end, self.vlan.as_ref().map(|vlan| (on_top, vlan)), i));
            steps.extend(delay);
        }
        steps
    }
}

/// An end's interface gets its address and is set up; with a VLAN that one has the address, and the interface below none.
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
    /// The line of a dry run.
    pub fn with_privilege(&self) -> String {
        let privilege = match self {
            Step::Namespace(_) => "CAP_SYS_ADMIN, or in a user namespace none",
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
            Step::Pair { near, far, mtu } => write!(
                f,
                "{}: ip link add {} mtu {mtu} type veth peer name {} mtu {mtu} netns {}",
                near.room.name(),
                near.name,
                far.name,
                far.room.name()
            ),
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
            Step::MulticastRoute(at) => {
                write!(f, "{}: ip route add {}/{} dev {}", at.room.name(), MULTICAST.0, MULTICAST.1, at.name)
            }
        }
    }
}

/// `tb` and as much of the run's id as an interface name (15 characters) has room for.
///
/// Names are for people: what is cleaned up is found by identity, and every lab has namespaces of its own.
pub(crate) fn prefix(run_id: &str) -> String {
    let usable: Vec<char> = run_id.chars().filter(char::is_ascii_alphanumeric).collect();
    // The end of an id differs more between runs than its beginning.
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
            for step in (Shape { bridged: true, mtu: None, delay: None, rooms, given, vlan }).steps(&prefix(run)) {
                if let Step::Up(at) = step {
                    assert!(at.name.len() <= 15 && !at.name.contains(['/', ' ']), "{}", at.name);
                }
            }
        }
        assert_eq!(prefix("20250131-120000-4711"), "tb00004711");
    }

    #[test]
    fn the_dry_run_prints_each_step_as_a_command_would_say_it() {
        let (rooms, given) = (vec![Room::End("ping"), Room::End("pong")], Vec::new());
        let lines: Vec<String> =
            Shape { bridged: false, mtu: Some(9000), delay: Some(Nanos::from_millis(20)), rooms, given, vlan: None }
                .steps("tbRUN")
                .iter()
                .map(Step::with_privilege)
                .collect();
        assert_eq!(
            lines[0],
            "ping: make an unnamed network namespace (unshare --net)  [CAP_SYS_ADMIN, or in a user namespace none]"
        );
        let pair = "ping: ip link add tbRUN-p0 mtu 9000 type veth peer name tbRUN-p1 mtu 9000 netns pong";
        assert!(lines.contains(&format!("{pair}  [CAP_NET_ADMIN within the new namespace]")), "{lines:#?}");
        let delay = "pong: tc qdisc add dev tbRUN-p1 root netem delay 20000000ns limit 1000000";
        assert!(lines.contains(&format!("{delay}  [CAP_NET_ADMIN within the new namespace]")), "{lines:#?}");
        assert_eq!(lines.len(), 15);
    }

    #[test]
    fn with_a_vlan_its_interface_has_the_address_and_the_one_below_none() {
        let vlan = Some(VlanSpec { id: 10, egress: [(6, 3), (7, 7)].into() });
        let (rooms, given) = (vec![Room::End("ping"), Room::End("pong")], Vec::new());
        let steps = Shape { bridged: false, mtu: None, delay: None, rooms, given, vlan }.steps("tbRUN");
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
