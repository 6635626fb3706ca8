//! A virtual machine of this host as a place.

use super::{Cpus, RoleKeys, Size, SshKeys, SwitchChoice};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// A virtual machine that QEMU runs, started for the run and ended after it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VmKeys {
    /// Ends whose guests have one name, and are otherwise equal, share one. Default: the name of the end.
    pub name: Option<At<String>>,
    /// What it boots. There is no disk: its first file system is made from this program, its drivers and the modules of
    /// that kernel. Default: `host`.
    pub kernel: Option<At<KernelKeys>>,
    /// Who runs its instructions. Default: `kvm`.
    pub accelerator: Option<AcceleratorChoice>,
    /// Virtual CPUs, 1 to 64. Default: 2.
    #[schemars(range(min = 1, max = 64))]
    pub vcpus: Option<At<u32>>,
    /// Memory; samples are kept in it. Default: `512 MiB`.
    pub memory: Option<At<Size>>,
    /// Whether its memory is of huge pages. Default: `off`.
    pub huge_pages: Option<SwitchChoice>,
    /// Whether its memory is filled and locked before it starts. Default: `off`.
    pub lock_memory: Option<SwitchChoice>,
    /// Machine type of QEMU. Default: `q35`.
    pub machine: Option<At<String>>,
    /// CPU model of QEMU, with its features. Default: `host` with KVM, `max,-erms,-fsrm` when emulated.
    pub cpu_model: Option<At<String>>,
    /// Policy and CPUs of the thread of each virtual CPU, in their order; the last is that of all that follow. Default: as
    /// they are.
    pub vcpu_threads: Option<Vec<At<RoleKeys>>>,
    /// Policy and CPUs of all other threads of QEMU. Default: as they are.
    pub emulator: Option<At<RoleKeys>>,
    /// Whether the kernel of this host carries its datagrams (vhost-net), and the policy and CPUs of the thread that does.
    /// Default: `off`.
    pub vhost: Option<At<VhostChoice>>,
    /// Pairs of queues of the interface that is measured, 1 to 16. Default: 1.
    #[schemars(range(min = 1, max = 16))]
    pub queues: Option<At<u32>>,
    /// CPUs of the guest that take the interrupts of that interface. Default: as its kernel does it.
    pub irq_cpus: Option<At<Cpus>>,
    /// Whether checksums and segmentation are left to that interface. Off by default, because some paths cannot have it,
    /// and conditions are compared that differ in one thing. Default: `off`.
    pub offloads: Option<SwitchChoice>,
    /// What is added to the command line of its kernel, for example `isolcpus=1,2 nohz_full=1,2`.
    pub command_line: Option<At<String>>,
    /// Modules that its kernel loads, beside those that it needs.
    pub modules: Option<Vec<At<String>>>,
    /// How it is spoken with: never over the interface that is measured. Default: `virtio-serial`.
    pub channel: Option<ChannelChoice>,
}

/// A domain of libvirt that exists already. It is started if it does not run, and shut down again then; what is set is read
/// back and put back.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DomainKeys {
    /// Its name, as `virsh list --all` shows it.
    pub name: At<String>,
    /// Which libvirt, as `virsh --connect` takes it. Default: the choice of virsh.
    pub connect: Option<At<String>>,
    /// How its system is reached, which has to let you in without a question. Default: over the domain's channels of
    /// virtio-serial, which `tailbound guest serve` serves in it.
    pub ssh: Option<SshKeys>,
    /// Policy and CPUs of the thread of each virtual CPU, in their order; the last is that of all that follow. Default: as
    /// they are.
    pub vcpu_threads: Option<Vec<At<RoleKeys>>>,
    /// Policy and CPUs of all other threads of its QEMU. Default: as they are.
    pub emulator: Option<At<RoleKeys>>,
}

/// What a guest boots.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KernelKeys {
    /// The kernel of this host, from /boot and /lib/modules.
    Host,
    /// A package of Debian or Ubuntu: `linux-image-*.deb`.
    Package(At<String>),
    /// An image.
    Image(ImageKeys),
}

/// A kernel's image.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImageKeys {
    /// `vmlinuz` or `vmlinux`.
    pub file: At<String>,
    /// The directory that has its `modules.dep`. Default: found beside the image.
    pub modules: Option<At<String>>,
}

/// Who runs the instructions of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AcceleratorChoice {
    /// The processor, by KVM. Whether that works is tried by booting this kernel once.
    Kvm,
    /// KVM where that works, else as `emulated`.
    Any,
    /// QEMU emulates them. What is measured then shows function only, and every figure says so.
    Emulated,
}

/// Who carries the datagrams of a guest.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VhostChoice {
    /// QEMU.
    Off,
    /// A thread of the kernel.
    On(RoleKeys),
}

/// How a guest is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChannelChoice {
    /// Ports of virtio-serial.
    VirtioSerial,
    /// TCP through the user-mode network of QEMU, from the loopback interface of this host.
    Tcp,
}
