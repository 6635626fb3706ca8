//! Rules about quotas, rights and limits of processes.

use super::{BASE, estimate};
use crate::propose::kernel;
use crate::rule::{Rule, Scope, Watch};
use tailbound_document::CauseWord;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "no-cpu-quota",
        causes: &[CauseWord::CpuQuota],
        condition: "to be tried: both ends run in control groups of Tailbound",
        knob: "host.cpu_quota",
        value: "off",
        remedy: "remove the quota (Docker: no --cpus; Kubernetes: no CPU limit) and give whole CPUs by cpuset",
        expected: estimate(90, 100),
        risk: "the program can take CPU time from others",
        scope: Scope::Restart,
        undo: "set the quota again",
        watch: &[Watch::CpuTime],
        source: "kernel documentation, scheduler/sched-bwc",
        propose: kernel::quota,
        ..BASE
    },
    Rule {
        key: "real-time-beside-quota",
        causes: &[CauseWord::CpuQuota],
        condition: "the end has no real-time policy",
        knob: "ends.{end}.scheduling",
        value: "{ policy: fifo, priority: 10 }",
        remedy: "give the program a real-time policy, to which a CPU quota does not apply",
        expected: estimate(60, 100),
        risk: "a thread that never sleeps keeps its CPU, beyond the quota",
        scope: Scope::Restart,
        undo: "start the program with its old policy",
        watch: &[Watch::CpuTime],
        source: "kernel documentation, scheduler/sched-bwc",
        propose: kernel::quota_real_time,
        ..BASE
    },
    Rule {
        key: "real-time-right",
        causes: &[CauseWord::WaitedForCpu],
        remedy: "run as root, grant CAP_SYS_NICE, or set rtprio in /etc/security/limits.d",
        undo: "remove the right",
        source: "limits.conf(5)",
        scope: Scope::Restart,
        ..BASE
    },
    Rule {
        key: "lock-right",
        causes: &[CauseWord::PageFault, CauseWord::Reclaim],
        remedy: "run as root, grant CAP_IPC_LOCK, or set memlock to unlimited in /etc/security/limits.d",
        undo: "remove the right",
        source: "limits.conf(5)",
        scope: Scope::Restart,
        ..BASE
    },
];
