//! Reasons why a scheduling request was refused, with remedies for the user.

use crate::process;
use nix::sys::resource::Resource;
use std::fs;
use std::io;
use tailbound_model::{CpuList, Policy};

/// A scheduling request that the kernel refused, or whose value read back differs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Error: neither CAP_SYS_NICE nor the resource limit allows the requested scheduling policy.
    #[error(
        "policy {policy} was refused: CAP_SYS_NICE is {}, {limit}; run as root, or grant it with \
         `setcap cap_sys_nice+ep` on the binary (a pod or container: `capabilities: [SYS_NICE]`), or raise the limit in \
         /etc/security/limits.d",
        if *capable { "present in this user namespace only" } else { "missing" }
    )]
    NoPrivilege {
        /// Scheduling policy that was requested for the thread.
        policy: Policy,
        /// Whether CAP_SYS_NICE is effective. If CAP_SYS_NICE is effective, it holds only for a user namespace, or the
        /// thread belongs to another user.
        capable: bool,
        /// The resource limit that could allow the scheduling policy, with its value.
        limit: String,
    },
    /// The thread's control group has no real-time runtime (RT_GROUP_SCHED), so the policy was refused.
    #[error(
        "policy {policy} was refused although CAP_SYS_NICE is present: the control group {group} has cpu.rt_runtime_us \
         0 (RT_GROUP_SCHED); write a runtime such as 950000 to its cpu.rt_runtime_us, or boot with rt_group_sched=0"
    )]
    NoRealTimeRuntime {
        /// Scheduling policy that was requested for the thread.
        policy: Policy,
        /// Directory of the thread's control group, which has no real-time runtime.
        group: String,
    },
    /// Error: SCHED_DEADLINE was requested for a thread that may not run on all CPUs.
    #[error(
        "policy {policy} was refused: SCHED_DEADLINE needs a thread that may run on all CPUs of its root domain \
         (sched(7)); request no CPUs for this thread, or use an exclusive cpuset"
    )]
    DeadlineConfined {
        /// Scheduling policy that was requested for the thread.
        policy: Policy,
    },
    /// Error: all threads with SCHED_DEADLINE together would need more CPU time than the kernel admits.
    #[error(
        "policy {policy} was refused: runtime/period of all deadline threads together would exceed what the kernel \
         admits, sched_rt_runtime_us/sched_rt_period_us of each CPU (sched(7)); request a shorter runtime, or \
         SCHED_DEADLINE for fewer threads (each thread of a role gets its own runtime)"
    )]
    DeadlineBandwidth {
        /// Scheduling policy that was requested for the thread.
        policy: Policy,
    },
    /// Error: some requested CPUs do not exist on the machine or are offline.
    #[error("CPU {missing} does not exist or is offline; the online CPUs of this machine are {online}")]
    NoSuchCpu {
        /// Requested CPUs that do not exist or are offline.
        missing: CpuList,
        /// CPUs of this machine that are online.
        online: CpuList,
    },
    /// Error: the cpuset of the thread does not allow some of the requested CPUs.
    #[error(
        "CPU {missing} is outside what this process may use ({allowed}); widen the cpuset of its container or control \
         group, or choose among {allowed}"
    )]
    OutsideCpuset {
        /// Requested CPUs that the cpuset does not allow.
        missing: CpuList,
        /// CPUs that the cpuset of the thread allows.
        allowed: CpuList,
    },
    /// Error: a priority or a time of the requested scheduling policy is out of range.
    #[error("policy {policy} has a value out of range (priorities are 1 to 99; runtime <= deadline <= period)")]
    OutOfRange {
        /// Scheduling policy that was requested for the thread.
        policy: Policy,
    },
    /// Error: the thread whose scheduling was requested has ended.
    #[error("thread {tid} does not exist any more")]
    Gone {
        /// Id of the thread that has ended.
        tid: i32,
    },
    /// Error: the scheduling of the thread was refused for any other reason.
    #[error("{what} was refused: {reason}")]
    Other {
        /// The part of the scheduling that was refused: the policy, or the CPUs.
        what: String,
        /// Error of the kernel for the refused part of the scheduling.
        reason: String,
    },
}

