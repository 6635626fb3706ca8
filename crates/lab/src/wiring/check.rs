//! Finds problems of a path of guests before anything is made.

use super::action::Program;
use super::plan::{SCHEMA, mtu};
use super::port::{Joined, Port};
use super::{Wiring, bpf, existing, tap};
use crate::error::lack;
use crate::{userns, vlan};
use rtnetlink::sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use tailbound_model::{PathSpec, Problem, SwitchPorts, XdpMode};

/// Maximum number of ends, which is the number of host addresses in a /24 network.
const MOST_ENDS: usize = 254;
/// Length of the VLAN tag of a frame in bytes.
const TAG: u32 = 4;
const VHOST_NET: &str = "/dev/vhost-net";

impl Wiring {
    /// Finds problems of the machine or the study that prevent this path of guests; an empty list means that the path
    /// can be built. Changes nothing; blocks for a moment.
    pub fn check((path, on_top): Joined<'_>, ports: &[Port]) -> Vec<Problem> {
        let unfit = unfit((path, on_top), ports);
        if !unfit.is_empty() {
            return unfit;
        }
        if let PathSpec::Datagram { .. } = path {
            return Vec::new();
        }
        let attachments = match existing::attachments(path, ports, "") {
            Ok(attachments) => attachments,
            Err(lacks) => return lacks,
        };
        let makes_namespaces = attachments.is_empty() || attachments.iter().any(existing::Attachment::is_over);
        let mut lacks: Vec<Problem> = Vec::new();
        if makes_namespaces {
            lacks.extend(userns::problem());
        }
        if let (true, false, Some(why)) = (lacks.is_empty(), nix::unistd::geteuid().is_root(), why_root(path)) {
            lacks.push(lack(
                format!("the path `{path}` needs root, because {why}"),
                "run as root, or use `path: bridge`",
            ));
        }
        if !lacks.is_empty() {
            return lacks;
        }
        if on_top.is_some() && ports.iter().any(|port| port.host_queues().is_some()) {
            lacks.extend(vlan::problem());
        }
        match path {
            PathSpec::Macvtap { .. } => {}
            PathSpec::Existing { .. } if !attachments.iter().any(existing::Attachment::is_bridged) => {}
            _ if ports.iter().any(|port| port.host_queues().is_none()) => {
                lacks.extend(tap::open(Path::new(tap::TUN)).err().map(|error| tun_lack(&error)));
            }
            _ => {}
        }
        match path {
            PathSpec::Xdp { .. } => lacks.extend(links_lack(&bpf::links_error())),
            PathSpec::OpenVswitch { ports, .. } => {
                let missing =
                    Program::ALL.iter().find(|program| program.find().is_none()).map(|program| program.name());
                let missing = missing.or_else(|| (!Path::new(SCHEMA).is_file()).then_some(SCHEMA));
                lacks.extend(missing.map(switch_lack));
                if *ports == SwitchPorts::Kernel && lacks.is_empty() {
                    lacks.extend(kernel_switch_lack(has_family("ovs_datapath")));
                }
            }
            _ => {}
        }
        lacks
    }
}

/// Finds problems of a path of guests that would exist on every machine.
fn unfit((path, on_top): Joined<'_>, ports: &[Port]) -> Vec<Problem> {
    let (hosts, all) = (ports.iter().filter(|port| port.host_queues().is_some()).count(), ports.len());
    let mut lacks = Vec::new();
    let mut add = |what: String, remedy: &str| lacks.push(lack(what, remedy));
    match path {
        PathSpec::Loopback | PathSpec::Veth { .. } => {
            add(
                format!("the path `{path}` carries no packets of guests"),
                "use `path: bridge`, `macvtap`, `xdp`, `open-vswitch`, `datagram` or `existing`",
            );
        }
        PathSpec::Xdp { .. } if all != 2 => {
            add(
                format!("the path `{path}` joins two ends, but there are {all}"),
                "use `path: bridge` or `path: open-vswitch`",
            );
        }
        PathSpec::Datagram { .. } if all != 2 || hosts > 0 => {
            add(
                format!(
                    "the path `{path}` joins two guests, but {} of the ends are guests and {hosts} are on this host",
                    all - hosts
                ),
                "put both ends into guests, or use `path: bridge`",
            );
        }
        PathSpec::Macvtap { .. } if hosts > 1 => {
            add(format!("the path `{path}` allows one end on this host, but there are {hosts}"), "use `path: bridge`");
        }
        _ if !(2..=MOST_ENDS).contains(&all) => {
            add(
                format!("a path of guests joins 2 to {MOST_ENDS} ends, but there are {all}"),
                "change the number of ends",
            );
        }
        _ => {}
    }
    let (possible, mtu) = (mtu_range((path, on_top), hosts > 0), mtu(path));
    if lacks.is_empty() && !possible.contains(&mtu) {
        lacks.push(lack(
            format!("an MTU of {mtu} is not possible on the path `{path}`"),
            format!("use {} to {}", possible.start(), possible.end()),
        ));
    }
    lacks
}

