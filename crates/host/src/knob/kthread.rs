//! Knob for the policy and the CPUs of kernel threads.

use super::error::KnobError;
use super::setting::Setting;
use crate::process::{Stat, effective_capabilities};
use crate::scheduling::{self, as_asked};
use std::fs;
use std::io;
use tailbound_abi::name_matches;
use tailbound_model::{ProcessId, RoleScheduling, Undo};

/// Flag in /proc/PID/stat that marks kernel threads (PF_KTHREAD of linux/sched.h).
const KTHREAD: u64 = 0x0020_0000;
/// Flag in /proc/PID/stat that marks threads whose CPUs cannot be changed (PF_NO_SETAFFINITY of linux/sched.h).
const NO_SETAFFINITY: u64 = 0x0400_0000;
const CAP_SYS_NICE: u64 = 1 << 23;

/// Host setting: scheduling policy and CPUs of one kernel thread.
#[derive(Debug)]
struct ThreadSetting {
    thread: ProcessId,
    name: String,
    /// Whether the kernel refuses to change the CPUs of the kernel thread.
    tied: bool,
    wanted: RoleScheduling,
}

/// Finds all kernel threads whose names match the pattern, sorted by thread id.
pub(super) fn find(pattern: &str, wanted: &RoleScheduling, key: &str) -> Result<Vec<Box<dyn Setting>>, KnobError> {
    let processes = fs::read_dir("/proc").into_iter().flatten();
    let mut pids: Vec<i32> = processes.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    let one = |pid: i32| -> Option<Box<dyn Setting>> {
        let stat = Stat::read(&format!("/proc/{pid}/stat")).ok()?;
        let flags = stat.field(9).filter(|flags| flags & KTHREAD != 0)?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end_matches('\n').to_owned();
        let thread = ProcessId { pid, start_ticks: stat.start_ticks()? };
        let tied = flags & NO_SETAFFINITY != 0;
        name_matches(pattern, &name)
            .then(|| Box::new(ThreadSetting { thread, name, tied, wanted: wanted.clone() }) as _)
    };
    let found: Vec<_> = pids.into_iter().filter_map(one).collect();
    if found.is_empty() {
        let why = "no kernel thread has the requested name (interrupts have threads only with PREEMPT_RT or \
                   threadirqs)";
        return Err(KnobError::Absent { key: key.into(), what: format!("a thread `{pattern}`"), why: why.into() });
    }
    Ok(found)
}

impl Setting for ThreadSetting {
    fn what(&self) -> String {
        format!("thread {} ({})", self.thread.pid, self.name)
    }

    fn read(&self) -> io::Result<String> {
        as_asked(self.thread.pid, &self.wanted).map(|found| found.to_string())
    }

    fn write(&mut self, _value: &str) -> io::Result<()> {
        scheduling::apply(self.thread.pid, &self.wanted).map_err(io::Error::other)
    }

    fn may_write(&self) -> io::Result<()> {
        if self.tied && self.wanted.cpus.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel does not allow a change of this thread's CPUs",
            ));
        }
        if effective_capabilities()? & CAP_SYS_NICE == 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "CAP_SYS_NICE is missing"));
        }
        Ok(())
    }

    fn undo(&self, before: &str, set: &str) -> Undo {
        let parsed = |text: &str| text.parse().unwrap_or_else(|_| self.wanted.clone());
        Undo::RestoreThread { thread: self.thread, name: self.name.clone(), before: parsed(before), set: parsed(set) }
    }

    fn spelled(&self, value: &str) -> String {
        value.to_owned()
    }
}
