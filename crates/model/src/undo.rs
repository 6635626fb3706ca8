//! What must be undone, as data.

use crate::{ContainerAccess, CpuList, NicSetting, PodSpec, RoleScheduling};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A process that cannot be mistaken for another: id and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Process id.
    pub pid: i32,
    /// Start time in clock ticks since boot (field 22 of /proc/PID/stat).
    pub start_ticks: u64,
}

/// A network namespace that cannot be mistaken for another while it exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetnsId {
    /// Inode.
    pub inode: u64,
    /// A path that leads to it, for one that exists without processes; empty = none.
    #[serde(default)]
    pub path: String,
}

/// The variable that names the run in the environment of everything that an agent starts.
pub const RUN_TOKEN: &str = "TAILBOUND_RUN_TOKEN";

/// One line of the journal, written before the deed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Number within the journal.
    pub number: u64,
    /// What must be done to undo it.
    pub undo: Undo,
}

/// How one change is undone. Identity is part of it: a thing that changed hands is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// End this process: SIGTERM, then SIGKILL.
    EndProcess {
        /// Whom.
        process: ProcessId,
        /// Its role, for people.
        what: String,
        /// What it started and left behind is found by this value of [`RUN_TOKEN`] in its environment.
        #[serde(default)]
        token: String,
    },
    /// About to start a process whose id is not yet known; found by its argument `--run-token`.
    EndProcessByToken {
        /// Value of `--run-token`.
        token: String,
    },
    /// Remove an interface.
    DeleteInterface {
        /// Name given.
        name: String,
        /// Index, once known.
        ifindex: Option<u32>,
        /// Inode of the network namespace it lies in.
        netns_inode: u64,
    },
    /// An unnamed network namespace lives as long as its processes: nothing to do beyond ending them. Kept so that
    /// `lab list` shows it.
    UnnamedNetns {
        /// Inode.
        inode: u64,
        /// For people.
        what: String,
    },
    /// Write a host setting back.
    RestoreSetting {
        /// File.
        path: String,
        /// Value found before.
        before: String,
        /// Value that was set: another value there now means that somebody else changed it since.
        set: String,
        /// The namespace through which the file shows what was changed; `None` = of the cleaning process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        netns: Option<NetnsId>,
    },
    /// A bound on the wake-up of idle CPUs lives as long as its descriptor, so it ends with the process: nothing to do
    /// beyond that. Kept so that `lab list` shows it.
    HeldCpuLatency {
        /// Bound in us.
        us: u32,
    },
    /// Give a thread of the kernel its scheduling back.
    RestoreThread {
        /// Which, by its thread id and start time.
        thread: ProcessId,
        /// Its name, for people.
        name: String,
        /// What it had before, as far as it was changed.
        before: RoleScheduling,
        /// What it was given: something else now means that somebody else changed it since.
        set: RoleScheduling,
    },
    /// Give a network interface its setting back.
    RestoreInterface {
        /// Name.
        interface: String,
        /// Index: an interface with that name and another index is another one.
        ifindex: u32,
        /// The namespace it lies in; `None` = that of the cleaning process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        netns: Option<NetnsId>,
        /// Which setting.
        setting: NicSetting,
        /// Value found before.
        before: u32,
        /// Value that was set.
        set: u32,
    },
    /// Delete a pod from its cluster.
    DeletePod {
        /// How the cluster is reached; the rest of it does not matter.
        cluster: Box<PodSpec>,
        /// A label of it and of nothing else.
        token: String,
    },
    /// Delete a service from its cluster, and what serves it.
    DeleteService {
        /// How the cluster is reached; the rest of it does not matter.
        cluster: Box<PodSpec>,
        /// A label of it and of nothing else.
        token: String,
    },
    /// Remove a container of this host.
    RemoveContainer {
        /// How it is spoken with.
        access: ContainerAccess,
        /// A label of it and of nothing else.
        token: String,
    },
    /// Remove a directory made by this run for what lives as long as it: sockets, a database.
    RemoveDirectory {
        /// Path.
        path: String,
        /// Inode, once known; until then it is removed only when it is empty.
        inode: Option<u64>,
    },
    /// Pin a part of a domain of libvirt to the CPUs that it had.
    RestoreDomainPin {
        /// How libvirt is reached; `None` = as virsh has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        connect: Option<String>,
        /// Its name, for people.
        name: String,
        /// What it is known by.
        uuid: String,
        /// Its process: a pin lasts no longer.
        process: ProcessId,
        /// Which part.
        pin: DomainPin,
        /// CPUs found before.
        before: CpuList,
        /// CPUs given: others now mean that somebody else changed them since.
        set: CpuList,
    },
    /// Shut a domain of libvirt off that was started.
    StopDomain {
        /// How libvirt is reached; `None` = as virsh has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        connect: Option<String>,
        /// Its name, for people.
        name: String,
        /// What it is known by.
        uuid: String,
        /// Its process, once known.
        process: Option<ProcessId>,
        /// Monotonic time at which it was to be started.
        asked_ns: i64,
        /// How long it may take to shut down before it is ended.
        patience_ms: u64,
    },
    /// Remove a directory made by this run, if it holds no finished record.
    RemovePartialRecord {
        /// Path.
        path: String,
    },
}

/// What can be pinned of a domain of libvirt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DomainPin {
    /// A virtual CPU.
    Vcpu(u32),
    /// All threads that are neither vCPUs nor threads for input and output.
    Emulator,
    /// A thread for input and output.
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
    /// What it takes back is still there after this host was started anew.
    pub fn outlasts_boot(&self) -> bool {
        matches!(self, Undo::DeletePod { .. } | Undo::RemoveContainer { .. } | Undo::RemoveDirectory { .. })
    }
}
