//! Plans the actions that make the wiring of a path, and their order.

use super::action::{Action, Program, control_socket};
use super::port::{Joined, Port, mac};
use crate::step::{At, DEFAULT_MTU, Room, Step, addressed};
use std::path::Path;
use tailbound_model::{PathSpec, SwitchPorts, XdpMode};

/// Path of the database schema that the package of Open vSwitch installs.
pub(super) const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// The interface that carries the packets of an end, in the network namespace of the wiring.
pub(super) fn port(prefix: &str, end: usize) -> At {
    At { room: Room::Wiring, name: format!("{prefix}-q{end}") }
}

/// The interface of an end on this host, in its own network namespace.
pub(super) fn host(prefix: &str, end: usize) -> At {
    At { room: Room::Host(end), name: format!("{prefix}-p{end}") }
}

/// The VLAN interface of an end on this host, in the same network namespace as the interface below it.
pub(super) fn vlan(prefix: &str, end: usize) -> At {
    At { room: Room::Host(end), name: format!("{prefix}-v{end}") }
}

/// Returns all actions that make the wiring, in order. Interface names begin with `prefix`; the names are always free,
/// because the namespaces are new.
pub(super) fn plan((path, on_top): Joined<'_>, ports: &[Port], prefix: &str, dir: &Path) -> Vec<Action> {
    if let PathSpec::Datagram { .. } = path {
        let socket = |end: usize| dir.join(end.to_string());
        let ends = (0..ports.len()).map(|end| Action::Datagram { end, local: socket(end), remote: socket(1 - end) });
        return [Action::Directory(dir.to_owned())].into_iter().chain(ends).collect();
    }
    let (mtu, bridge) = (mtu(path), At { room: Room::Wiring, name: format!("{prefix}-b") });
    let mut actions = Vec::new();
    let mut rooms = vec![Room::Wiring];
    rooms.extend(
        ports.iter().enumerate().filter(|(_, port)| port.host_queues().is_some()).map(|(end, _)| Room::Host(end)),
    );
    for room in rooms {
        let lo = At { room, name: "lo".into() };
        actions.extend([Step::Namespace(room), Step::NoIpv6(room), Step::Up(lo)].map(Action::Step));
    }
    match path {
        PathSpec::Macvtap { .. } => macvtaps(ports, prefix, (mtu, dir), &mut actions),
        _ => {
            if let PathSpec::Bridge { .. } = path {
                actions.push(Action::Step(Step::Bridge { at: bridge.clone(), mtu }));
            }
            for (end, guest) in ports.iter().enumerate() {
                let at = port(prefix, end);
                actions.push(match guest.queues() {
                    Some(queues) => Action::Tap { at: at.clone(), mtu, end, queues, card: None },
                    None => {
                        let own = guest.host_queues().unwrap_or(1);
                        let [sends, receives] = queues_of_port(path, own);
                        let queues = [own, sends];
                        Action::Step(Step::Pair { near: host(prefix, end), far: at.clone(), mtu, queues, receives })
                    }
                });
                if let PathSpec::Bridge { .. } = path {
                    actions.push(Action::Step(Step::Join { port: at.clone(), bridge: bridge.name.clone() }));
                }
                actions.push(Action::Step(Step::Up(at)));
            }
        }
    }
    match path {
        PathSpec::Bridge { .. } => actions.push(Action::Step(Step::Up(bridge))),
        PathSpec::Xdp { mode, .. } => {
            actions.push(Action::Redirect { ports: [port(prefix, 0), port(prefix, 1)], mode: *mode });
        }
        _ => {}
    }
    for (end, _) in ports.iter().enumerate().filter(|(_, port)| port.host_queues().is_some()) {
        let at = host(prefix, end);
        if !carries_offloads(path) {
            actions.push(Action::WholeChecksums(at.clone()));
        }
        if matches!(path, PathSpec::Xdp { mode: XdpMode::Native, .. }) {
            actions.push(Action::Pass(at.clone()));
        }
        if on_top.is_some() && !carries_offloads(path) {
            actions.push(Action::TagsInFrames(at.clone()));
        }
        let steps = addressed(at, on_top.map(|spec| (vlan(prefix, end), spec)), end);
        actions.extend(steps.into_iter().map(Action::Step));
    }
    if let PathSpec::OpenVswitch { ports: kind, .. } = path {
        switch(*kind, ports, prefix, dir, &mut actions);
    }
    actions
}

