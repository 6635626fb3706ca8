//! The threads that a guest is on this host: given their policy and CPUs, and read back.

use crate::error::GuestError;
use std::collections::BTreeMap;
use std::io;
use tailbound_host::scheduling::{apply, read_back};
use tailbound_model::{RoleScheduling, VmSpec};

/// A thread of this host that a guest is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideThread {
    /// `vCPU 0`, `vhost`, or the name that QEMU gave it.
    pub name: String,
    /// Its id.
    pub tid: i32,
    /// What was asked for it.
    pub asked: RoleScheduling,
    /// What it has.
    pub seen: RoleScheduling,
}

/// Gives the threads of a machine what its spec asks for.
///
/// # Errors
/// The kernel refuses it: for which thread, and why.
pub(super) fn govern(spec: &VmSpec, pid: i32, vcpus: &BTreeMap<i32, usize>) -> Result<Vec<OutsideThread>, GuestError> {
    let all = tasks(pid).map_err(|e| GuestError::new(format!("{}: its threads cannot be read: {e}", spec.name), ""))?;
    let mut threads = Vec::new();
    for (tid, name) in all {
        let (name, asked) = match vcpus.get(&tid) {
            Some(number) => (format!("vCPU {number}"), of_vcpu(spec, *number)),
            None if name.starts_with("vhost-") => ("vhost".into(), spec.vhost.clone().unwrap_or_default()),
            None => (name, spec.emulator.clone()),
        };
        let failed = |e: String| GuestError::new(format!("guest {}: {name} (thread {tid}): {e}", spec.name), "");
        apply(tid, &asked).map_err(|e| failed(e.to_string()))?;
        let (policy, cpus) = read_back(tid).map_err(|e| failed(e.to_string()))?;
        let seen = RoleScheduling { policy: Some(policy), cpus: Some(cpus) };
        threads.push(OutsideThread { name, tid, asked, seen });
    }
    threads.sort_by_key(|t| (t.vcpu(), t.tid));
    Ok(threads)
}

impl OutsideThread {
    /// Virtual CPUs first, in their order.
    fn vcpu(&self) -> usize {
        self.name.strip_prefix("vCPU ").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX)
    }
}

fn of_vcpu(spec: &VmSpec, number: usize) -> RoleScheduling {
    spec.vcpu_threads.get(number).or(spec.vcpu_threads.last()).cloned().unwrap_or_default()
}

/// Threads of a process with their names, and those that the kernel has for its vhost devices: until Linux 6.4 they are
/// processes of their own.
fn tasks(pid: i32) -> io::Result<Vec<(i32, String)>> {
    let named = |path: std::path::PathBuf| {
        let tid = path.file_name()?.to_str()?.parse().ok()?;
        Some((tid, std::fs::read_to_string(path.join("comm")).ok()?.trim().to_owned()))
    };
    let list = |at: String| -> io::Result<Vec<(i32, String)>> {
        Ok(std::fs::read_dir(at)?.flatten().filter_map(|e| named(e.path())).collect())
    };
    let mut own = list(format!("/proc/{pid}/task"))?;
    let worker = format!("vhost-{pid}");
    own.extend(list("/proc".into())?.into_iter().filter(|(tid, name)| *name == worker && *tid != pid));
    Ok(own)
}
