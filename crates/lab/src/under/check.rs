//! What is missing for a path of guests, before anything is made.

use super::deed::Program;
use super::plan::{SCHEMA, mtu};
use super::{Joined, Port, Under, bpf, tap, users};
use crate::error::Lack;
use crate::{userns, vlan};
use rtnetlink::sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use tailbound_model::{PathSpec, SwitchPorts, XdpMode};

/// Addresses of a /24 network.
const MOST_ENDS: usize = 254;
/// Octets that the tag of a VLAN makes a frame longer.
const TAG: u32 = 4;
const VHOST_NET: &str = "/dev/vhost-net";

impl Under {
    /// What the machine or the study lacks for this path; empty = it can be built. Makes nothing; blocks for a moment.
    pub fn check((path, on_top): Joined<'_>, ports: &[Port]) -> Vec<Lack> {
        let unfit = unfit((path, on_top), ports);
        if !unfit.is_empty() {
            return unfit;
        }
        if let PathSpec::Datagram { .. } = path {
            return Vec::new();
        }
        let attachments = match users::attachments(path, ports, "") {
            Ok(attachments) => attachments,
            Err(lacks) => return lacks,
        };
        let makes_namespaces = attachments.is_empty() || attachments.iter().any(users::Attachment::is_over);
        let mut lacks: Vec<Lack> = Vec::new();
        if makes_namespaces {
            lacks.extend(userns::lack());
        }
        if let (true, false, Some(why)) = (lacks.is_empty(), nix::unistd::geteuid().is_root(), why_root(path)) {
            lacks.push(Lack::new(
                format!("the path `{path}` needs root, and this is not: {why}"),
                "run as root, or use `path: bridge`",
            ));
        }
        if !lacks.is_empty() {
            return lacks;
        }
        if on_top.is_some() && ports.contains(&Port::Host) {
            lacks.extend(vlan::lack());
        }
        match path {
            PathSpec::Macvtap { .. } => {}
            PathSpec::Existing { .. } if !attachments.iter().any(users::Attachment::is_bridged) => {}
            _ if ports.iter().any(|port| *port != Port::Host) => {
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

/// What no machine can do.
fn unfit((path, on_top): Joined<'_>, ports: &[Port]) -> Vec<Lack> {
    let (hosts, all) = (ports.iter().filter(|port| **port == Port::Host).count(), ports.len());
    let mut lacks = Vec::new();
    let mut lack = |what: String, mend: &str| lacks.push(Lack::new(what, mend));
    match path {
        PathSpec::Loopback | PathSpec::Veth { .. } => {
            lack(
                format!("the path `{path}` carries no packets of guests"),
                "use `path: bridge`, `macvtap`, `xdp`, `open-vswitch`, `datagram` or `existing`",
            );
        }
        PathSpec::Xdp { .. } if all != 2 => {
            lack(
                format!("the path `{path}` joins two ends, and here are {all}: each program hands on to one other"),
                "use `path: bridge` or `path: open-vswitch`",
            );
        }
        PathSpec::Datagram { .. } if all != 2 || hosts > 0 => {
            lack(
                format!("the path `{path}` joins two guests, and here are {} and {hosts} of this host", all - hosts),
                "put both ends into guests, or use `path: bridge`",
            );
        }
        PathSpec::Macvtap { .. } if hosts > 1 => {
            lack(
                format!("the path `{path}` has one end of this host at most, and here are {hosts}"),
                "use `path: bridge`",
            );
        }
        _ if !(2..=MOST_ENDS).contains(&all) => {
            lack(format!("a path of guests joins 2 to {MOST_ENDS} ends, and here are {all}"), "use fewer, or more");
        }
        _ => {}
    }
    let (possible, mtu) = (mtu_range((path, on_top), hosts > 0), mtu(path));
    if lacks.is_empty() && !possible.contains(&mtu) {
        lacks.push(Lack::new(
            format!("an MTU of {mtu} is not possible on the path `{path}`"),
            format!("use {} to {}", possible.start(), possible.end()),
        ));
    }
    lacks
}

/// From what IPv4 needs (RFC 791) to what the devices take: a tap 65535 less its header; programs at a veth, and sockets of
/// AF_XDP, what is left of a page of 4096. The tag of a VLAN is in the frame.
fn mtu_range((path, on_top): Joined<'_>, host: bool) -> RangeInclusive<u32> {
    let tag = if on_top.is_some() { TAG } else { 0 };
    let most = match path {
        PathSpec::Xdp { mode: XdpMode::Native, .. } if host => 3506,
        PathSpec::OpenVswitch { ports: SwitchPorts::AfXdpNative | SwitchPorts::AfXdpGeneric, .. } => 3498,
        _ => 65_521,
    };
    68..=most - tag
}

/// What needs the rights of root on the machine itself; a namespace of users gives them over new network namespaces only,
/// and not to programs that are started.
fn why_root(path: &PathSpec) -> Option<&'static str> {
    match path {
        PathSpec::Macvtap { .. } => Some("it opens the character device of a macvtap device"),
        PathSpec::Xdp { .. } => Some("it loads programs into the kernel"),
        PathSpec::OpenVswitch { .. } => Some("it starts a switch that needs rights over its ports"),
        PathSpec::Existing { .. } => Some("it attaches guests to interfaces of this host"),
        _ => None,
    }
}

fn tun_lack(error: &io::Error) -> Lack {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Lack::new(
            format!(
                "there is no {}: the kernel was built without TUN (CONFIG_TUN), or the module tun is not loaded",
                tap::TUN
            ),
            "load it (`modprobe tun`); in a container, give it the device",
        ),
        _ => Lack::new(
            format!("{} cannot be opened: {error}", tap::TUN),
            "run as root, or have its mode or group changed",
        ),
    }
}

fn links_lack(error: &io::Error) -> Option<Lack> {
    match error.raw_os_error() {
        Some(libc::EBADF) => None,
        Some(libc::EPERM | libc::EACCES) => Some(Lack::new(
            "programs may not be loaded into the kernel: it lacks CAP_BPF, or a rule of a security module forbids it",
            "run as root, outside of a container or in one with this right",
        )),
        _ => Some(Lack::new(
            format!("this kernel has no links of XDP programs ({error}): they came with Linux 5.9"),
            "use a newer kernel, or `path: bridge`",
        )),
    }
}

fn switch_lack(missing: &str) -> Lack {
    Lack::new(
        format!("there is no {missing}: Open vSwitch is not installed"),
        "install it (Debian and Ubuntu: `apt-get install openvswitch-switch`); its service need not run",
    )
}

fn kernel_switch_lack(found: io::Result<bool>) -> Option<Lack> {
    let why = match found {
        Ok(true) => return None,
        Ok(false) => "it was built without it (CONFIG_OPENVSWITCH), or the module is not there".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(Lack::new(
        format!("this kernel has no openvswitch: {why}"),
        "load it (`modprobe openvswitch`), or use `ports: tap`",
    ))
}

/// A guest whose packets the kernel of this host shall carry needs its device.
pub fn vhost_lack() -> Option<Lack> {
    (!Path::new(VHOST_NET).exists()).then(|| {
        Lack::new(
            format!(
                "no {VHOST_NET}: kernel built without VHOST_NET (CONFIG_VHOST_NET), or the module vhost_net is not loaded"
            ),
            "load it (`modprobe vhost_net`), or leave `vhost` out",
        )
    })
}

/// Asks generic netlink (linux/genetlink.h) for a family. The kernel loads the module for it where it can.
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
    // Number and sender, then command, version and two octets of nothing.
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

    fn text(path: PathSpec, ports: &[Port]) -> String {
        unfit((&path, None), ports).iter().map(Lack::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn ends_that_a_path_cannot_join_are_told() {
        let native = |mtu| PathSpec::Xdp { mode: XdpMode::Native, mtu };
        assert_eq!(text(native(None), &[GUEST, Port::Host]), "");
        assert_eq!(
            text(native(None), &[GUEST, GUEST, GUEST]),
            "the path `xdp native` joins two ends, and here are 3: each program hands on to one other; use `path: bridge` \
             or `path: open-vswitch`"
        );
        assert_eq!(
            text(native(Some(9000)), &[GUEST, Port::Host]),
            "an MTU of 9000 is not possible on the path `xdp native mtu 9000`; use 68 to 3506"
        );
        assert_eq!(text(native(Some(9000)), &[GUEST, GUEST]), "");
        assert_eq!(
            text(PathSpec::Datagram { mtu: None }, &[GUEST, Port::Host]),
            "the path `datagram` joins two guests, and here are 1 and 1 of this host; put both ends into guests, or use \
             `path: bridge`"
        );
        assert_eq!(
            text(PathSpec::Veth { mtu: None, delay: None }, &[GUEST, GUEST]),
            "the path `veth` carries no packets of guests; use `path: bridge`, `macvtap`, `xdp`, `open-vswitch`, \
             `datagram` or `existing`"
        );
        assert!(
            text(PathSpec::Macvtap { mtu: None }, &[Port::Host, Port::Host]).contains("one end of this host at most")
        );
        assert!(text(PathSpec::Bridge { mtu: None }, &[GUEST]).contains("joins 2 to 254 ends, and here are 1"));
    }

    #[test]
    fn what_a_machine_lacks_is_told_with_what_to_do() {
        let error = io::Error::from_raw_os_error;
        assert_eq!(
            tun_lack(&error(libc::ENOENT)).to_string(),
            "there is no /dev/net/tun: the kernel was built without TUN (CONFIG_TUN), or the module tun is not loaded; load \
             it (`modprobe tun`); in a container, give it the device"
        );
        assert!(
            tun_lack(&error(libc::EACCES)).to_string().starts_with("/dev/net/tun cannot be opened: Permission denied")
        );
        assert_eq!(links_lack(&error(libc::EBADF)), None);
        assert_eq!(
            links_lack(&error(libc::EINVAL)).unwrap().to_string(),
            "this kernel has no links of XDP programs (Invalid argument (os error 22)): they came with Linux 5.9; use a \
             newer kernel, or `path: bridge`"
        );
        assert!(links_lack(&error(libc::EPERM)).unwrap().to_string().contains("CAP_BPF"));
        assert_eq!(
            switch_lack("ovs-vsctl").to_string(),
            "there is no ovs-vsctl: Open vSwitch is not installed; install it (Debian and Ubuntu: `apt-get install \
             openvswitch-switch`); its service need not run"
        );
    }

    #[test]
    fn a_family_of_generic_netlink_is_found_or_not() {
        assert!(has_family("nlctrl").unwrap());
        assert!(!has_family("tb_nothing").unwrap());
    }
}
