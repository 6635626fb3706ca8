//! The control group of a container, as seen on this host.

use crate::process::group_dir;
use std::fs;
use std::io;
use std::path::PathBuf;
use tailbound_model::CpuList;

/// Directories of the control groups that limit the CPUs and the memory of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    cpuset: Option<PathBuf>,
    memory: Option<PathBuf>,
}

/// Finds the control groups that limit the CPUs and the memory of a process.
///
/// # Errors
/// The process has ended.
pub fn group_of(pid: i32) -> io::Result<Group> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    Ok(Group { cpuset: group_dir(&text, "cpuset"), memory: group_dir(&text, "memory") })
}

impl Group {
    /// CPUs that the container's control group may use; `None` if the CPUs cannot be read.
    pub fn cpus(&self) -> Option<CpuList> {
        // In version 2 `cpuset.cpus` contains the requested CPUs and can be empty; the effective CPUs are in another
        // file.
        let read = |name: &str| fs::read_to_string(self.cpuset.as_ref()?.join(name)).ok()?.trim().parse().ok();
        read("cpuset.cpus.effective").or_else(|| read("cpuset.effective_cpus")).or_else(|| read("cpuset.cpus"))
    }

    /// Sets the CPUs that the control group may use.
    ///
    /// # Errors
    /// The kernel refuses the CPUs.
    pub fn give_cpus(&self, cpus: &CpuList) -> io::Result<()> {
        let dir =
            self.cpuset.as_ref().ok_or_else(|| io::Error::other("the container has no control group for CPUs"))?;
        fs::write(dir.join("cpuset.cpus"), cpus.to_string())
    }

    /// Memory limit of the control group in bytes; `None` if there is no limit or the limit cannot be read.
    pub fn memory(&self) -> Option<u64> {
        let dir = self.memory.as_ref()?;
        let read = |name: &str| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<u64>().ok();
        // Version 1 shows a number larger than all memory if there is no limit.
        read("memory.max").or_else(|| read("memory.limit_in_bytes")).filter(|bytes| *bytes < 1 << 60)
    }
}