/// Possible MTUs of a path of guests in bytes: from the minimum of IPv4 (RFC 791) to the maximum of the devices. A tap
/// allows 65535 bytes with its header; XDP programs at a veth and AF_XDP sockets need frames that fit into one page of
/// 4096 bytes. A VLAN tag is part of the frame.
fn mtu_range((path, on_top): Joined<'_>, host: bool) -> RangeInclusive<u32> {
    let tag = if on_top.is_some() { TAG } else { 0 };
    let most = match path {
        PathSpec::Xdp { mode: XdpMode::Native, .. } if host => 3506,
        PathSpec::OpenVswitch { ports: SwitchPorts::AfXdpNative | SwitchPorts::AfXdpGeneric, .. } => 3498,
        _ => 65_521,
    };
    68..=most - tag
}

/// The reason why a path needs the rights of root on the machine itself; `None` if it does not need them. In a user
/// namespace, these rights hold for new network namespaces only, and programs that Tailbound starts there do not have them.
fn why_root(path: &PathSpec) -> Option<&'static str> {
    match path {
        PathSpec::Macvtap { .. } => Some("Tailbound opens the character device of a macvtap device"),
        PathSpec::Xdp { .. } => Some("Tailbound loads XDP programs into the kernel"),
        PathSpec::OpenVswitch { .. } => Some("Tailbound starts a switch that needs rights over its ports"),
        PathSpec::Existing { .. } => Some("Tailbound attaches guests to interfaces of this host"),
        _ => None,
    }
}

fn tun_lack(error: &io::Error) -> Problem {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => lack(
            format!(
                "there is no {}: the kernel was built without CONFIG_TUN, or the module tun is not loaded",
                tap::TUN
            ),
            "load the module (`modprobe tun`); in a container, add the device /dev/net/tun to the container",
        ),
        _ => lack(
            format!("{} cannot be opened: {error}", tap::TUN),
            "run as root, or change the mode or group of /dev/net/tun",
        ),
    }
}

fn links_lack(error: &io::Error) -> Option<Problem> {
    match error.raw_os_error() {
        Some(libc::EBADF) => None,
        Some(libc::EPERM | libc::EACCES) => Some(lack(
            "BPF programs may not be loaded into the kernel: CAP_BPF is missing, or a security module forbids it",
            "run Tailbound as root, outside of a container or in a container with CAP_BPF",
        )),
        _ => Some(lack(
            format!("this kernel does not support links of XDP programs ({error}), which need Linux 5.9"),
            "use a newer kernel, or `path: bridge`",
        )),
    }
}

fn switch_lack(missing: &str) -> Problem {
    lack(
        format!("there is no {missing}: Open vSwitch is not installed"),
        "install Open vSwitch (Debian and Ubuntu: `apt-get install openvswitch-switch`); its service does not have to run",
    )
}

