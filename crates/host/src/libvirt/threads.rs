//! The QEMU process and the threads of a libvirt domain.

use super::domain::Domain;
use super::error::DomainError;
use crate::virsh::is_qemu_of;
use crate::{process, scheduling};
use serde_json::Value;
use std::fs;
use tailbound_model::{GuestThread, ProcessId};

/// Begin of the names of the kernel's threads that carry packets of a guest.
const VHOST: &str = "vhost-";

/// The process and the threads of a libvirt domain that runs on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainThreads {
    /// The QEMU process of the libvirt domain.
    pub process: ProcessId,
    /// Thread ids of the libvirt domain's vCPUs, in the order of the vCPUs.
    pub vcpus: Vec<i32>,
    /// Ids of the kernel's threads for the libvirt domain's vhost devices, sorted.
    pub vhost: Vec<i32>,
    /// Ids and names of all other threads of the libvirt domain, sorted by id.
    pub others: Vec<(i32, String)>,
}

impl DomainThreads {
    /// The threads in the form of the record, each with the CPUs on which it may run now. Threads that have ended meanwhile are
    /// left out.
    pub fn outside(&self) -> Vec<GuestThread> {
        let vcpus = (0..).zip(&self.vcpus).map(|(n, tid)| (format!("vCPU {n}"), Some(n), *tid));
        let vhost = self.vhost.iter().map(|tid| ("vhost".to_owned(), None, *tid));
        let others = self.others.iter().map(|(tid, name)| (name.clone(), None, *tid));
        let one = |(name, vcpu, tid)| {
            let (_, cpus) = scheduling::read_back(tid).ok()?;
            Some(GuestThread { name, vcpu, tid, cpus: cpus.to_string() })
        };
        vcpus.chain(vhost).chain(others).filter_map(one).collect()
    }
}

impl Domain {
    /// Finds the process and the threads of the libvirt domain. The vCPU threads are read by a command of the QEMU
    /// monitor; libvirt therefore marks the domain with `custom-monitor` in its log.
    ///
    /// # Errors
    /// The libvirt domain does not run, or runs on another host.
    pub fn threads(&self) -> Result<DomainThreads, DomainError> {
        self.must_run()?;
        let question = r#"{"execute":"query-cpus-fast"}"#;
        let answer = self.virsh.ask(&["qemu-monitor-command", &self.uuid, question])?;
        let vcpus = vcpus(&answer).ok_or_else(|| self.unread("the answer of QEMU", &answer))?;
        let elsewhere =
            |reason: String| DomainError::Elsewhere { domain: self.name.clone(), connect: self.virsh.uri(), reason };
        let first = *vcpus.first().ok_or_else(|| self.unread("the list of the domain's vCPUs", &answer))?;
        let status = fs::read_to_string(format!("/proc/{first}/status"));
        let status = status.map_err(|e| elsewhere(format!("thread {first} of vCPU 0 cannot be read: {e}")))?;
        let pid = status.lines().find_map(|l| l.strip_prefix("Tgid:")?.trim().parse().ok());
        let process = pid.and_then(|pid| process::process_id(pid).ok());
        let process = process.ok_or_else(|| elsewhere(format!("thread {first} of vCPU 0 has ended")))?;
        // A thread id of another host can belong to an unrelated process on this host.
        if !is_qemu_of(process.pid, &self.uuid) {
            return Err(elsewhere(format!("process {} is not the domain's QEMU", process.pid)));
        }
        let tasks = process::hypervisor_threads(process.pid).unwrap_or_default();
        let mut others: Vec<(i32, String)> = tasks.into_iter().filter(|(tid, _)| !vcpus.contains(tid)).collect();
        others.sort_unstable();
        let vhost = others.extract_if(.., |(_, name)| name.starts_with(VHOST)).map(|(tid, _)| tid).collect();
        Ok(DomainThreads { process, vcpus, vhost, others })
    }
}

/// Thread ids of the vCPUs in QEMU's answer, sorted by the number of the vCPU.
fn vcpus(answer: &str) -> Option<Vec<i32>> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let one = |cpu: &Value| Some((cpu["cpu-index"].as_u64()?, i32::try_from(cpu["thread-id"].as_i64()?).ok()?));
    let mut all = answer["return"].as_array()?.iter().map(one).collect::<Option<Vec<_>>>()?;
    all.sort_unstable();
    Some(all.into_iter().map(|(_, tid)| tid).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_in_the_order_of_their_vcpus() {
        let answer = r#"{"return":[{"thread-id":58,"cpu-index":1},{"thread-id":57,"cpu-index":0}],"id":"libvirt-4"}"#;
        assert_eq!(vcpus(answer), Some(vec![57, 58]));
        assert_eq!(vcpus(r#"{"error":{"class":"CommandNotFound"}}"#), None);
    }
}
