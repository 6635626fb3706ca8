//! A virtual machine as a place, and what is measured of it from outside.

use crate::{CpuList, RoleScheduling, SshSpec};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A guest that is started for the run, and ended after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VmSpec {
    /// Ends whose guest has the same name and is otherwise equal share it; by default the name of the end.
    pub name: String,
    /// What it boots.
    #[serde(default)]
    pub kernel: KernelChoice,
    /// Who runs its instructions.
    #[serde(default)]
    pub accelerator: Accelerator,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Its memory is of huge pages.
    #[serde(default)]
    pub huge_pages: bool,
    /// Its memory is locked and filled before it starts.
    #[serde(default)]
    pub lock_memory: bool,
    /// Machine type of QEMU; absent = `q35`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// CPU model of QEMU; absent = `host` with KVM, `max` under emulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Policy and CPUs of the thread of each virtual CPU, in their order; the last is that of all that follow. Empty = as
    /// they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vcpu_threads: Vec<RoleScheduling>,
    /// Policy and CPUs of all other threads of QEMU.
    #[serde(default)]
    pub emulator: RoleScheduling,
    /// The kernel of the host carries its datagrams (vhost-net), by a thread of this policy and on these CPUs; absent =
    /// QEMU carries them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost: Option<RoleScheduling>,
    /// Pairs of queues of its network interface.
    pub queues: u32,
    /// CPUs of the guest that take the interrupts of that interface; absent = as its kernel does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irq_cpus: Option<CpuList>,
    /// Checksums and segmentation are left to the interface.
    #[serde(default)]
    pub offloads: bool,
    /// What is added to its kernel command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command_line: String,
    /// Modules that its kernel loads beside those that it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// How it is spoken with.
    #[serde(default)]
    pub channel: VmChannel,
}

impl Default for VmSpec {
    fn default() -> VmSpec {
        VmSpec {
            name: String::new(),
            kernel: KernelChoice::default(),
            accelerator: Accelerator::default(),
            vcpus: 2,
            memory_mib: 512,
            huge_pages: false,
            lock_memory: false,
            machine: None,
            cpu_model: None,
            vcpu_threads: Vec::new(),
            emulator: RoleScheduling::default(),
            vhost: None,
            queues: 1,
            irq_cpus: None,
            offloads: false,
            command_line: String::new(),
            modules: Vec::new(),
            channel: VmChannel::default(),
        }
    }
}

/// A domain of libvirt that exists already: steered by libvirt, reached by ssh or over channels that it has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DomainSpec {
    /// Its name.
    pub name: String,
    /// Which libvirt, as `virsh --connect` takes it; absent = virsh's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<String>,
    /// How its system is reached; absent = over its channels of virtio-serial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshSpec>,
    /// Policy and CPUs of the thread of each virtual CPU, in their order; the last is that of all that follow. Empty = as
    /// they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vcpu_threads: Vec<RoleScheduling>,
    /// Policy and CPUs of all its other threads.
    #[serde(default)]
    pub emulator: RoleScheduling,
}

impl DomainSpec {
    /// Something is to be set.
    pub fn asks_for_threads(&self) -> bool {
        !self.vcpu_threads.is_empty() || self.emulator != RoleScheduling::default()
    }
}

impl fmt::Display for DomainSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "domain {} (", self.name)?;
        match &self.ssh {
            Some(ssh) => write!(f, "ssh {}", ssh.host)?,
            None => f.write_str("its channels")?,
        }
        pins(f, &self.vcpu_threads, &self.emulator)?;
        f.write_str(")")
    }
}

/// `, vCPU 0 fifo 1, CPU 2, emulator CPU 0`: what is as it was is left out.
fn pins(f: &mut fmt::Formatter<'_>, vcpus: &[RoleScheduling], emulator: &RoleScheduling) -> fmt::Result {
    let pinned = |threads: &RoleScheduling| *threads != RoleScheduling::default();
    for (number, threads) in vcpus.iter().enumerate().filter(|(_, threads)| pinned(threads)) {
        write!(f, ", vCPU {number} {threads}")?;
    }
    if pinned(emulator) { write!(f, ", emulator {emulator}") } else { Ok(()) }
}

/// The kernel of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelChoice {
    /// That of this host: `/boot/vmlinuz-RELEASE` with `/lib/modules/RELEASE`.
    #[default]
    Host,
    /// An image, with its modules in `lib/modules/RELEASE` or `modules/RELEASE` beside it, or as named.
    Image {
        /// `vmlinuz` or `vmlinux`.
        image: String,
        /// The directory that has `modules.dep`; absent = found beside the image.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modules: Option<String>,
    },
    /// A package file of Debian: `linux-image-*.deb`.
    Package(String),
}

/// Who runs the instructions of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accelerator {
    /// The processor, by KVM; a host where that does not work is not fit.
    #[default]
    Kvm,
    /// KVM where it works, else emulation.
    Any,
    /// QEMU emulates them: what is measured is functional only.
    Emulated,
}

/// How a guest is spoken with, never over the interface that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmChannel {
    /// Ports of virtio-serial.
    #[default]
    VirtioSerial,
    /// TCP through QEMU's user-mode network, on the loopback interface of this host.
    Tcp,
}

impl VmSpec {
    /// A policy, or memory that is locked, takes more than a program may.
    pub fn needs_privilege(&self) -> bool {
        let all = self.vcpu_threads.iter().chain([&self.emulator]).chain(&self.vhost);
        self.lock_memory || all.into_iter().any(|t| t.policy.is_some_and(|p| p.is_real_time()))
    }
}

impl Accelerator {
    /// As a study writes it.
    pub fn word(self) -> &'static str {
        match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Any => "any",
            Accelerator::Emulated => "emulated",
        }
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelChoice::Host => f.write_str("the host's kernel"),
            KernelChoice::Image { image: path, .. } | KernelChoice::Package(path) => f.write_str(path),
        }
    }
}

impl fmt::Display for VmSpec {
    /// What tells it from another guest of a study.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = if self.vcpus == 1 { "1 vCPU" } else { &format!("{} vCPUs", self.vcpus) };
        write!(f, "guest {} ({cpus}, {} MiB", self.name, self.memory_mib)?;
        pins(f, &self.vcpu_threads, &self.emulator)?;
        match &self.vhost {
            Some(threads) if *threads != RoleScheduling::default() => write!(f, ", vhost {threads}")?,
            Some(_) => f.write_str(", vhost")?,
            None => {}
        }
        f.write_str(")")
    }
}