/// Numbers of transmit and of receive queues of the interface that carries the packets of an end on this host, whose own interface
/// has `own` transmit queues.
///
/// The kernel attaches a program of XDP to a veth only if it has as many receive queues as its peer has transmit queues
/// (`veth_xdp_set` of drivers/net/veth.c). A socket of AF_XDP receives from one queue, and sends by the one with the same number.
fn queues_of_port(path: &PathSpec, own: u16) -> [u16; 2] {
    match path {
        PathSpec::Xdp { .. } => [1, own],
        PathSpec::OpenVswitch { ports: SwitchPorts::AfXdpNative | SwitchPorts::AfXdpGeneric, .. } => [own, own],
        _ => [1, 1],
    }
}

/// Adds the actions that make macvtap devices. The lower device of all of them is one side of a veth pair; the other
/// side belongs to the end on this host, or is unused.
fn macvtaps(ports: &[Port], prefix: &str, (mtu, dir): (u32, &Path), actions: &mut Vec<Action>) {
    let lower = At { room: Room::Wiring, name: format!("{prefix}-l") };
    let other = ports.iter().position(|port| port.host_queues().is_some());
    let far = other.map_or_else(|| At { room: Room::Wiring, name: format!("{prefix}-m") }, |end| host(prefix, end));
    actions.push(Action::Directory(dir.to_owned()));
    let own = other.and_then(|end| ports[end].host_queues()).unwrap_or(1);
    let pair = Step::Pair { near: far.clone(), far: lower.clone(), mtu, queues: [own, 1], receives: 1 };
    actions.push(Action::Step(pair));
    actions.extend([far, lower.clone()].map(|at| Action::Step(Step::Up(at))));
    for (end, guest) in ports.iter().enumerate() {
        if let Some(queues) = guest.queues() {
            let at = port(prefix, end);
            let (lower, mac) = (lower.clone(), mac(end));
            actions.push(Action::Macvtap { at: at.clone(), lower, mtu, end, queues, mac });
            actions.push(Action::Step(Step::Up(at)));
        }
    }
}

fn switch(kind: SwitchPorts, ports: &[Port], prefix: &str, dir: &Path, actions: &mut Vec<Action>) {
    let file = |name: &str| dir.join(name).display().to_string();
    let (database, socket) = (file("conf.db"), dir.join("db.sock"));
    let quiet = |control: &str| {
        ["--no-chdir", "-vconsole:info", "-vsyslog:off", &format!("--unixctl={control}")].map(str::to_owned)
    };
    actions.push(Action::Directory(dir.to_owned()));
    actions.push(Action::Run {
        program: Program::DatabaseTool,
        arguments: vec!["create".into(), database.clone(), SCHEMA.into()],
    });
    let mut arguments = vec![database, format!("--remote=punix:{}", socket.display())];
    arguments.extend(quiet(&file("db.ctl")));
    actions.push(Action::Start { program: Program::Database, arguments, socket: socket.clone() });
    let control = control_socket(dir);
    let mut arguments = vec![format!("unix:{}", socket.display())];
    arguments.extend(quiet(&control.display().to_string()));
    actions.push(Action::Start { program: Program::Switch, arguments, socket: control });
    let bridge = format!("{prefix}-b");
    let (datapath, interface) = match kind {
        SwitchPorts::Kernel => ("system", ""),
        SwitchPorts::Tap => ("netdev", ""),
        SwitchPorts::AfXdpNative => ("netdev", "type=afxdp options:xdp-mode=native"),
        SwitchPorts::AfXdpGeneric => ("netdev", "type=afxdp options:xdp-mode=generic"),
    };
    let mut words = format!("-- add-br {bridge} -- set bridge {bridge} datapath_type={datapath}");
    for (end, guest) in ports.iter().enumerate() {
        let name = port(prefix, end).name;
        words.push_str(&format!(" -- add-port {bridge} {name}"));
        if !interface.is_empty() {
            let queues = guest.queues().or_else(|| guest.host_queues().map(u32::from)).unwrap_or(1);
            words.push_str(&format!(" -- set interface {name} {interface} options:n_rxq={queues}"));
        }
    }
    let mut arguments = vec![format!("--db=unix:{}", socket.display()), "--timeout=20".into()];
    arguments.extend(words.split(' ').map(str::to_owned));
    actions.push(Action::Run { program: Program::Configure, arguments });
}

/// MTU, in bytes, that all interfaces of a path of guests have.
pub(super) fn mtu(path: &PathSpec) -> u32 {
    match path {
        PathSpec::Bridge { mtu }
        | PathSpec::Macvtap { mtu }
        | PathSpec::Xdp { mtu, .. }
        | PathSpec::OpenVswitch { mtu, .. }
        | PathSpec::Datagram { mtu }
        | PathSpec::Veth { mtu, .. } => mtu.unwrap_or(DEFAULT_MTU),
        PathSpec::Loopback | PathSpec::Existing { .. } => DEFAULT_MTU,
    }
}

