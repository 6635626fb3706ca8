//! The threads on this host that run a guest: sets their policy and CPUs, and reads them back.

use crate::error::guest_error;
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_host::process::hypervisor_threads;
use tailbound_host::scheduling::{apply, read_back};
use tailbound_model::{Problem, RoleScheduling, VmSpec};

/// Name of the kernel thread that carries packets between a guest and the host.
const VHOST: &str = "vhost";

/// A thread on this host that runs a part of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideThread {
    /// Name of the thread: `vCPU 0`, `vhost`, or the name given by QEMU.
    pub name: String,
    /// Id of the QEMU thread on this host.
    pub tid: i32,
    /// Scheduling policy and CPUs that the study requests for the QEMU thread.
    pub asked: RoleScheduling,
    /// Scheduling policy and CPUs of the QEMU thread, read back from the kernel.
    pub seen: RoleScheduling,
}

/// Sets the scheduling of all threads of a machine as its specification requests, and reads it back.
///
/// # Errors
/// The kernel refuses a setting, or a thread is missing.
pub(super) fn set_scheduling(
    spec: &VmSpec,
    pid: i32,
    vcpus: &BTreeMap<i32, usize>,
) -> Result<Vec<OutsideThread>, Problem> {
    let all = hypervisor_threads(pid)
        .map_err(|e| guest_error(format!("guest {}: the threads of QEMU cannot be read: {e}", spec.name), ""))?;
    let mut threads = Vec::new();
    for (tid, name) in all {
        let (name, asked) = match vcpus.get(&tid) {
            Some(number) => (format!("vCPU {number}"), of_vcpu(spec, *number)),
            None if name.starts_with("vhost-") => (VHOST.into(), spec.vhost.clone().unwrap_or_default()),
            None => (name, spec.emulator.clone()),
        };
        let failed = |e: String| guest_error(format!("guest {}: {name} (thread {tid}): {e}", spec.name), "");
        apply(tid, &asked).map_err(|e| failed(e.to_string()))?;
        let (policy, cpus) = read_back(tid).map_err(|e| failed(e.to_string()))?;
        let seen = RoleScheduling { policy: Some(policy), cpus: Some(cpus) };
        threads.push(OutsideThread { name, tid, asked, seen });
    }
    // vCPUs come first, in the order of their numbers.
    threads.sort_by_key(|t| (t.vcpu().unwrap_or(usize::MAX), t.tid));
    match missing(spec, &threads) {
        Some(what) => Err(guest_error(format!("guest {}: {what}", spec.name), "")),
        None => Ok(threads),
    }
}

/// Sentence about a thread that does not exist although the specification of the guest gives it a scheduling; `None` if
/// all such threads exist.
fn missing(spec: &VmSpec, threads: &[OutsideThread]) -> Option<String> {
    let is_there = |name: &str| threads.iter().any(|t| t.name == name);
    let vcpus = (0..spec.vcpus).map(|number| format!("vCPU {number}"));
    if let Some(name) = vcpus.into_iter().find(|name| !is_there(name)) {
        return Some(format!("QEMU has no thread for {name}, so its policy and CPUs cannot be set"));
    }
    let vhost = spec.vhost.as_ref().filter(|asked| **asked != RoleScheduling::default() && !is_there(VHOST))?;
    Some(format!("the kernel has no vhost-net thread for which {vhost} could be set"))
}

/// Sentences about threads of a process whose scheduling now differs from the request.
pub(super) fn differing(pid: i32, threads: &[OutsideThread]) -> Vec<String> {
    threads.iter().filter(|t| t.asked != RoleScheduling::default()).filter_map(|t| t.differs(pid)).collect()
}

impl OutsideThread {
    fn differs(&self, pid: i32) -> Option<String> {
        let OutsideThread { name, tid, asked, .. } = self;
        // QEMU starts and ends worker threads, and their ids are used again.
        let comes_and_goes = self.vcpu().is_none() && name != VHOST;
        if comes_and_goes && !Path::new(&format!("/proc/{pid}/task/{tid}")).exists() {
            return None;
        }
        let (policy, cpus) = match read_back(*tid) {
            Ok(has) => has,
            Err(e) => return Some(format!("{name} (thread {tid}) cannot be read back: {e}; requested was {asked}")),
        };
        let same =
            asked.policy.is_none_or(|asked| asked == policy) && asked.cpus.as_ref().is_none_or(|asked| *asked == cpus);
        let has = RoleScheduling { policy: Some(policy), cpus: Some(cpus) };
        (!same).then(|| format!("{name} has {has}; requested was {asked}"))
    }

    /// Number of the vCPU that this thread runs; `None` for other threads.
    pub fn vcpu(&self) -> Option<usize> {
        self.name.strip_prefix("vCPU ")?.parse().ok()
    }
}

fn of_vcpu(spec: &VmSpec, number: usize) -> RoleScheduling {
    spec.vcpu_threads.get(number).or(spec.vcpu_threads.last()).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use tailbound_host::scheduling::{allowed_cpus, set_policy};
    use tailbound_model::{CpuList, Policy};

    /// A process with one thread, which a test uses in place of a machine with one vCPU.
    struct Process(Child);

    impl Process {
        fn set_scheduling(&self, spec: &VmSpec) -> Result<Vec<OutsideThread>, Problem> {
            let pid = self.0.id() as i32;
            set_scheduling(spec, pid, &BTreeMap::from([(pid, 0)]))
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_missing_thread_and_a_changed_scheduling_are_reported() {
        let process = Process(Command::new("sleep").arg("1000").spawn().unwrap());
        let pid = process.0.id() as i32;
        let cpu = allowed_cpus()[0];
        let asked = RoleScheduling { policy: Some(Policy::Batch { nice: 3 }), cpus: Some(CpuList::one(cpu)) };
        let one = VmSpec { name: "ping".into(), vcpus: 1, vcpu_threads: vec![asked.clone()], ..VmSpec::default() };
        let threads = process.set_scheduling(&one).unwrap();
        assert_eq!((threads.len(), &threads[0].seen), (1, &asked));
        assert_eq!(differing(pid, &threads), Vec::<String>::new());
        set_policy(pid, &Policy::Idle, false).unwrap();
        let changed = differing(pid, &threads);
        assert_eq!(changed, [format!("vCPU 0 has idle, CPU {cpu}; requested was batch nice 3, CPU {cpu}")]);

        let refused = |spec: VmSpec| process.set_scheduling(&spec).unwrap_err().to_string();
        assert_eq!(
            refused(VmSpec { vcpus: 2, vcpu_threads: Vec::new(), ..one.clone() }),
            "guest ping: QEMU has no thread for vCPU 1, so its policy and CPUs cannot be set"
        );
        let vhost = RoleScheduling { policy: None, cpus: Some(CpuList::one(1)) };
        assert_eq!(
            refused(VmSpec { vcpu_threads: Vec::new(), vhost: Some(vhost), ..one }),
            "guest ping: the kernel has no vhost-net thread for which CPU 1 could be set"
        );

        let tid = i32::MAX;
        let gone = |name: &str| vec![OutsideThread { name: name.into(), tid, ..threads[0].clone() }];
        assert!(differing(pid, &gone("vCPU 0"))[0].starts_with("vCPU 0 (thread 2147483647) cannot be read back: "));
        assert_eq!(differing(pid, &gone("worker")), Vec::<String>::new());
    }
}
