//! Keys of a virtual machine of this host as a place.

use super::{Cpus, RoleKeys, Size, SshKeys, SwitchChoice};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// A virtual machine that QEMU runs; it is started for the run and ended after the run.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VmKeys {
    /// Name of the guest. Ends whose guests have the same name and equal keys share one guest. Default: the name of the
    /// end.
    pub name: Option<At<String>>,
    /// Kernel that the guest boots. The guest has no disk: its initial file system in memory is made from the Tailbound
    /// program, its drivers and the modules of the kernel. Default: `host`.
    pub kernel: Option<At<KernelKeys>>,
    /// Whether KVM or emulation runs the guest's instructions. Default: `kvm`.
    pub accelerator: Option<AcceleratorChoice>,
    /// Number of virtual CPUs of the guest, 1 to 64. Default: 2.
    #[schemars(range(min = 1, max = 64))]
    pub vcpus: Option<At<u32>>,
    /// Memory of the guest; the samples need a part of this memory. Default: `512 MiB`.
    pub memory: Option<At<Size>>,
    /// Whether the guest's memory uses huge pages. Default: `off`.
    pub huge_pages: Option<SwitchChoice>,
    /// Whether the guest's memory is filled and locked before the guest starts. Default: `off`.
    pub lock_memory: Option<SwitchChoice>,
    /// Machine type that QEMU provides to the guest. Default: `q35`.
    pub machine: Option<At<String>>,
    /// CPU model that QEMU provides to the guest, with CPU features. Default: `host` with KVM, `max,-erms,-fsrm` with
    /// emulation.
    pub cpu_model: Option<At<String>>,
    /// Scheduling policy and CPUs of the thread of each virtual CPU, in the order of the virtual CPUs. The last entry
    /// applies to all remaining virtual CPUs. Default: unchanged.
    pub vcpu_threads: Option<Vec<At<RoleKeys>>>,
    /// Scheduling policy and CPUs of all threads of QEMU that do not run a virtual CPU. Default: unchanged.
    pub emulator: Option<At<RoleKeys>>,
    /// Whether the kernel of this host moves the guest's packets (vhost-net), and the scheduling policy and CPUs of the
    /// kernel thread. Default: `off`.
    pub vhost: Option<At<VhostChoice>>,
    /// Number of queue pairs of the guest's measured network interface, 1 to 16. Default: 1.
    #[schemars(range(min = 1, max = 16))]
    pub queues: Option<At<u32>>,
    /// CPUs of the guest that handle the interrupts of the guest's measured network interface. Default: the guest's
    /// kernel chooses.
    pub irq_cpus: Option<At<Cpus>>,
    /// Whether the guest's measured network interface computes checksums and splits segments. Some paths do not support
    /// offloads, and compared conditions should differ in one thing only, so the default is `off`.
    pub offloads: Option<SwitchChoice>,
    /// Text that is added to the guest's kernel command line, for example `isolcpus=1,2 nohz_full=1,2`.
    pub command_line: Option<At<String>>,
    /// Modules that the guest's kernel loads, in addition to the modules that the guest needs.
    pub modules: Option<Vec<At<String>>>,
    /// Connection through which Tailbound communicates with the guest; it never uses the measured network interface.
    /// Default: `virtio-serial`.
    pub channel: Option<ChannelChoice>,
    /// Number of further guests with these keys that run on the same host and the same path during the measurement, 0
    /// to 32. No end runs in them, and the threads of their QEMU processes have no scheduling of their own. Default: 0.
    #[schemars(range(min = 0, max = 32))]
    pub neighbours: Option<At<u32>>,
}

/// An existing libvirt domain (virtual machine). If the domain is not running, Tailbound starts it and shuts it down
/// after the run. Changed settings of the libvirt domain are read back and restored.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DomainKeys {
    /// Name of the libvirt domain, as `virsh list --all` shows the name.
    pub name: At<String>,
    /// Connection URI of libvirt, as for `virsh --connect`. Default: virsh chooses.
    pub connect: Option<At<String>>,
    /// How to reach the libvirt domain's operating system by ssh, which must not ask for a password. Default: Tailbound
    /// uses the libvirt domain's virtio-serial channels; `tailbound guest serve` must run in the libvirt domain.
    pub ssh: Option<SshKeys>,
    /// Scheduling policy and CPUs of the thread of each virtual CPU, in the order of the virtual CPUs. The last entry
    /// applies to all remaining virtual CPUs. Default: unchanged.
    pub vcpu_threads: Option<Vec<At<RoleKeys>>>,
    /// Scheduling policy and CPUs of all threads of the libvirt domain's QEMU that do not run a virtual CPU. Default:
    /// unchanged.
    pub emulator: Option<At<RoleKeys>>,
}

/// Choice of the kernel that a guest boots.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KernelKeys {
    /// The guest boots the kernel of this host, from /boot and /lib/modules.
    Host,
    /// The guest boots the kernel of a Debian or Ubuntu package file, `linux-image-*.deb`.
    Package(At<String>),
    /// The guest boots the given kernel image.
    Image(ImageKeys),
}

/// A kernel image that a guest boots.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImageKeys {
    /// Path of the kernel image, a `vmlinuz` or `vmlinux` file.
    pub file: At<String>,
    /// Directory of the kernel modules, with `modules.dep`. Default: Tailbound searches in the directory of the kernel
    /// image.
    pub modules: Option<At<String>>,
}

/// Whether KVM or emulation runs the instructions of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AcceleratorChoice {
    /// The processor runs the guest's instructions, by KVM. Tailbound checks that KVM works by booting the guest's
    /// kernel once.
    Kvm,
    /// KVM runs the guest's instructions if KVM works, otherwise QEMU emulates them.
    Any,
    /// QEMU emulates the guest's instructions. Figures then show only that the measurement works, not how fast it is,
    /// and every figure says so.
    Emulated,
}

/// Whether QEMU or the host's kernel moves the packets of a guest.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VhostChoice {
    /// QEMU moves the packets of the guest.
    Off,
    /// A kernel thread of the host moves the packets of the guest (vhost-net).
    On(Box<RoleKeys>),
}

/// Connection through which Tailbound communicates with a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChannelChoice {
    /// Tailbound communicates with the guest (virtual machine) through virtio-serial ports.
    VirtioSerial,
    /// Tailbound communicates with the guest by TCP through QEMU's user-mode network, on the loopback interface of this
    /// host.
    Tcp,
}
