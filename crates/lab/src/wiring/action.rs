//! The actions that make the wiring of guests, as data: the steps of a lab, and actions that only guests need.

use crate::step::{At, Step};
use std::fmt;
use std::path::{Path, PathBuf};
use tailbound_model::XdpMode;

/// One action of making the wiring, the devices that carry the packets of guests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Step(Step),
    /// Action of making the wiring: make the directory for sockets and files of programs.
    Directory(PathBuf),
    /// Action of making the wiring: make a tap device, and the plug (descriptors) by which QEMU gives the device to a
    /// guest.
    Tap {
        at: At,
        mtu: u32,
        end: usize,
        queues: u32,
        /// Hardware address of the tap device itself, if the device lies among the user's interfaces. Such a device
        /// also has no IPv6.
        card: Option<[u8; 6]>,
    },
    /// Action of making the wiring: make a macvtap device in bridge mode on top of another device, and the plug
    /// (descriptors) of a guest.
    Macvtap {
        at: At,
        lower: At,
        mtu: u32,
        end: usize,
        queues: u32,
        /// Hardware address of the guest's network card.
        mac: [u8; 6],
    },
    /// Action: wait until a bridge of the user forwards from and to a new port.
    Forwards {
        port: At,
        /// Forwarding delay of the bridge of the user, in hundredths of a second.
        delay_cs: u32,
    },
    /// Action of making the wiring: pass a network card of this host through to a guest.
    Device {
        end: usize,
        device: String,
    },
    /// Action of making the wiring: make the kernel complete checksums before an interface sends.
    WholeChecksums(At),
    /// Action of making the wiring: make the kernel write VLAN tags into frames, because XDP programs do not see the
    /// tags in the packet's metadata.
    TagsInFrames(At),
    /// Action of making the wiring: attach XDP programs that redirect all packets of each port to the other port.
    Redirect {
        ports: [At; 2],
        mode: XdpMode,
    },
    /// Action of making the wiring: attach an XDP program that passes all packets, because a veth accepts packets
    /// redirected to its peer only while the veth has a program.
    Pass(At),
    /// Action of making the wiring: start a daemon and wait until its socket exists.
    Start {
        program: Program,
        arguments: Vec<String>,
        socket: PathBuf,
    },
    /// Action of making the wiring: run a program and wait until it ends.
    Run {
        program: Program,
        arguments: Vec<String>,
    },
    /// Action of making the wiring: set the names of the Unix sockets of a guest.
    Datagram {
        end: usize,
        local: PathBuf,
        remote: PathBuf,
    },
}

/// A program that belongs to Open vSwitch.
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

    /// Finds the path of the installed program of Open vSwitch.
    pub fn find(self) -> Option<PathBuf> {
        // The program on PATH can be the build with DPDK, which needs DPDK even for other ports.
        let own = (self == Program::Switch).then(|| PathBuf::from("/usr/lib/openvswitch-switch"));
        let listed = std::env::var_os("PATH").unwrap_or_default();
        let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
        let all = own.into_iter().chain(std::env::split_paths(&listed)).chain(usual);
        all.map(|dir| dir.join(self.name())).find(|path| path.is_file())
    }
}

/// Path of the control socket of Open vSwitch in the directory `dir`.
pub(super) fn control_socket(dir: &Path) -> PathBuf {
    dir.join("switch.ctl")
}

impl Action {
    /// Line for `--dry-run`: the action as a command, and the privilege that the action needs.
    pub fn with_privilege(&self) -> String {
        let privilege = match self {
            Action::Step(step) => return step.with_privilege(),
            Action::Directory(_) | Action::Datagram { .. } | Action::Forwards { .. } => "no privilege",
            Action::Device { .. } => {
                "the right to open the device's group in /dev/vfio, and to lock the guest's memory"
            }
            Action::Tap { card: Some(_), .. } => "root: CAP_NET_ADMIN, and the right to open /dev/net/tun",
            Action::Tap { .. } => "CAP_NET_ADMIN within the new namespace, and the right to open /dev/net/tun",
            Action::WholeChecksums(_) | Action::TagsInFrames(_) => "CAP_NET_ADMIN within the new namespace",
            Action::Macvtap { .. } => "root: CAP_NET_ADMIN, CAP_MKNOD, and CAP_SYS_ADMIN to mount a directory",
            Action::Redirect { .. } | Action::Pass(_) => "root: CAP_BPF and CAP_NET_ADMIN",
            Action::Start { program: Program::Switch, .. } => "root: CAP_NET_ADMIN, and CAP_BPF for AF_XDP",
            Action::Start { .. } | Action::Run { .. } => "no privilege",
        };
        format!("{self}  [{privilege}]")
    }
}

/// A hardware address, written as `52:54:00:b1:00:02`.
pub(super) struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(|byte| format!("{byte:02x}")).join(":"))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Step(step) => step.fmt(f),
            Action::Directory(path) => write!(f, "mkdir -m 700 {}", path.display()),
            Action::Tap { at, mtu, queues, card, .. } => {
                let many = if *queues > 1 { " multi_queue" } else { "" };
                let (room, name) = (at.room.name(), &at.name);
                write!(f, "{room}: ip tuntap add {name} mode tap vnet_hdr{many}; ip link set {name} mtu {mtu}")?;
                match card {
                    Some(mac) => write!(f, " address {}; sysctl net.ipv6.conf.{name}.disable_ipv6=1", Mac(*mac)),
                    None => Ok(()),
                }
            }
            Action::Macvtap { at, lower, mtu, mac, .. } => {
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
            Action::Forwards { port, .. } => {
                write!(f, "{}: wait until the bridge forwards from and to {}", port.room.name(), port.name)
            }
            Action::Device { end, device } => {
                write!(f, "end {end}: give the PCI device {device} to its guest (vfio-pci)")
            }
            Action::WholeChecksums(at) => write!(f, "{}: ethtool -K {} tx off", at.room.name(), at.name),
            Action::TagsInFrames(at) => write!(f, "{}: ethtool -K {} txvlan off", at.room.name(), at.name),
            Action::Redirect { ports: [one, other], mode } => write!(
                f,
                "{}: attach XDP programs ({}) that redirect from {} to {} and back",
                one.room.name(),
                mode.word(),
                one.name,
                other.name
            ),
            Action::Pass(at) => {
                write!(f, "{}: attach an XDP program (native) that passes everything to {}", at.room.name(), at.name)
            }
            Action::Start { program, arguments, .. } => {
                write!(f, "wiring: {} {} &", program.name(), arguments.join(" "))
            }
            Action::Run { program, arguments } => write!(f, "wiring: {} {}", program.name(), arguments.join(" ")),
            Action::Datagram { local, remote, end } => {
                write!(f, "end {end}: datagrams from {} to {}", local.display(), remote.display())
            }
        }
    }
}