fn kernel_switch_lack(found: io::Result<bool>) -> Option<Problem> {
    let why = match found {
        Ok(true) => return None,
        Ok(false) => "the kernel was built without CONFIG_OPENVSWITCH, or the module is missing".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(lack(
        format!("this kernel has no openvswitch: {why}"),
        "load the module (`modprobe openvswitch`), or use `ports: tap`",
    ))
}

/// Returns a problem if the kernel of this host cannot carry the packets of guests, because /dev/vhost-net does not
/// exist.
pub fn vhost_lack() -> Option<Problem> {
    (!Path::new(VHOST_NET).exists()).then(|| {
        lack(
            format!(
                "there is no {VHOST_NET}: the kernel was built without CONFIG_VHOST_NET, or the module vhost_net is not loaded"
            ),
            "load the module (`modprobe vhost_net`), or remove `vhost`",
        )
    })
}

/// Asks the kernel by generic netlink (linux/genetlink.h) whether a family exists; the kernel loads the module of the
/// family if it can.
fn has_family(name: &str) -> io::Result<bool> {
    const CONTROLLER: u16 = 0x10;
    const GET_FAMILY: u8 = 3;
    const FAMILY_NAME: u16 = 2;
    let mut attribute = (4 + name.len() as u16 + 1).to_ne_bytes().to_vec();
    attribute.extend(FAMILY_NAME.to_ne_bytes());
    attribute.extend(name.bytes());
    attribute.resize((attribute.len() + 1).next_multiple_of(4), 0);
    let mut message = (20 + attribute.len() as u32).to_ne_bytes().to_vec();
    message.extend(CONTROLLER.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    // Sequence number and port id, then command, version and two reserved bytes.
    message.extend([1u32, 0].iter().flat_map(|word| word.to_ne_bytes()));
    message.extend([GET_FAMILY, 1, 0, 0]);
    message.extend(attribute);
    let socket = Socket::new(NETLINK_GENERIC)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&message, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let kind = answer.get(4..6).map_or(0, |b| u16::from_ne_bytes([b[0], b[1]]));
    Ok(i32::from(kind) != libc::NLMSG_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: Port = Port::Guest { queues: 1 };
    const HOST: Port = Port::Host { queues: 1 };

    fn text(path: PathSpec, ports: &[Port]) -> String {
        unfit((&path, None), ports).iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn ends_that_a_path_cannot_join_are_reported() {
        let native = |mtu| PathSpec::Xdp { mode: XdpMode::Native, mtu };
        assert_eq!(text(native(None), &[GUEST, HOST]), "");
        assert_eq!(
            text(native(None), &[GUEST, GUEST, GUEST]),
            "the path `xdp native` joins two ends, but there are 3; use `path: bridge` or `path: open-vswitch`"
        );
        assert_eq!(
            text(native(Some(9000)), &[GUEST, HOST]),
            "an MTU of 9000 is not possible on the path `xdp native mtu 9000`; use 68 to 3506"
        );
        assert_eq!(text(native(Some(9000)), &[GUEST, GUEST]), "");
        assert_eq!(
            text(PathSpec::Datagram { mtu: None }, &[GUEST, HOST]),
            "the path `datagram` joins two guests, but 1 of the ends are guests and 1 are on this host; put both \
             ends into guests, or use `path: bridge`"
        );
        assert_eq!(
            text(PathSpec::Veth { mtu: None, delay: None }, &[GUEST, GUEST]),
            "the path `veth` carries no packets of guests; use `path: bridge`, `macvtap`, `xdp`, `open-vswitch`, \
             `datagram` or `existing`"
        );
        assert!(text(PathSpec::Macvtap { mtu: None }, &[HOST, HOST]).contains("allows one end on this host"));
        assert!(text(PathSpec::Bridge { mtu: None }, &[GUEST]).contains("joins 2 to 254 ends, but there are 1"));
    }

    #[test]
    fn problems_of_a_machine_have_remedies() {
        let error = io::Error::from_raw_os_error;
        assert_eq!(
            tun_lack(&error(libc::ENOENT)).to_string(),
            "there is no /dev/net/tun: the kernel was built without CONFIG_TUN, or the module tun is not loaded; load the module \
             (`modprobe tun`); in a container, add the device /dev/net/tun to the container"
        );
        assert!(
            tun_lack(&error(libc::EACCES)).to_string().starts_with("/dev/net/tun cannot be opened: Permission denied")
        );
        assert_eq!(links_lack(&error(libc::EBADF)), None);
        assert_eq!(
            links_lack(&error(libc::EINVAL)).unwrap().to_string(),
            "this kernel does not support links of XDP programs (Invalid argument (os error 22)), which need Linux 5.9; \
             use a newer kernel, or `path: bridge`"
        );
        assert!(links_lack(&error(libc::EPERM)).unwrap().to_string().contains("CAP_BPF"));
        assert_eq!(
            switch_lack("ovs-vsctl").to_string(),
            "there is no ovs-vsctl: Open vSwitch is not installed; install Open vSwitch (Debian and Ubuntu: `apt-get install \
             openvswitch-switch`); its service does not have to run"
        );
    }

    #[test]
    fn a_family_of_generic_netlink_is_found_or_not() {
        assert!(has_family("nlctrl").unwrap());
        assert!(!has_family("tb_nothing").unwrap());
    }
}
