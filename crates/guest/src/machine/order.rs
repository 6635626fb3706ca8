//! Description of a virtual machine that is to be started.

use crate::cache::Cache;
use crate::kernel::Kernel;
use crate::line::{Mode, NicLine};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use tailbound_model::VmSpec;

/// A network interface of a guest, and what connects the interface to this host.
#[derive(Debug)]
pub struct Nic {
    /// The network interface as the guest sees it.
    pub line: NicLine,
    /// What connects the network interface to this host.
    pub plug: Plug,
}

/// What connects a network interface of a guest to this host.
#[derive(Debug)]
pub enum Plug {
    /// A tap or macvtap device that the caller has opened.
    Tap {
        /// File descriptors of the tap or macvtap device, one for each pair of queues.
        fds: Vec<OwnedFd>,
        /// File descriptors of `/dev/vhost-net`, one for each pair of queues, if the kernel carries the packets.
        vhost_fds: Option<Vec<OwnedFd>>,
    },
    /// Two Unix datagram sockets, which connect two guests without a device on the host.
    Datagram {
        /// Path of this guest's Unix socket.
        local: PathBuf,
        /// Path of the other guest's Unix socket.
        remote: PathBuf,
    },
    /// A network card of this host, passed through to the guest (VFIO), by its PCI address.
    Device(String),
}

/// Description of a virtual machine that is to be started: everything that QEMU is given.
#[derive(Debug)]
pub struct MachineOrder<'a> {
    /// Specification of the guest from the study.
    pub spec: &'a VmSpec,
    /// Whether KVM runs the guest; otherwise QEMU emulates its processor.
    pub kvm: bool,
    /// Kernel that the guest boots.
    pub kernel: &'a Kernel,
    /// Path of the guest's initramfs.
    pub initramfs: &'a Path,
    /// Path of an empty directory for QEMU's sockets and the output of the guest's console.
    pub directory: &'a Path,
    /// Network interfaces of the guest.
    pub nics: Vec<Nic>,
    /// Token in the environment of QEMU, by which a cleanup finds QEMU's process.
    pub token: &'a str,
    /// What the guest does after it has booted.
    pub mode: Mode,
    /// Maximum number of agents in the guest at a time.
    pub agents: u32,
    /// Where snapshots of emulated guests are kept; `None` = each guest boots.
    pub snapshots: Option<&'a Cache>,
}

impl Plug {
    pub(super) fn fds(&self) -> Vec<i32> {
        match self {
            Plug::Tap { fds, vhost_fds } => {
                fds.iter().chain(vhost_fds.iter().flatten()).map(AsRawFd::as_raw_fd).collect()
            }
            Plug::Datagram { .. } | Plug::Device(_) => Vec::new(),
        }
    }
}
