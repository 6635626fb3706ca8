//! Scheduling of the threads of a libvirt domain: sets it, reads it back, and reports later differences.

use super::domain::Domain;
use super::error::DomainError;
use super::threads::DomainThreads;
use crate::journal::{EntryId, Journal};
use crate::process::{group_dir, process_id};
use crate::scheduling::{self, ApplyError, as_asked};
use std::fs;
use tailbound_model::{CpuList, DomainPin, Policy, RoleScheduling, Undo};

/// A thread of a libvirt domain with its requested scheduling.
struct Wanted<'a> {
    tid: i32,
    /// Name of the thread for the user, such as `vCPU 0` or `emulator qemu-system-x86`.
    what: String,
    asked: &'a RoleScheduling,
}

impl Domain {
    /// Sets CPUs and policies of all threads of the libvirt domain and reads them back. `vcpu_threads` contains one
    /// entry for each vCPU in the order of the vCPUs; the last entry applies to all remaining vCPUs, and an empty list
    /// changes no vCPU. Each undo is written to the journal before its change. Returns the journal entries in the order
    /// of the changes.
    ///
    /// # Errors
    /// A change was refused, or the value read back differs from the request. Earlier changes stay until their entries
    /// are undone.
    pub fn apply(
        &self,
        vcpu_threads: &[RoleScheduling],
        emulator: &RoleScheduling,
        journal: &Journal,
    ) -> Result<Vec<EntryId>, DomainError> {
        let threads = self.threads()?;
        let (has, asked) = (threads.vcpus.len(), vcpu_threads.len());
        if asked > has {
            return Err(DomainError::TooManyVcpus { domain: self.name.clone(), has, asked });
        }
        let mut entries = Vec::new();
        for number in 0..has {
            if let Some(cpus) = of_vcpu(vcpu_threads, number).and_then(|a| a.cpus.as_ref()) {
                entries.extend(self.pin(DomainPin::Vcpu(number as u32), cpus, &threads, journal)?);
            }
        }
        if let Some(cpus) = &emulator.cpus {
            entries.extend(self.pin(DomainPin::Emulator, cpus, &threads, journal)?);
            for number in self.virsh.iothreads(&self.uuid)? {
                entries.extend(self.pin(DomainPin::Iothread(number), cpus, &threads, journal)?);
            }
        }
        for wanted in wanted(&threads, vcpu_threads, emulator) {
            if let Some(policy) = wanted.asked.policy {
                entries.extend(self.set_policy(&wanted, policy, journal)?);
            }
        }
        match self.verify(vcpu_threads, emulator)?.into_iter().next() {
            None => Ok(entries),
            Some((what, asked, found)) => Err(DomainError::Differs { domain: self.name.clone(), what, asked, found }),
        }
    }

