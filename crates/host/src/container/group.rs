//! The control group of a container, as this host sees it.

use crate::process::group_dir;
use std::fs;
use std::io;
use std::path::PathBuf;
use tailbound_model::CpuList;

/// CPUs and memory that a control group allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    cpuset: Option<PathBuf>,
    memory: Option<PathBuf>,
}

/// The control group of a process.
///
/// # Errors
/// The process is gone.
pub fn group_of(pid: i32) -> io::Result<Group> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    Ok(Group { cpuset: group_dir(&text, "cpuset"), memory: group_dir(&text, "memory") })
}

impl Group {
    /// CPUs; `None` where they cannot be read.
    pub fn cpus(&self) -> Option<CpuList> {
        // Version 2 has what was asked in `cpuset.cpus`, which may be empty, and what holds beside it.
        let read = |name: &str| fs::read_to_string(self.cpuset.as_ref()?.join(name)).ok()?.trim().parse().ok();
        read("cpuset.cpus.effective").or_else(|| read("cpuset.effective_cpus")).or_else(|| read("cpuset.cpus"))
    }

    /// Gives it CPUs.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn give_cpus(&self, cpus: &CpuList) -> io::Result<()> {
        let dir = self.cpuset.as_ref().ok_or_else(|| io::Error::other("it has no control group for CPUs"))?;
        fs::write(dir.join("cpuset.cpus"), cpus.to_string())
    }

    /// Octets of memory; `None` = without a limit, or it cannot be read.
    pub fn memory(&self) -> Option<u64> {
        let dir = self.memory.as_ref()?;
        let read = |name: &str| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<u64>().ok();
        // Version 1 writes a number beyond all memory for no limit.
        read("memory.max").or_else(|| read("memory.limit_in_bytes")).filter(|octets| *octets < 1 << 60)
    }
}
