//! What can be wrong with a domain.

use crate::ApplyError;
use crate::journal::JournalError;
use tailbound_model::Policy;

/// A domain that cannot be used as it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DomainError {
    /// virsh is not installed.
    #[error("there is no program `virsh` here: install it (Debian: package libvirt-clients)")]
    NoClient,
    /// libvirt does not answer.
    #[error(
        "libvirt does not answer at {connect} ({reason}): start its daemon (libvirtd, or virtqemud), or name where it \
         answers, such as qemu:///system"
    )]
    NotReachable {
        /// Where it was sought.
        connect: String,
        /// In the words of virsh.
        reason: String,
    },
    /// It has no such domain.
    #[error(
        "libvirt at {connect} has no domain {name}{}; {}",
        near.as_ref().map(|n| format!(" (did you mean {n}?)")).unwrap_or_default(),
        if all.is_empty() { "it has none".to_owned() } else { format!("it has {}", all.join(", ")) }
    )]
    NoSuchDomain {
        /// Where it was sought.
        connect: String,
        /// What was asked for.
        name: String,
        /// What it is most like.
        near: Option<String>,
        /// What there is.
        all: Vec<String>,
    },
    /// It can neither be used nor started as it is.
    #[error("domain {domain} is {state}: {mend}")]
    Unfit {
        /// Its name.
        domain: String,
        /// State and reason, in the words of virsh.
        state: String,
        /// What to do.
        mend: String,
    },
    /// Its threads are not to be seen from here.
    #[error(
        "domain {domain} of {connect}: its threads are not among the processes of this host ({reason}): run on the host \
         that runs it, outside of containers"
    )]
    Elsewhere {
        /// Its name.
        domain: String,
        /// Where libvirt is.
        connect: String,
        /// What was not found.
        reason: String,
    },
    /// More threads were given a scheduling than it has.
    #[error("domain {domain} has {has} vCPUs, and {asked} were given a scheduling: leave out those beyond")]
    TooManyVcpus {
        /// Its name.
        domain: String,
        /// Those it has.
        has: usize,
        /// Those asked for.
        asked: usize,
    },
    /// libvirt refused.
    #[error("`{what}` was refused: {reason}")]
    Refused {
        /// The command.
        what: String,
        /// In the words of virsh.
        reason: String,
    },
    /// RT_GROUP_SCHED leaves the control group that libvirt made for a thread without real-time runtime.
    #[error(
        "domain {domain}: {thread}: policy {policy} was refused: libvirt put it into the control group {group}, whose \
         cpu.rt_runtime_us is 0 (RT_GROUP_SCHED); leave \"cpu\" out of `cgroup_controllers` in /etc/libvirt/qemu.conf, \
         restart libvirtd, and shut the domain off and start it again"
    )]
    NoRealTimeRuntime {
        /// Its name.
        domain: String,
        /// Which thread.
        thread: String,
        /// What was asked.
        policy: Policy,
        /// The control group.
        group: String,
    },
    /// The kernel refused.
    #[error("domain {domain}: {thread}: {error}")]
    Thread {
        /// Its name.
        domain: String,
        /// Which thread.
        thread: String,
        /// Why.
        error: ApplyError,
    },
    /// What was set is not what is there.
    #[error("domain {domain}: {what} was set to `{asked}`, and is `{found}` when read back")]
    Differs {
        /// Its name.
        domain: String,
        /// A pin or a thread.
        what: String,
        /// What was asked.
        asked: String,
        /// What was read.
        found: String,
    },
    /// What libvirt answers is not what it should be.
    #[error("domain {domain}: {what} cannot be read: {reason}")]
    Unread {
        /// Its name.
        domain: String,
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The undo could not be written down, so nothing was changed.
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
            DomainError::NoClient,
            DomainError::NotReachable { connect: connect(), reason: "Failed to connect socket".into() },
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
            "there is no program `virsh` here: install it (Debian: package libvirt-clients)\n\
             libvirt does not answer at qemu:///system (Failed to connect socket): start its daemon (libvirtd, or \
             virtqemud), or name where it answers, such as qemu:///system\n\
             libvirt at qemu:///system has no domain rt2 (did you mean rt1?); it has rt1, web\n\
             libvirt at qemu:///system has no domain rt2; it has none\n\
             domain rt1: vCPU 0 (thread 71): policy fifo 1 was refused: libvirt put it into the control group \
             /sys/fs/cgroup/cpu/machine/vcpu0, whose cpu.rt_runtime_us is 0 (RT_GROUP_SCHED); leave \"cpu\" out of \
             `cgroup_controllers` in /etc/libvirt/qemu.conf, restart libvirtd, and shut the domain off and start it again\n\
             domain rt1: the pin of vCPU 0 was set to `CPU 1`, and is `CPU 0-1` when read back\n\
             domain rt1 has 2 vCPUs, and 3 were given a scheduling: leave out those beyond"
        );
    }
}
