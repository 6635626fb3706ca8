//! Errors of reading, pinning and starting libvirt domains (virtual machines).

use crate::journal::JournalError;
use crate::scheduling::ApplyError;
use crate::virsh::VirshError;
use tailbound_model::Policy;

/// Reason why a libvirt domain cannot be used as requested.
#[derive(Debug, thiserror::Error)]
pub enum DomainError {
    /// Error: libvirt has no domain with the requested name.
    #[error(
        "libvirt at {connect} has no domain {name}{}; {}",
        near.as_ref().map(|n| format!(" (did you mean {n}?)")).unwrap_or_default(),
        if all.is_empty() { "there are no domains".to_owned() } else { format!("the domains are {}", all.join(", ")) }
    )]
    NoSuchDomain {
        /// URI of the connection to libvirt.
        connect: String,
        /// Name of the requested libvirt domain.
        name: String,
        /// The most similar name of an existing libvirt domain, if any name is similar.
        near: Option<String>,
        /// Names of all libvirt domains that exist.
        all: Vec<String>,
    },
    /// The libvirt domain does not run, and cannot be started in its present state.
    #[error("domain {domain} is {state}: {remedy}")]
    Unfit {
        /// Name of the libvirt domain.
        domain: String,
        /// State of the libvirt domain and its reason, as printed by virsh.
        state: String,
        /// What the user can do to make the libvirt domain usable.
        remedy: String,
    },
    /// The threads of the libvirt domain are not visible to this process, for example because the libvirt domain runs
    /// on another host.
    #[error(
        "domain {domain} of {connect}: the threads of the domain are not among the processes of this host ({reason}): \
         run Tailbound on the host that runs the domain, outside of containers"
    )]
    Elsewhere {
        /// Name of the libvirt domain.
        domain: String,
        /// URI of the connection to libvirt.
        connect: String,
        /// Sentence about the thread or process of the libvirt domain that was not found.
        reason: String,
    },
    /// The study gives a scheduling to more vCPUs than the libvirt domain has.
    #[error(
        "domain {domain} has {has} vCPUs, but the study gives a scheduling to {asked} vCPUs: remove the entries beyond \
         {has}"
    )]
    TooManyVcpus {
        /// Name of the libvirt domain.
        domain: String,
        /// Number of vCPUs that the libvirt domain has.
        has: usize,
        /// Number of vCPUs for which the study requests a scheduling.
        asked: usize,
    },
    /// The control group that libvirt made for a thread has no real-time runtime (RT_GROUP_SCHED).
    #[error(
        "domain {domain}: {thread}: policy {policy} was refused: libvirt put the thread into the control group {group}, whose \
         cpu.rt_runtime_us is 0 (RT_GROUP_SCHED); leave \"cpu\" out of `cgroup_controllers` in /etc/libvirt/qemu.conf, \
         restart libvirtd, and shut the domain off and start it again"
    )]
    NoRealTimeRuntime {
        /// Name of the libvirt domain.
        domain: String,
        /// Name and id of the thread whose policy was refused.
        thread: String,
        /// Scheduling policy that was requested for the thread of the libvirt domain.
        policy: Policy,
        /// Directory of the control group of the libvirt domain's thread.
        group: String,
    },
    /// Error: the kernel refused the requested scheduling of a thread of the libvirt domain.
    #[error("domain {domain}: {thread}: {error}")]
    Thread {
        /// Name of the libvirt domain.
        domain: String,
        /// Name and id of the thread whose scheduling was refused.
        thread: String,
        /// Reason why the kernel refused the scheduling of the thread.
        error: ApplyError,
    },
    /// Error: the CPUs or the scheduling policy read back from the libvirt domain differ from the request.
    #[error("domain {domain}: {what} was set to `{asked}`, and is `{found}` when read back")]
    Differs {
        /// Name of the libvirt domain.
        domain: String,
        /// Name of the pin, e.g. `the pin of vCPU 0`, or of the thread whose value differs.
        what: String,
        /// CPUs or scheduling policy that were requested for the libvirt domain.
        asked: String,
        /// CPUs or scheduling policy that were read back.
        found: String,
    },
    /// Error: the output of virsh about the libvirt domain could not be parsed.
    #[error("domain {domain}: {what} cannot be read: {reason}")]
    Unread {
        /// Name of the libvirt domain.
        domain: String,
        /// Name of the value for which libvirt was asked, for example a pin.
        what: String,
        /// Reason why the output of virsh could not be parsed.
        reason: String,
    },
    /// Error: a command of virsh failed.
    #[error(transparent)]
    Virsh(#[from] VirshError),
    /// Error: the journal could not be written, so the libvirt domain was not changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_name_what_where_and_what_to_do() {
        let (domain, connect) = (|| "rt1".to_owned(), || "qemu:///system".to_owned());
        let texts = [
            DomainError::from(VirshError::NoClient),
            VirshError::NotReachable { connect: connect(), reason: "Failed to connect socket".into() }.into(),
            DomainError::NoSuchDomain {
                connect: connect(),
                name: "rt2".into(),
                near: Some(domain()),
                all: vec![domain(), "web".into()],
            },
            DomainError::NoSuchDomain { connect: connect(), name: "rt2".into(), near: None, all: Vec::new() },
            DomainError::NoRealTimeRuntime {
                domain: domain(),
                thread: "vCPU 0 (thread 71)".into(),
                policy: Policy::Fifo { priority: 1 },
                group: "/sys/fs/cgroup/cpu/machine/vcpu0".into(),
            },
            DomainError::Differs {
                domain: domain(),
                what: "the pin of vCPU 0".into(),
                asked: "CPU 1".into(),
                found: "CPU 0-1".into(),
            },
            DomainError::TooManyVcpus { domain: domain(), has: 2, asked: 3 },
        ]
        .map(|e| e.to_string())
        .join("\n");
        assert_eq!(
            texts,
            "this host has no program `virsh`: install it (Debian: package libvirt-clients)\n\
             libvirt does not answer at qemu:///system (Failed to connect socket): start its daemon (libvirtd, or \
             virtqemud), or give the URI of the running daemon, such as qemu:///system\n\
             libvirt at qemu:///system has no domain rt2 (did you mean rt1?); the domains are rt1, web\n\
             libvirt at qemu:///system has no domain rt2; there are no domains\n\
             domain rt1: vCPU 0 (thread 71): policy fifo 1 was refused: libvirt put the thread into the control group \
             /sys/fs/cgroup/cpu/machine/vcpu0, whose cpu.rt_runtime_us is 0 (RT_GROUP_SCHED); leave \"cpu\" out of \
             `cgroup_controllers` in /etc/libvirt/qemu.conf, restart libvirtd, and shut the domain off and start it again\n\
             domain rt1: the pin of vCPU 0 was set to `CPU 1`, and is `CPU 0-1` when read back\n\
             domain rt1 has 2 vCPUs, but the study gives a scheduling to 3 vCPUs: remove the entries beyond 2"
        );
    }
}
