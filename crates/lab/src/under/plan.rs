//! Which steps a path takes.

use super::deed::{Deed, Program, control_socket};
use super::{Joined, Port};
use crate::step::{At, DEFAULT_MTU, Room, Step, addressed};
use std::path::Path;
use tailbound_model::{PathSpec, SwitchPorts, XdpMode};

/// The schema of the database, as the package has it.
pub(super) const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// The interface that carries the packets of an end, in the namespace of the path.
pub(super) fn port(prefix: &str, end: usize) -> At {
    At { room: Room::Under, name: format!("{prefix}-q{end}") }
}

/// The interface of an end of this host, in a namespace of its own.
pub(super) fn host(prefix: &str, end: usize) -> At {
    At { room: Room::Host(end), name: format!("{prefix}-p{end}") }
}

/// Its interface on top of that, in the same namespace.
pub(super) fn vlan(prefix: &str, end: usize) -> At {
    At { room: Room::Host(end), name: format!("{prefix}-v{end}") }
}

/// All steps in order; interface names begin with `prefix`. A name that is taken cannot happen: the namespaces are new.
pub(super) fn plan((path, on_top): Joined<'_>, ports: &[Port], prefix: &str, dir: &Path) -> Vec<Deed> {
    if let PathSpec::Datagram { .. } = path {
        let socket = |end: usize| dir.join(end.to_string());
        let ends = (0..ports.len()).map(|end| Deed::Datagram { end, local: socket(end), remote: socket(1 - end) });
        return [Deed::Directory(dir.to_owned())].into_iter().chain(ends).collect();
    }
    let (mtu, bridge) = (mtu(path), At { room: Room::Under, name: format!("{prefix}-b") });
    let mut deeds = Vec::new();
    let mut rooms = vec![Room::Under];
    rooms.extend(ports.iter().enumerate().filter(|(_, port)| **port == Port::Host).map(|(end, _)| Room::Host(end)));
    for room in rooms {
        let lo = At { room, name: "lo".into() };
        deeds.extend([Step::Namespace(room), Step::NoIpv6(room), Step::Up(lo)].map(Deed::Lab));
    }
    match path {
        PathSpec::Macvtap { .. } => macvtaps(ports, prefix, (mtu, dir), &mut deeds),
        _ => {
            if let PathSpec::Bridge { .. } = path {
                deeds.push(Deed::Lab(Step::Bridge { at: bridge.clone(), mtu }));
            }
            for (end, guest) in ports.iter().enumerate() {
                let at = port(prefix, end);
                deeds.push(match guest.queues() {
                    Some(queues) => Deed::Tap { at: at.clone(), mtu, end, queues, card: None },
                    None => Deed::Lab(Step::Pair { near: host(prefix, end), far: at.clone(), mtu }),
                });
                if let PathSpec::Bridge { .. } = path {
                    deeds.push(Deed::Lab(Step::Join { port: at.clone(), bridge: bridge.name.clone() }));
                }
                deeds.push(Deed::Lab(Step::Up(at)));
            }
        }
    }
    match path {
        PathSpec::Bridge { .. } => deeds.push(Deed::Lab(Step::Up(bridge))),
        PathSpec::Xdp { mode, .. } => {
            deeds.push(Deed::Redirect { ports: [port(prefix, 0), port(prefix, 1)], mode: *mode });
        }
        _ => {}
    }
    for (end, _) in ports.iter().enumerate().filter(|(_, port)| **port == Port::Host) {
        let at = host(prefix, end);
        if !carries_offloads(path) {
            deeds.push(Deed::WholeChecksums(at.clone()));
        }
        if matches!(path, PathSpec::Xdp { mode: XdpMode::Native, .. }) {
            deeds.push(Deed::Pass(at.clone()));
        }
        if on_top.is_some() && !carries_offloads(path) {
            deeds.push(Deed::TagsInFrames(at.clone()));
        }
        let steps = addressed(at, on_top.map(|spec| (vlan(prefix, end), spec)), end);
        deeds.extend(steps.into_iter().map(Deed::Lab));
    }
    if let PathSpec::OpenVswitch { ports: kind, .. } = path {
        switch(*kind, ports, prefix, dir, &mut deeds);
    }
    deeds
}

/// The lower device is one side of a pair; an end of this host is the other, or else nobody.
fn macvtaps(ports: &[Port], prefix: &str, (mtu, dir): (u32, &Path), deeds: &mut Vec<Deed>) {
    let lower = At { room: Room::Under, name: format!("{prefix}-l") };
    let other = ports.iter().position(|port| *port == Port::Host);
    let far = other.map_or_else(|| At { room: Room::Under, name: format!("{prefix}-m") }, |end| host(prefix, end));
    deeds.push(Deed::Directory(dir.to_owned()));
    deeds.push(Deed::Lab(Step::Pair { near: far.clone(), far: lower.clone(), mtu }));
    deeds.extend([far, lower.clone()].map(|at| Deed::Lab(Step::Up(at))));
    for (end, guest) in ports.iter().enumerate() {
        if let Some(queues) = guest.queues() {
            let at = port(prefix, end);
            let (lower, mac) = (lower.clone(), super::mac(end));
            deeds.push(Deed::Macvtap { at: at.clone(), lower, mtu, end, queues, mac });
            deeds.push(Deed::Lab(Step::Up(at)));
        }
    }
}

