//! A virtual machine as a place, that is, as a location where an end runs.

use crate::{CpuList, RoleScheduling, SshSpec};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A guest (virtual machine) that is started for the run and ended after the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VmSpec {
    /// Name of the guest; by default the name of the end. Ends whose guests have the same name and equal settings share
    /// one guest.
    pub name: String,
    /// Kernel that the guest boots.
    #[serde(default)]
    pub kernel: KernelChoice,
    /// Whether KVM or emulation runs the guest's instructions.
    #[serde(default)]
    pub accelerator: Accelerator,
    /// Number of virtual CPUs of the guest.
    pub vcpus: u32,
    /// Memory of the guest in MiB.
    pub memory_mib: u32,
    /// True if the guest's memory uses huge pages.
    #[serde(default)]
    pub huge_pages: bool,
    /// True if the guest's memory is locked and filled before the guest starts.
    #[serde(default)]
    pub lock_memory: bool,
    /// Machine type that QEMU provides to the guest; if absent, `q35`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// CPU model that QEMU provides to the guest; if absent, `host` with KVM and `max` with emulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Scheduling policy and CPUs of the thread of each virtual CPU, in the order of the virtual CPUs. The last entry
    /// applies to all remaining virtual CPUs. If empty, nothing is changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vcpu_threads: Vec<RoleScheduling>,
    /// Scheduling policy and CPUs of all threads of QEMU that do not run a virtual CPU.
    #[serde(default)]
    pub emulator: RoleScheduling,
    /// If given, the kernel of the host moves the guest's packets (vhost-net), in a thread with this policy and on
    /// these CPUs. If absent, QEMU moves the packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost: Option<RoleScheduling>,
    /// Number of queue pairs of the guest's network interface.
    pub queues: u32,
    /// CPUs of the guest that handle the interrupts of its network interface; if absent, the guest's kernel chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irq_cpus: Option<CpuList>,
    /// True if the guest's network interface computes checksums and splits segments.
    #[serde(default)]
    pub offloads: bool,
    /// Text that is added to the guest's kernel command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command_line: String,
    /// Modules that the guest's kernel loads in addition to the modules that the guest needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// Connection through which Tailbound communicates with the guest; it is separate from the measured network
    /// interface.
    #[serde(default)]
    pub channel: VmChannel,
    /// Number of further guests (neighbours) that run on the same host and the same path, and in which no end runs.
    #[serde(default, skip_serializing_if = "is_none")]
    pub neighbours: u32,
}

/// True for a number that is left out of the stored form.
fn is_none(neighbours: &u32) -> bool {
    *neighbours == 0
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
            neighbours: 0,
        }
    }
}

/// An existing libvirt domain (virtual machine). libvirt controls the domain; Tailbound reaches the domain's operating
/// system by ssh or over virtio-serial channels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DomainSpec {
    /// Name of the libvirt domain.
    pub name: String,
    /// Connection URI of libvirt, as for `virsh --connect`; if absent, virsh chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<String>,
    /// How to reach the libvirt domain's operating system by ssh; if absent, Tailbound uses the domain's virtio-serial
    /// channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshSpec>,
    /// Scheduling policy and CPUs of the thread of each virtual CPU, in the order of the virtual CPUs. The last entry
    /// applies to all remaining virtual CPUs. If empty, nothing is changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vcpu_threads: Vec<RoleScheduling>,
    /// Scheduling policy and CPUs of all threads of the libvirt domain that do not run a virtual CPU.
    #[serde(default)]
    pub emulator: RoleScheduling,
}

