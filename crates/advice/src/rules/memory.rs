//! Rules about page faults, freed memory, disks and locks.

use super::{BASE, estimate};
use crate::propose::machine;
use crate::rule::{Rule, Scope, Watch};
use tailbound_document::CauseWord;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "lock-memory",
        causes: &[CauseWord::PageFault, CauseWord::Reclaim],
        condition: "the memory of the process is not locked",
        knob: "middleware.memory",
        value: "locked",
        remedy: "call mlockall(MCL_CURRENT | MCL_FUTURE) in the program, and touch memory before it is needed",
        expected: estimate(70, 100),
        risk: "the program keeps all of its memory",
        scope: Scope::Restart,
        undo: "leave the call out",
        source: "mlockall(2)",
        propose: machine::lock_memory,
        ..BASE
    },
    Rule {
        key: "swappiness",
        causes: &[CauseWord::PageFault, CauseWord::Reclaim],
        condition: "the host has swap",
        knob: "host.sysctl.vm.swappiness",
        value: "0",
        remedy: "sysctl vm.swappiness=0",
        expected: estimate(0, 60),
        risk: "the kernel frees the cache of files sooner",
        source: "kernel documentation, admin-guide/sysctl/vm",
        propose: machine::swappiness,
        ..BASE
    },
    Rule {
        key: "no-swap",
        causes: &[CauseWord::PageFault],
        remedy: "swapoff -a, or lock the program's memory (mlockall)",
        expected: estimate(0, 80),
        risk: "a program that needs more memory than there is ends",
        undo: "swapon -a",
        source: "swapoff(8)",
        ..BASE
    },
    Rule {
        key: "free-memory",
        causes: &[CauseWord::Reclaim],
        knob: "host.sysctl.vm.watermark_scale_factor",
        value: "200",
        remedy: "sysctl vm.watermark_scale_factor=200, and raise the memory limit of the control group",
        expected: estimate(20, 90),
        risk: "2 % of the memory stay free",
        source: "kernel documentation, admin-guide/sysctl/vm",
        propose: machine::free_memory,
        ..BASE
    },
    Rule {
        key: "thp-madvise",
        causes: &[CauseWord::PageFault],
        condition: "the kernel makes huge pages for all programs",
        remedy: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        expected: estimate(0, 60),
        risk: "programs with much memory are slower",
        undo: "echo always > /sys/kernel/mm/transparent_hugepage/enabled",
        watch: &[Watch::Median],
        source: "kernel documentation, admin-guide/mm/transhuge",
        propose: machine::huge_pages,
        ..BASE
    },
    Rule {
        key: "ksm-off",
        causes: &[CauseWord::PageFault],
        remedy: "echo 2 > /sys/kernel/mm/ksm/run",
        expected: estimate(0, 30),
        risk: "equal pages of virtual machines need more memory",
        undo: "echo 1 > /sys/kernel/mm/ksm/run",
        source: "kernel documentation, admin-guide/mm/ksm",
        ..BASE
    },
    Rule {
        key: "numa-balancing-off",
        causes: &[CauseWord::PageFault],
        condition: "automatic NUMA balancing is on",
        knob: "host.sysctl.kernel.numa_balancing",
        value: "0",
        remedy: "sysctl kernel.numa_balancing=0, and bind CPUs and memory by hand (numactl)",
        expected: estimate(0, 80),
        risk: "memory stays on the node where it was made",
        source: "kernel documentation, admin-guide/sysctl/kernel",
        propose: machine::numa_balancing,
        ..BASE
    },
    Rule {
        key: "compaction-off",
        causes: &[CauseWord::PageFault, CauseWord::KernelThread],
        condition: "the kernel moves pages in advance",
        knob: "host.sysctl.vm.compaction_proactiveness",
        value: "0",
        remedy: "sysctl vm.compaction_proactiveness=0",
        expected: estimate(0, 30),
        risk: "huge pages are rarer",
        source: "kernel documentation, admin-guide/sysctl/vm",
        propose: machine::compaction,
        ..BASE
    },
    Rule {
        key: "no-disk",
        causes: &[CauseWord::BlockedIo],
        remedy: "write logs and files in another thread, and read files before the first message",
        expected: estimate(50, 100),
        scope: Scope::Restart,
        undo: "nothing is changed",
        source: "open(2)",
        propose: machine::disk,
        ..BASE
    },
    Rule {
        key: "priority-inheritance",
        causes: &[CauseWord::UserLock],
        remedy: "hold the lock for a shorter time, or use a mutex with priority inheritance (PTHREAD_PRIO_INHERIT)",
        expected: estimate(20, 90),
        scope: Scope::Restart,
        undo: "nothing is changed",
        source: "pthread_mutexattr_setprotocol(3)",
        propose: machine::lock,
        ..BASE
    },
];