/// Whether packets with incomplete checksums or several segments arrive correctly on a path. Such packets do not arrive
/// correctly if a program takes packets before the kernel completes them; on such a path, guests must send without
/// offloads.
pub fn carries_offloads(path: &PathSpec) -> bool {
    match path {
        PathSpec::Xdp { .. } | PathSpec::Datagram { .. } => false,
        PathSpec::OpenVswitch { ports, .. } => *ports == SwitchPorts::Kernel,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiring::Wiring;

    fn lines(path: &PathSpec, ports: &[Port]) -> String {
        Wiring::describe((path, None), ports).join("\n")
    }

    const GUEST: Port = Port::Guest { queues: 1 };
    const HOST: Port = Port::Host { queues: 1 };

    #[test]
    fn an_end_on_this_host_can_have_several_transmit_queues_on_every_path() {
        let paths = [
            PathSpec::Bridge { mtu: None },
            PathSpec::Macvtap { mtu: None },
            PathSpec::Xdp { mode: XdpMode::Native, mtu: None },
            PathSpec::OpenVswitch { ports: SwitchPorts::Kernel, mtu: None },
            PathSpec::OpenVswitch { ports: SwitchPorts::AfXdpNative, mtu: None },
        ];
        let pairs = paths.map(|path| {
            let text = lines(&path, &[Port::Host { queues: 3 }, GUEST]);
            let pair = text.lines().find(|line| line.contains("type veth")).unwrap().to_owned();
            let switch = text.lines().rfind(|line| line.contains("n_rxq")).and_then(|line| line.split(" -- ").nth(4));
            format!("{path}: {pair}{}", switch.map_or_else(String::new, |words| format!("\n  {words}")))
        });
        insta::assert_snapshot!(pairs.join("\n"));
    }

    #[test]
    fn a_dry_run_prints_each_action_as_a_command() {
        let text = lines(&PathSpec::Bridge { mtu: Some(9000) }, &[Port::Guest { queues: 4 }, HOST]);
        let tap = "wiring: ip tuntap add tbRUN-q0 mode tap vnet_hdr multi_queue; ip link set tbRUN-q0 mtu 9000  \
                   [CAP_NET_ADMIN within the new namespace, and the right to open /dev/net/tun]";
        assert!(text.contains(tap), "{text}");
        for line in [
            "host: ip link add tbRUN-p1 mtu 9000 type veth peer name tbRUN-q1 mtu 9000 netns wiring",
            "wiring: ip link set tbRUN-q1 master tbRUN-b",
            "host: ip address add 10.177.0.2/24 dev tbRUN-p1",
            "host: ip route add 224.0.0.0/4 dev tbRUN-p1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("ethtool"), "{text}");
    }

    #[test]
    fn an_end_on_this_host_of_a_redirecting_path_sends_complete_checksums() {
        let text = lines(&PathSpec::Xdp { mode: XdpMode::Native, mtu: None }, &[GUEST, HOST]);
        for line in [
            "wiring: attach XDP programs (native) that redirect from tbRUN-q0 to tbRUN-q1 and back  [root",
            "host: ethtool -K tbRUN-p1 tx off",
            "host: attach an XDP program (native) that passes everything to tbRUN-p1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn a_switch_is_started_and_gets_its_ports() {
        let path = PathSpec::OpenVswitch { ports: SwitchPorts::AfXdpNative, mtu: None };
        let text = lines(&path, &[GUEST, GUEST]);
        assert!(text.contains("mkdir -m 700 SCRATCH/wiring  [no privilege]"), "{text}");
        let last = "wiring: ovs-vsctl --db=unix:SCRATCH/wiring/db.sock --timeout=20 -- add-br tbRUN-b -- set bridge tbRUN-b \
                    datapath_type=netdev -- add-port tbRUN-b tbRUN-q0 -- set interface tbRUN-q0 type=afxdp \
                    options:xdp-mode=native options:n_rxq=1 -- add-port";
        assert!(text.lines().last().unwrap().starts_with(last), "{text}");
        let datagram = lines(&PathSpec::Datagram { mtu: None }, &[GUEST, GUEST]);
        assert!(datagram.ends_with("end 1: datagrams from SCRATCH/wiring/1 to SCRATCH/wiring/0  [no privilege]"));
        let macvtap = lines(&PathSpec::Macvtap { mtu: None }, &[GUEST, GUEST]);
        assert!(macvtap.contains("ip link add tbRUN-q1 link tbRUN-l address 52:54:00:b1:00:02 mtu 1500 type macvtap"));
    }
}
