//! The threads that a guest is on this host: given their policy and CPUs, and read back.

use crate::error::GuestError;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tailbound_host::scheduling::{apply, read_back};
use tailbound_model::{RoleScheduling, VmSpec};

/// Name of the thread that carries datagrams in the kernel.
const VHOST: &str = "vhost";

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
            None if name.starts_with("vhost-") => (VHOST.into(), spec.vhost.clone().unwrap_or_default()),
            None => (name, spec.emulator.clone()),
        };
        let failed = |e: String| GuestError::new(format!("guest {}: {name} (thread {tid}): {e}", spec.name), "");
        apply(tid, &asked).map_err(|e| failed(e.to_string()))?;
        let (policy, cpus) = read_back(tid).map_err(|e| failed(e.to_string()))?;
        let seen = RoleScheduling { policy: Some(policy), cpus: Some(cpus) };
        threads.push(OutsideThread { name, tid, asked, seen });
    }
    threads.sort_by_key(|t| (t.vcpu(), t.tid));
    match missing(spec, &threads) {
        Some(what) => Err(GuestError::new(format!("guest {}: {what}", spec.name), "")),
        None => Ok(threads),
    }
}

/// A thread that a spec asks something for, and that is not there.
fn missing(spec: &VmSpec, threads: &[OutsideThread]) -> Option<String> {
    let is_there = |name: &str| threads.iter().any(|t| t.name == name);
    let vcpus = (0..spec.vcpus).map(|number| format!("vCPU {number}"));
    if let Some(name) = vcpus.into_iter().find(|name| !is_there(name)) {
        return Some(format!("QEMU has no thread for {name}, so that it has neither policy nor CPUs"));
    }
    let vhost = spec.vhost.as_ref().filter(|asked| **asked != RoleScheduling::default() && !is_there(VHOST))?;
    Some(format!("the kernel has no thread for its vhost-net that {vhost} could be given to"))
}

/// Sentences about the threads of a process that have other than was asked for them, by now.
pub(super) fn differing(pid: i32, threads: &[OutsideThread]) -> Vec<String> {
    threads.iter().filter(|t| t.asked != RoleScheduling::default()).filter_map(|t| t.differs(pid)).collect()
}

impl OutsideThread {
    fn differs(&self, pid: i32) -> Option<String> {
        let OutsideThread { name, tid, asked, .. } = self;
        // QEMU has threads that come and go, and their ids go to others.
        let comes_and_goes = self.vcpu() == usize::MAX && name != VHOST;
        if comes_and_goes && !Path::new(&format!("/proc/{pid}/task/{tid}")).exists() {
            return None;
        }
        let (policy, cpus) = match read_back(*tid) {
            Ok(has) => has,
            Err(e) => return Some(format!("{name} (thread {tid}) cannot be read back: {e}; asked was {asked}")),
        };
        let same =
            asked.policy.is_none_or(|asked| asked == policy) && asked.cpus.as_ref().is_none_or(|asked| *asked == cpus);
        let has = RoleScheduling { policy: Some(policy), cpus: Some(cpus) };
        (!same).then(|| format!("{name} has {has}; asked was {asked}"))
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use tailbound_host::scheduling::{allowed_cpus, set_policy};
    use tailbound_model::{CpuList, Policy};

    /// A process of one thread, which stands for a machine with one virtual CPU.
    struct Process(Child);

    impl Process {
        fn govern(&self, spec: &VmSpec) -> Result<Vec<OutsideThread>, GuestError> {
            let pid = self.0.id() as i32;
            govern(spec, pid, &BTreeMap::from([(pid, 0)]))
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_thread_that_is_not_there_or_has_other_by_now_is_told() {
        let process = Process(Command::new("sleep").arg("1000").spawn().unwrap());
        let pid = process.0.id() as i32;
        let cpu = allowed_cpus()[0];
        let asked = RoleScheduling { policy: Some(Policy::Batch { nice: 3 }), cpus: Some(CpuList::one(cpu)) };
        let one = VmSpec { name: "ping".into(), vcpus: 1, vcpu_threads: vec![asked.clone()], ..VmSpec::default() };
        let threads = process.govern(&one).unwrap();
        assert_eq!((threads.len(), &threads[0].seen), (1, &asked));
        assert_eq!(differing(pid, &threads), Vec::<String>::new());
        set_policy(pid, &Policy::Idle, false).unwrap();
        let told = differing(pid, &threads);
        assert_eq!(told, [format!("vCPU 0 has idle, CPU {cpu}; asked was batch nice 3, CPU {cpu}")]);

        let told = |spec: VmSpec| process.govern(&spec).unwrap_err().to_string();
        assert_eq!(
            told(VmSpec { vcpus: 2, vcpu_threads: Vec::new(), ..one.clone() }),
            "guest ping: QEMU has no thread for vCPU 1, so that it has neither policy nor CPUs"
        );
        let vhost = RoleScheduling { policy: None, cpus: Some(CpuList::one(1)) };
        assert_eq!(
            told(VmSpec { vcpu_threads: Vec::new(), vhost: Some(vhost), ..one }),
            "guest ping: the kernel has no thread for its vhost-net that CPU 1 could be given to"
        );

        let tid = i32::MAX;
        let gone = |name: &str| vec![OutsideThread { name: name.into(), tid, ..threads[0].clone() }];
        assert!(differing(pid, &gone("vCPU 0"))[0].starts_with("vCPU 0 (thread 2147483647) cannot be read back: "));
        assert_eq!(differing(pid, &gone("worker")), Vec::<String>::new());
    }
}
