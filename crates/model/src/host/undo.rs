//! Entries of the journal: how to undo each change that Tailbound makes to a host.

use crate::{CardStamping, ContainerAccess, CpuList, MergeLayer, NicSetting, PodSpec, QueueDiscipline, RoleScheduling};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A process, identified by process id and start time, so that it cannot be confused with a later process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Process id, as the kernel gives it.
    pub pid: i32,
    /// Start time of the process in clock ticks since boot (field 22 of /proc/PID/stat).
    pub start_ticks: u64,
}

/// A network namespace, identified so that it cannot be confused with another namespace while it exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetnsId {
    /// Inode number that identifies the network namespace.
    pub inode: u64,
    /// Path of a file that keeps the network namespace in existence without processes; empty if there is no such file.
    #[serde(default)]
    pub path: String,
}

/// Name of the environment variable that holds the run token: every process that an agent starts has the variable.
pub const RUN_TOKEN: &str = "TAILBOUND_RUN_TOKEN";

/// One line of the journal, written before the change to the host is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Number of the entry within its journal.
    pub number: u64,
    /// How to undo the change that the journal entry describes.
    pub undo: Undo,
}

/// How to undo one change to a host. The entry holds the identity of the changed object: if another object has the same
/// name now, that object is not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// Undo of a started process: ends this process with SIGTERM, then SIGKILL.
    EndProcess {
        /// Identity of the process to be ended.
        process: ProcessId,
        /// Description, for the user, of the process to be ended.
        what: String,
        /// Token of the run: child processes are found by this value of the environment variable [`RUN_TOKEN`] and are
        /// ended too.
        #[serde(default)]
        token: String,
    },
    /// Undo by ending a process that was about to be started, so that its process id is not known; the process is found
    /// by its argument `--run-token`.
    EndProcessByToken {
        /// Value of the argument `--run-token` of the process to be ended.
        token: String,
    },
    /// Undo of a created network interface: removes the interface.
    DeleteInterface {
        /// Name of the network interface to be removed.
        name: String,
        /// Index of the interface, as soon as it is known.
        ifindex: Option<u32>,
        /// Inode of the network namespace that contains the interface.
        netns_inode: u64,
    },
    /// Entry for an unnamed network namespace. The namespace exists as long as its processes, so only the processes
    /// must be ended. The entry lets `tailbound lab list` show the namespace.
    UnnamedNetns {
        /// Inode of the network namespace without a name.
        inode: u64,
        /// Description, for the user, of the network namespace without a name.
        what: String,
    },
    /// Undo of a changed host setting: restores the value of the host setting.
    RestoreSetting {
        /// Path of the file that holds the host setting.
        path: String,
        /// Value of the host setting before Tailbound changed it.
        before: String,
        /// Value that Tailbound set. If the file holds a different value now, another program has changed the setting
        /// since.
        set: String,
        /// Network namespace in which the file shows the changed value; `None` means the namespace of the process that
        /// undoes the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        netns: Option<NetnsId>,
    },
    /// Entry for a limit of the wake-up latency of idle CPUs. The kernel removes the limit when the process that set it
    /// ends, so nothing must be undone. The entry lets `tailbound lab list` show the limit.
    HeldCpuLatency {
        /// Largest allowed wake-up latency of an idle CPU, us.
        us: u32,
    },
    /// Undo of a changed kernel thread: restores the scheduling of the kernel thread.
    RestoreThread {
        /// Identity of the kernel thread: thread id and start time.
        thread: ProcessId,
        /// Name of the kernel thread whose scheduling is restored, as the user sees it.
        name: String,
        /// Scheduling of the kernel thread before the change, as far as Tailbound changed it.
        before: RoleScheduling,
        /// Scheduling that Tailbound set. If the thread has a different scheduling now, another program has changed it
        /// since.
        set: RoleScheduling,
    },
    /// Undo of a changed network interface: restores a setting of the interface.
    RestoreInterface {
        /// Name of the network interface whose setting was changed.
        interface: String,
        /// Index of the interface: an interface with the same name and another index is a different interface.
        ifindex: u32,
        /// Network namespace of the interface; `None` means the namespace of the process that undoes the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        netns: Option<NetnsId>,
        /// The setting of the network interface that was changed.
        setting: NicSetting,
        /// Value of the interface's setting before Tailbound changed it.
        before: u32,
        /// Value to which Tailbound set the interface's setting.
        set: u32,
    },
    /// Undo of replaced queue disciplines: restores the queue disciplines of a network interface.
    RestoreQueues {
        /// Name of the network interface whose queue disciplines were replaced.
        interface: String,
        /// Index of the interface: an interface with the same name and another index is a different interface.
        ifindex: u32,
        /// Network namespace of the interface with the queue disciplines.
        netns: NetnsId,
        /// All queue disciplines of the interface for packets that it sends, before Tailbound replaced them.
        before: Vec<QueueDiscipline>,
        /// Kind of the queue discipline that Tailbound set at the root of the interface, or [`DEFAULT_QUEUE`](crate::DEFAULT_QUEUE).
        kind: String,
        /// Handle of the queue discipline that Tailbound set, 0 for the kernel's default one. If another queue discipline is at the
        /// root now, another program has replaced it since.
        handle: u32,
    },
    /// Undo of a change of which frames a network card stamps: restores its configuration.
    RestoreStamping {
        /// Name of the network interface whose card was changed.
        interface: String,
        /// Index of the interface: an interface with the same name and another index is a different interface.
        ifindex: u32,
        /// Network namespace of the interface whose card was changed.
        netns: NetnsId,
        /// What the card stamped before the change.
        before: CardStamping,
        /// What the card was set to stamp. If the card stamps something else now, another program has changed it since.
        set: CardStamping,
    },
    /// Undo of a change of the frame preemption of a network interface: restores the settings of its MAC merge layer.
    RestorePreemption {
        /// Name of the network interface whose frame preemption was changed.
        interface: String,
        /// Index of the interface: an interface with the same name and another index is a different interface.
        ifindex: u32,
        /// Network namespace of the interface whose frame preemption was changed.
        netns: NetnsId,
        /// Settings of the MAC merge layer before the change.
        before: MergeLayer,
        /// Settings of the MAC merge layer that were made. If the layer has another setting now, which it had neither before nor
        /// after the change, another program has changed it since.
        set: MergeLayer,
    },
    /// Undo of a created pod: deletes the pod from its Kubernetes cluster.
    DeletePod {
        /// Specification of a pod of the cluster; only its members about how to reach the cluster are used.
        cluster: Box<PodSpec>,
        /// Value of a Kubernetes label that only this pod has.
        token: String,
    },
    /// Undo by deleting a service and its deployment from a cluster.
    DeleteService {
        /// Specification of a pod of the cluster; only its members about how to reach the cluster are used.
        cluster: Box<PodSpec>,
        /// Value of a Kubernetes label that only this service has.
        token: String,
    },
    /// Undo of a created container: removes the container from this host.
    RemoveContainer {
        /// The program that created the container, with its environment variables.
        access: ContainerAccess,
        /// Value of a container label that only this container has.
        token: String,
    },
    /// Undo by removing a directory that this run created for sockets or a database.
    RemoveDirectory {
        /// Path of the directory to be removed.
        path: String,
        /// Inode of the directory, as soon as it is known. Without an inode the directory is removed only if it is
        /// empty.
        inode: Option<u64>,
    },
    /// Undo by restoring the CPUs to which a part of a libvirt domain was pinned.
    RestoreDomainPin {
        /// Connection URI of libvirt, as for `virsh --connect`; `None` means that virsh chooses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        connect: Option<String>,
        /// Name of the libvirt domain, for the user.
        name: String,
        /// UUID of the libvirt domain.
        uuid: String,
        /// QEMU process of the libvirt domain: if this process has ended, the pinning has ended too.
        process: ProcessId,
        /// Threads of the libvirt domain that were pinned, e.g. the thread of a virtual CPU.
        pin: DomainPin,
        /// CPUs to which the threads of the libvirt domain were pinned before the change.
        before: CpuList,
        /// CPUs that Tailbound set. If the threads have other CPUs now, another program has changed the CPUs since.
        set: CpuList,
    },
    /// Undo by shutting down a libvirt domain that Tailbound started.
    StopDomain {
        /// Connection URI of libvirt, as for `virsh --connect`; `None` means that virsh chooses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        connect: Option<String>,
        /// Name of the libvirt domain, for the user.
        name: String,
        /// UUID of the libvirt domain.
        uuid: String,
        /// QEMU process of the libvirt domain, as soon as it is known.
        process: Option<ProcessId>,
        /// Monotonic time at which the start of the libvirt domain was requested, ns.
        asked_ns: i64,
        /// Time for which Tailbound waits until the libvirt domain has shut down, before Tailbound ends the domain, ms.
        patience_ms: u64,
    },
    /// Undo by removing the record directory that this run created, if it contains no finished record.
    RemovePartialRecord {
        /// Path of the incomplete record's directory, which is to be removed.
        path: String,
    },
}

/// Part of a libvirt domain that can be pinned to CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DomainPin {
    /// Thread of the libvirt domain's virtual CPU with this number.
    Vcpu(u32),
    /// All threads of the libvirt domain except the threads of virtual CPUs and the I/O threads.
    Emulator,
    /// I/O thread of the libvirt domain with this number.
    Iothread(u32),
}

impl fmt::Display for DomainPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DomainPin::Vcpu(number) => write!(f, "vCPU {number}"),
            DomainPin::Emulator => f.write_str("the emulator"),
            DomainPin::Iothread(number) => write!(f, "iothread {number}"),
        }
    }
}

impl Undo {
    /// True if the changed object still exists after this host was rebooted.
    pub fn outlasts_boot(&self) -> bool {
        matches!(self, Undo::DeletePod { .. } | Undo::RemoveContainer { .. } | Undo::RemoveDirectory { .. })
    }
}
