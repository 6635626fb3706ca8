//! The QEMU process and the threads of a libvirt domain.

use super::domain::Domain;
use super::error::DomainError;
use crate::process;
use crate::virsh::is_qemu_of;
use serde_json::Value;
use std::fs;
use tailbound_model::ProcessId;

/// The process and the threads of a libvirt domain that runs on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainThreads {
    /// The QEMU process of the libvirt domain.
    pub process: ProcessId,
    /// Thread ids of the libvirt domain's vCPUs, in the order of the vCPUs.
    pub vcpus: Vec<i32>,
    /// Ids and names of all other threads of the libvirt domain except vhost threads, sorted by id.
    pub others: Vec<(i32, String)>,
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
        let tasks = fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten().flatten();
        let mut others: Vec<(i32, String)> = tasks
            .filter_map(|entry| {
                let name = fs::read_to_string(entry.path().join("comm")).ok()?.trim_end_matches('\n').to_owned();
                Some((entry.file_name().to_str()?.parse().ok()?, name))
            })
            .filter(|(tid, name): &(i32, String)| !vcpus.contains(tid) && !name.starts_with("vhost-"))
            .collect();
        others.sort_unstable();
        Ok(DomainThreads { process, vcpus, others })
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