fn switch(kind: SwitchPorts, ports: &[Port], prefix: &str, dir: &Path, deeds: &mut Vec<Deed>) {
    let file = |name: &str| dir.join(name).display().to_string();
    let (database, socket) = (file("conf.db"), dir.join("db.sock"));
    let quiet = |control: &str| {
        ["--no-chdir", "-vconsole:info", "-vsyslog:off", &format!("--unixctl={control}")].map(str::to_owned)
    };
    deeds.push(Deed::Directory(dir.to_owned()));
    deeds.push(Deed::Run {
        program: Program::DatabaseTool,
        arguments: vec!["create".into(), database.clone(), SCHEMA.into()],
    });
    let mut arguments = vec![database, format!("--remote=punix:{}", socket.display())];
    arguments.extend(quiet(&file("db.ctl")));
    deeds.push(Deed::Start { program: Program::Database, arguments, socket: socket.clone() });
    let control = control_socket(dir);
    let mut arguments = vec![format!("unix:{}", socket.display())];
    arguments.extend(quiet(&control.display().to_string()));
    deeds.push(Deed::Start { program: Program::Switch, arguments, socket: control });
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
            let queues = guest.queues().unwrap_or(1);
            words.push_str(&format!(" -- set interface {name} {interface} options:n_rxq={queues}"));
        }
    }
    let mut arguments = vec![format!("--db=unix:{}", socket.display()), "--timeout=20".into()];
    arguments.extend(words.split(' ').map(str::to_owned));
    deeds.push(Deed::Run { program: Program::Configure, arguments });
}

/// The MTU of every interface.
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

/// Whether packets without their checksum, or of several segments, arrive whole. Where somebody takes them before the
/// kernel would have filled them in, they do not: a guest must then send without offloads.
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
    use crate::under::Under;

    fn lines(path: &PathSpec, ports: &[Port]) -> String {
        Under::describe((path, None), ports).join("\n")
    }

    const GUEST: Port = Port::Guest { queues: 1 };

    #[test]
    fn a_dry_run_says_each_step_as_a_command() {
        let text = lines(&PathSpec::Bridge { mtu: Some(9000) }, &[Port::Guest { queues: 4 }, Port::Host]);
        let tap = "under: ip tuntap add tbRUN-q0 mode tap vnet_hdr multi_queue; ip link set tbRUN-q0 mtu 9000  \
                   [CAP_NET_ADMIN within the new namespace, and the right to open /dev/net/tun]";
        assert!(text.contains(tap), "{text}");
        for line in [
            "host: ip link add tbRUN-p1 mtu 9000 type veth peer name tbRUN-q1 mtu 9000 netns under",
            "under: ip link set tbRUN-q1 master tbRUN-b",
            "host: ip address add 10.177.0.2/24 dev tbRUN-p1",
            "host: ip route add 224.0.0.0/4 dev tbRUN-p1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("ethtool"), "{text}");
    }

    #[test]
    fn a_host_end_of_a_redirecting_path_sends_whole_checksums() {
        let text = lines(&PathSpec::Xdp { mode: XdpMode::Native, mtu: None }, &[GUEST, Port::Host]);
        for line in [
            "under: attach XDP programs (native) that redirect from tbRUN-q0 to tbRUN-q1 and back  [root",
            "host: ethtool -K tbRUN-p1 tx off",
            "host: attach an XDP program (native) that passes everything to tbRUN-p1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn a_switch_is_started_and_told_its_ports() {
        let path = PathSpec::OpenVswitch { ports: SwitchPorts::AfXdpNative, mtu: None };
        let text = lines(&path, &[GUEST, GUEST]);
        assert!(text.contains("mkdir -m 700 SCRATCH/under  [no privilege]"), "{text}");
        let last = "under: ovs-vsctl --db=unix:SCRATCH/under/db.sock --timeout=20 -- add-br tbRUN-b -- set bridge tbRUN-b \
                    datapath_type=netdev -- add-port tbRUN-b tbRUN-q0 -- set interface tbRUN-q0 type=afxdp \
                    options:xdp-mode=native options:n_rxq=1 -- add-port";
        assert!(text.lines().last().unwrap().starts_with(last), "{text}");
        let datagram = lines(&PathSpec::Datagram { mtu: None }, &[GUEST, GUEST]);
        assert!(datagram.ends_with("end 1: datagrams from SCRATCH/under/1 to SCRATCH/under/0  [no privilege]"));
        let macvtap = lines(&PathSpec::Macvtap { mtu: None }, &[GUEST, GUEST]);
        assert!(macvtap.contains("ip link add tbRUN-q1 link tbRUN-l address 52:54:00:b1:00:02 mtu 1500 type macvtap"));
    }
}
