//! The steps by which a path of guests is made, as data: those of a lab, and those that only guests need.

use super::Port;
use crate::step::{At, Step};
use std::fmt;
use std::path::{Path, PathBuf};
use tailbound_model::XdpMode;

/// One thing that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    Lab(Step),
    /// Make the directory of sockets and of what the programs keep.
    Directory(PathBuf),
    /// A tap device and its plug.
    Tap {
        at: At,
        mtu: u32,
        end: usize,
        queues: u32,
        /// The hardware address of the device itself where it lies among the user's interfaces: it is silent there.
        card: Option<[u8; 6]>,
    },
    /// A macvtap device in bridge mode on a lower one, and its plug.
    Macvtap {
        at: At,
        lower: At,
        mtu: u32,
        end: usize,
        queues: u32,
        /// That of the guest's card.
        mac: [u8; 6],
    },
    /// Wait until a bridge of the user's forwards from and to a new port.
    Forwards {
        port: At,
        /// Its forwarding delay, in hundredths of a second.
        delay_cs: u32,
    },
    /// A card of the machine for a guest, whole.
    Device {
        end: usize,
        device: String,
    },
    /// What it sends has its checksum in it.
    WholeChecksums(At),
    /// What it sends has the tag of its VLAN in it, not beside it, where programs do not see it.
    TagsInFrames(At),
    /// Programs that hand each packet on from the one to the other.
    Redirect {
        ports: [At; 2],
        mode: XdpMode,
    },
    /// A program that lets everything pass: a veth takes what is redirected to its peer only while it has one.
    Pass(At),
    /// Start a program that stays, and wait for its socket.
    Start {
        program: Program,
        arguments: Vec<String>,
        socket: PathBuf,
    },
    /// Run a program to its end.
    Run {
        program: Program,
        arguments: Vec<String>,
    },
    /// Names of sockets for a guest.
    Datagram {
        end: usize,
        local: PathBuf,
        remote: PathBuf,
    },
}

/// A program of Open vSwitch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    DatabaseTool,
    Database,
    Switch,
    Configure,
    Ask,
}

impl Program {
    pub const ALL: [Program; 5] =
        [Program::DatabaseTool, Program::Database, Program::Switch, Program::Configure, Program::Ask];

    pub fn name(self) -> &'static str {
        match self {
            Program::DatabaseTool => "ovsdb-tool",
            Program::Database => "ovsdb-server",
            Program::Switch => "ovs-vswitchd",
            Program::Configure => "ovs-vsctl",
            Program::Ask => "ovs-appctl",
        }
    }

    /// Where it is installed.
    pub fn find(self) -> Option<PathBuf> {
        // The name on PATH may be that of the build with DPDK, which takes no other ports without it.
        let own = (self == Program::Switch).then(|| PathBuf::from("/usr/lib/openvswitch-switch"));
        let listed = std::env::var_os("PATH").unwrap_or_default();
        let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
        let all = own.into_iter().chain(std::env::split_paths(&listed)).chain(usual);
        all.map(|dir| dir.join(self.name())).find(|path| path.is_file())
    }
}

/// The socket by which the switch answers questions.
pub(super) fn control_socket(dir: &Path) -> PathBuf {
    dir.join("switch.ctl")
}

impl Deed {
    /// The line of a dry run.
    pub fn with_privilege(&self) -> String {
        let privilege = match self {
            Deed::Lab(step) => return step.with_privilege(),
            Deed::Directory(_) | Deed::Datagram { .. } | Deed::Forwards { .. } => "no privilege",
            Deed::Device { .. } => "the right to open its group in /dev/vfio, and to lock the guest's memory",
            Deed::Tap { card: Some(_), .. } => "root: CAP_NET_ADMIN, and the right to open /dev/net/tun",
            Deed::Tap { .. } => "CAP_NET_ADMIN within the new namespace, and the right to open /dev/net/tun",
            Deed::WholeChecksums(_) | Deed::TagsInFrames(_) => "CAP_NET_ADMIN within the new namespace",
            Deed::Macvtap { .. } => "root: CAP_NET_ADMIN, CAP_MKNOD, CAP_SYS_ADMIN for mounts of its own",
            Deed::Redirect { .. } | Deed::Pass(_) => "root: CAP_BPF and CAP_NET_ADMIN",
            Deed::Start { program: Program::Switch, .. } => "root: CAP_NET_ADMIN, and CAP_BPF for AF_XDP",
            Deed::Start { .. } | Deed::Run { .. } => "no privilege",
        };
        format!("{self}  [{privilege}]")
    }
}

/// `52:54:00:b1:00:02`.
pub(super) struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(|octet| format!("{octet:02x}")).join(":"))
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deed::Lab(step) => step.fmt(f),
            Deed::Directory(path) => write!(f, "mkdir -m 700 {}", path.display()),
            Deed::Tap { at, mtu, queues, card, .. } => {
                let many = if *queues > 1 { " multi_queue" } else { "" };
                let (room, name) = (at.room.name(), &at.name);
                write!(f, "{room}: ip tuntap add {name} mode tap vnet_hdr{many}; ip link set {name} mtu {mtu}")?;
                match card {
                    Some(mac) => write!(f, " address {}; sysctl net.ipv6.conf.{name}.disable_ipv6=1", Mac(*mac)),
                    None => Ok(()),
                }
            }
            Deed::Macvtap { at, lower, mtu, mac, .. } => {
                let (room, name, below, mac) = (at.room.name(), &at.name, &lower.name, Mac(*mac));
                let from = lower.room.name();
                let (netns, then) = if at.room == lower.room {
                    (String::new(), String::new())
                } else {
                    (format!(" netns {room}"), format!("{room}: "))
                };
                write!(
                    f,
                    "{from}: ip link add {name} link {below} address {mac} mtu {mtu}{netns} type macvtap mode bridge; \
                     {then}ip link set {name} allmulticast on; open its character device"
                )
            }
            Deed::Forwards { port, .. } => {
                write!(f, "{}: wait until the bridge forwards from and to {}", port.room.name(), port.name)
            }
            Deed::Device { end, device } => {
                write!(f, "end {end}: give the PCI device {device} to its guest (vfio-pci)")
            }
            Deed::WholeChecksums(at) => write!(f, "{}: ethtool -K {} tx off", at.room.name(), at.name),
            Deed::TagsInFrames(at) => write!(f, "{}: ethtool -K {} txvlan off", at.room.name(), at.name),
            Deed::Redirect { ports: [one, other], mode } => write!(
                f,
                "{}: attach XDP programs ({}) that redirect from {} to {} and back",
                one.room.name(),
                mode.word(),
                one.name,
                other.name
            ),
            Deed::Pass(at) => {
                write!(f, "{}: attach an XDP program (native) that passes everything to {}", at.room.name(), at.name)
            }
            Deed::Start { program, arguments, .. } => {
                write!(f, "under: {} {} &", program.name(), arguments.join(" "))
            }
            Deed::Run { program, arguments } => write!(f, "under: {} {}", program.name(), arguments.join(" ")),
            Deed::Datagram { local, remote, end } => {
                write!(f, "end {end}: datagrams from {} to {}", local.display(), remote.display())
            }
        }
    }
}

impl Port {
    /// Pairs of queues, of a guest.
    pub(super) fn queues(&self) -> Option<u32> {
        match self {
            Port::Guest { queues } => Some((*queues).max(1)),
            Port::Host | Port::Users => None,
        }
    }
}