impl ApplyError {
    pub(super) fn for_policy(tid: i32, policy: &Policy, error: &io::Error) -> ApplyError {
        let policy = *policy;
        match error.raw_os_error() {
            Some(libc::ESRCH) => ApplyError::Gone { tid },
            Some(libc::EINVAL) => ApplyError::OutOfRange { policy },
            Some(libc::EBUSY) => ApplyError::DeadlineBandwidth { policy },
            Some(libc::EPERM) => {
                let capable = has_sys_nice();
                match policy {
                    Policy::Deadline { .. } if capable => ApplyError::DeadlineConfined { policy },
                    Policy::Fifo { .. } | Policy::Rr { .. } if capable => match group_without_runtime() {
                        Some(group) => ApplyError::NoRealTimeRuntime { policy, group },
                        None => ApplyError::NoPrivilege { policy, capable, limit: limit_for(&policy) },
                    },
                    _ => ApplyError::NoPrivilege { policy, capable, limit: limit_for(&policy) },
                }
            }
            _ => ApplyError::Other { what: format!("policy {policy}"), reason: error.to_string() },
        }
    }

    pub(super) fn for_affinity(tid: i32, cpus: &CpuList, error: &io::Error) -> ApplyError {
        match error.raw_os_error() {
            Some(libc::ESRCH) => ApplyError::Gone { tid },
            // No requested CPU is both online and allowed.
            Some(libc::EINVAL) => ApplyError::dropped(cpus, &CpuList::default()),
            _ => ApplyError::Other { what: format!("CPUs {cpus}"), reason: error.to_string() },
        }
    }

    /// Finds the reason why the kernel set only some of the requested CPUs.
    pub(super) fn dropped(asked: &CpuList, kept: &CpuList) -> ApplyError {
        let lost = CpuList(asked.0.difference(&kept.0).copied().collect());
        let online = cpu_file("/sys/devices/system/cpu/online");
        let absent = CpuList(lost.0.difference(&online.0).copied().collect());
        if !absent.is_empty() && !online.is_empty() {
            return ApplyError::NoSuchCpu { missing: absent, online };
        }
        ApplyError::OutsideCpuset { missing: lost, allowed: cpuset() }
    }
}

fn cpu_file(path: &str) -> CpuList {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// CPUs that the control group allows this process, or the affinity of the process if the control group cannot be read.
fn cpuset() -> CpuList {
    let effective = process::cgroup_dir("cpuset").and_then(|dir| {
        let read = |name: &str| fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok();
        read("cpuset.cpus.effective").or_else(|| read("cpuset.effective_cpus"))
    });
    effective.or_else(|| crate::sched_call::get_affinity(0).ok()).unwrap_or_default()
}

fn has_sys_nice() -> bool {
    const CAP_SYS_NICE: u32 = 23;
    process::effective_capabilities().is_ok_and(|bits| bits & (1 << CAP_SYS_NICE) != 0)
}

fn limit_for(policy: &Policy) -> String {
    let (name, resource) = match policy {
        Policy::Other { .. } | Policy::Batch { .. } | Policy::Idle => ("RLIMIT_NICE", Resource::RLIMIT_NICE),
        _ => ("RLIMIT_RTPRIO", Resource::RLIMIT_RTPRIO),
    };
    format!("{name} is {}", process::limit_text(resource))
}

/// Control group of this process, if RT_GROUP_SCHED gives the group no real-time runtime.
fn group_without_runtime() -> Option<String> {
    let dir = process::cgroup_dir("cpu")?;
    let runtime = fs::read_to_string(dir.join("cpu.rt_runtime_us")).ok()?;
    (runtime.trim() == "0").then(|| dir.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_name_what_where_and_what_to_do() {
        let policy = Policy::Fifo { priority: 80 };
        let texts = [
            ApplyError::NoPrivilege { policy, capable: false, limit: "RLIMIT_RTPRIO is 0".into() },
            ApplyError::NoRealTimeRuntime { policy, group: "/sys/fs/cgroup/cpu/x".into() },
            ApplyError::OutsideCpuset { missing: "3".parse().unwrap(), allowed: "0-1".parse().unwrap() },
            ApplyError::OutOfRange { policy: Policy::Rr { priority: 0 } },
        ]
        .map(|e| e.to_string())
        .join("\n");
        assert_eq!(
            texts,
            "policy fifo 80 was refused: CAP_SYS_NICE is missing, RLIMIT_RTPRIO is 0; run as root, or grant it with \
             `setcap cap_sys_nice+ep` on the binary (a pod or container: `capabilities: [SYS_NICE]`), or raise the limit in \
             /etc/security/limits.d\n\
             policy fifo 80 was refused although CAP_SYS_NICE is present: the control group /sys/fs/cgroup/cpu/x has \
             cpu.rt_runtime_us 0 (RT_GROUP_SCHED); write a runtime such as 950000 to its cpu.rt_runtime_us, or boot with \
             rt_group_sched=0\n\
             CPU 3 is outside what this process may use (0-1); widen the cpuset of its container or control group, or \
             choose among 0-1\n\
             policy rr 0 has a value out of range (priorities are 1 to 99; runtime <= deadline <= period)"
        );
    }
}