    /// Compares the scheduling of all threads of the libvirt domain with the request. Returns for each difference: name
    /// of the thread, requested scheduling, scheduling read back.
    ///
    /// # Errors
    /// The libvirt domain does not run any more.
    pub fn verify(
        &self,
        vcpu_threads: &[RoleScheduling],
        emulator: &RoleScheduling,
    ) -> Result<Vec<(String, String, String)>, DomainError> {
        let threads = self.threads()?;
        let differs = |w: Wanted<'_>| match as_asked(w.tid, w.asked) {
            Ok(found) if found == *w.asked => None,
            // QEMU starts and ends threads all the time, so a thread that has ended is not a difference.
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => None,
            Ok(found) => Some((w.named(), w.asked.to_string(), found.to_string())),
            Err(e) => Some((w.named(), w.asked.to_string(), e.to_string())),
        };
        Ok(wanted(&threads, vcpu_threads, emulator).filter_map(differs).collect())
    }

    fn pin(
        &self,
        what: DomainPin,
        cpus: &CpuList,
        threads: &DomainThreads,
        journal: &Journal,
    ) -> Result<Option<EntryId>, DomainError> {
        let read = || {
            let found = self.virsh.pinned(&self.uuid, what)?;
            found.ok_or_else(|| self.unread(&format!("the pin of {what}"), "virsh does not list this pin"))
        };
        let before = read()?;
        if before == *cpus {
            return Ok(None);
        }
        let entry = journal.before(Undo::RestoreDomainPin {
            connect: self.virsh.connect().map(str::to_owned),
            name: self.name.clone(),
            uuid: self.uuid.clone(),
            process: threads.process,
            pin: what,
            before: before.clone(),
            set: cpus.clone(),
        })?;
        if let Err(error) = self.virsh.pin(&self.uuid, what, cpus) {
            if read().is_ok_and(|now| now == before) {
                journal.done(entry)?;
            }
            return Err(error.into());
        }
        let found = read()?;
        if found != *cpus {
            let (asked, found) = (format!("CPU {cpus}"), format!("CPU {found}"));
            let what = format!("the pin of {what}");
            return Err(DomainError::Differs { domain: self.name.clone(), what, asked, found });
        }
        Ok(Some(entry))
    }

    fn set_policy(
        &self,
        wanted: &Wanted<'_>,
        policy: Policy,
        journal: &Journal,
    ) -> Result<Option<EntryId>, DomainError> {
        let tid = wanted.tid;
        let only = |policy| RoleScheduling { policy: Some(policy), cpus: None };
        // A thread that has ended needs no scheduling.
        let (Ok(thread), Ok((before, _))) = (process_id(tid), scheduling::read_back(tid)) else { return Ok(None) };
        if before == policy {
            return Ok(None);
        }
        let name = format!("{} of domain {}", wanted.what, self.name);
        let entry = journal.before(Undo::RestoreThread { thread, name, before: only(before), set: only(policy) })?;
        match scheduling::set_policy(tid, &policy, false) {
            Ok(()) => Ok(Some(entry)),
            Err(error) => {
                journal.done(entry)?;
                match error {
                    ApplyError::Gone { .. } => Ok(None),
                    error => Err(self.refusal(wanted, policy, error)),
                }
            }
        }
    }

    fn refusal(&self, wanted: &Wanted<'_>, policy: Policy, error: ApplyError) -> DomainError {
        let (domain, thread) = (self.name.clone(), wanted.named());
        let privilege = matches!(error, ApplyError::NoPrivilege { capable: true, .. })
            || matches!(error, ApplyError::NoRealTimeRuntime { .. });
        match group_without_runtime(wanted.tid) {
            Some(group) if privilege => DomainError::NoRealTimeRuntime { domain, thread, policy, group },
            _ => DomainError::Thread { domain, thread, error },
        }
    }
}

impl Wanted<'_> {
    fn named(&self) -> String {
        format!("{} (thread {})", self.what, self.tid)
    }
}

fn of_vcpu(vcpu_threads: &[RoleScheduling], number: usize) -> Option<&RoleScheduling> {
    vcpu_threads.get(number).or(vcpu_threads.last())
}

fn wanted<'a>(
    threads: &'a DomainThreads,
    vcpu_threads: &'a [RoleScheduling],
    emulator: &'a RoleScheduling,
) -> impl Iterator<Item = Wanted<'a>> {
    let vcpus = threads.vcpus.iter().enumerate().filter_map(|(number, tid)| {
        let asked = of_vcpu(vcpu_threads, number)?;
        Some(Wanted { tid: *tid, what: format!("vCPU {number}"), asked })
    });
    let other = |(tid, name): &(i32, String)| Wanted { tid: *tid, what: format!("emulator {name}"), asked: emulator };
    vcpus.chain(threads.others.iter().map(other))
}

/// Control group of a thread, if RT_GROUP_SCHED gives this group no real-time runtime; else `None`.
fn group_without_runtime(tid: i32) -> Option<String> {
    let dir = group_dir(&fs::read_to_string(format!("/proc/{tid}/cgroup")).ok()?, "cpu")?;
    let runtime = fs::read_to_string(dir.join("cpu.rt_runtime_us")).ok()?;
    (runtime.trim() == "0").then(|| dir.display().to_string())
}