impl DomainSpec {
    /// True if the study asks for a scheduling policy or CPUs of any thread of the libvirt domain.
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

/// Writes the scheduling of QEMU's threads, e.g. `, vCPU 0 fifo 1, CPU 2, emulator CPU 0`; threads that are not changed
/// are left out.
fn pins(f: &mut fmt::Formatter<'_>, vcpus: &[RoleScheduling], emulator: &RoleScheduling) -> fmt::Result {
    let pinned = |threads: &RoleScheduling| *threads != RoleScheduling::default();
    for (number, threads) in vcpus.iter().enumerate().filter(|(_, threads)| pinned(threads)) {
        write!(f, ", vCPU {number} {threads}")?;
    }
    if pinned(emulator) { write!(f, ", emulator {emulator}") } else { Ok(()) }
}

/// The kernel that a guest boots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelChoice {
    /// The guest boots the kernel of this host: `/boot/vmlinuz-RELEASE` with `/lib/modules/RELEASE`.
    #[default]
    Host,
    /// The guest boots a kernel image. The kernel's modules are in `modules`, or in `lib/modules/RELEASE` or
    /// `modules/RELEASE` in the image's directory.
    Image {
        /// Path of the kernel image, a `vmlinuz` or `vmlinux` file.
        image: String,
        /// Directory of the kernel modules, with `modules.dep`; if absent, Tailbound searches in the directory of the
        /// kernel image.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modules: Option<String>,
    },
    /// The guest boots the kernel of a Debian package file, `linux-image-*.deb`.
    Package(String),
}

/// Whether KVM or emulation runs the instructions of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accelerator {
    /// The processor runs the guest's instructions, by KVM; if KVM does not work, the study cannot run on this host.
    #[default]
    Kvm,
    /// KVM runs the guest's instructions if KVM works, otherwise QEMU emulates them.
    Any,
    /// QEMU emulates the guest's instructions: latencies that are measured in such a guest are functional only, that
    /// is, they say nothing about speed.
    Emulated,
}

/// Connection of Tailbound to a guest; it never uses the measured network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmChannel {
    /// Tailbound communicates with the guest (virtual machine) through virtio-serial ports.
    #[default]
    VirtioSerial,
    /// Tailbound communicates with the guest by TCP through QEMU's user-mode network, on the loopback interface of this
    /// host.
    Tcp,
}

impl VmSpec {
    /// True if starting the guest needs privileges, because the study asks for a real-time policy or for locked memory.
    pub fn needs_privilege(&self) -> bool {
        let all = self.vcpu_threads.iter().chain([&self.emulator]).chain(&self.vhost);
        self.lock_memory || all.into_iter().any(|t| t.policy.is_some_and(|p| p.is_real_time()))
    }

    /// Specifications of the neighbours of this guest, in the order of their numbers, which begin at 1. The threads of
    /// their QEMU processes have no scheduling of their own: on the CPUs of the measured guest, they would compete with
    /// its threads under equal real-time priorities.
    pub fn neighbours(&self) -> impl Iterator<Item = VmSpec> + '_ {
        (1..=self.neighbours).map(|number| VmSpec {
            // The name of a guest in a study has no dot, so that no other guest has this name.
            name: format!("{}.neighbour-{number}", self.name),
            vcpu_threads: Vec::new(),
            emulator: RoleScheduling::default(),
            vhost: self.vhost.as_ref().map(|_| RoleScheduling::default()),
            neighbours: 0,
            ..self.clone()
        })
    }
}

impl Accelerator {
    /// Word for this choice of accelerator in a study file, e.g. `kvm`.
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
    /// Writes the guest's name, virtual CPUs, memory and thread scheduling.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = if self.vcpus == 1 { "1 vCPU" } else { &format!("{} vCPUs", self.vcpus) };
        write!(f, "guest {} ({cpus}, {} MiB", self.name, self.memory_mib)?;
        pins(f, &self.vcpu_threads, &self.emulator)?;
        match &self.vhost {
            Some(threads) if *threads != RoleScheduling::default() => write!(f, ", vhost {threads}")?,
            Some(_) => f.write_str(", vhost")?,
            None => {}
        }
        match self.neighbours {
            0 => {}
            1 => f.write_str(", 1 neighbour")?,
            n => write!(f, ", {n} neighbours")?,
        }
        f.write_str(")")
    }
}
