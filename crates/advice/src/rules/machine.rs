//! Rules about idle states, frequencies, virtual machines and other programs.

use super::{BASE, estimate};
use crate::propose::{kernel, machine};
use crate::rule::{Rule, Scope, Watch};
use tailbound_document::CauseWord;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "no-deep-idle",
        causes: &[CauseWord::IdleExit],
        condition: "idle CPUs enter idle states",
        knob: "host.cpu_dma_latency",
        value: "0 us",
        remedy: "run cpupower idle-set -D 10, or write 0 to /dev/cpu_dma_latency and keep the file open during the \
                 measurement",
        expected: estimate(50, 100),
        risk: "more power, and lower turbo frequencies",
        watch: &[Watch::CpuTime],
        source: "kernel documentation, admin-guide/pm/cpuidle",
        propose: machine::no_idle,
        ..BASE
    },
    Rule {
        key: "governor-performance",
        causes: &[CauseWord::Frequency, CauseWord::IdleExit],
        condition: "another frequency governor is set",
        knob: "host.governor",
        value: "performance",
        remedy: "cpupower frequency-set -g performance",
        expected: estimate(60, 100),
        risk: "more power",
        watch: &[Watch::CpuTime],
        source: "kernel documentation, admin-guide/pm/cpufreq",
        propose: machine::performance,
        ..BASE
    },
    Rule {
        key: "turbo-off",
        causes: &[CauseWord::Frequency],
        remedy: "if steady latencies matter more than short ones, write 1 to \
                 /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 to /sys/devices/system/cpu/cpufreq/boost",
        expected: estimate(0, 50),
        risk: "a lower highest frequency, so that the median is longer",
        undo: "write the old value",
        watch: &[Watch::Median],
        source: "kernel documentation, admin-guide/pm/intel_pstate",
        propose: kernel::by_remedy,
        ..BASE
    },
    Rule {
        key: "smt-off",
        remedy: "echo off > /sys/devices/system/cpu/smt/control, or keep the siblings of the measured CPUs idle",
        expected: estimate(0, 30),
        risk: "half as many CPUs",
        undo: "echo on > /sys/devices/system/cpu/smt/control",
        watch: &[Watch::CpuTime],
        source: "kernel documentation, admin-guide/hw-vuln/l1tf",
        ..BASE
    },
    Rule {
        key: "mitigations",
        remedy: "consider the mitigations when you compare machines; boot with mitigations=off only if no untrusted \
                 code runs, and measure the effect",
        risk: "programs can read memory of others",
        scope: Scope::Reboot,
        undo: "boot without mitigations=off",
        source: "kernel documentation, admin-guide/hw-vuln",
        ..BASE
    },
    Rule {
        key: "clock-source",
        remedy: "find in the kernel's log why the kernel does not use the CPU's own counter (tsc); boot with \
                 tsc=reliable only if this reason is known to be wrong",
        risk: "the clock of the host can be wrong",
        scope: Scope::Reboot,
        undo: "boot without tsc=reliable",
        source: "kernel documentation, timers/timekeeping",
        ..BASE
    },
    Rule {
        key: "real-cpu",
        causes: &[CauseWord::Steal, CauseWord::MachineGap],
        remedy: "measure on a real CPU, or on a virtual CPU with hardware support (KVM)",
        undo: "nothing is changed",
        source: "Virtual machines",
        scope: Scope::Restart,
        ..BASE
    },
    Rule {
        key: "pinned-virtual-cpus",
        causes: &[CauseWord::Steal, CauseWord::MachineGap],
        remedy: "pin the virtual CPUs to host CPUs of their own, or measure on the bare machine",
        expected: estimate(50, 100),
        scope: Scope::Restart,
        undo: "remove the pinning",
        source: "Virtual machines",
        ..BASE
    },
    Rule {
        key: "dedicated-cpus",
        causes: &[CauseWord::Steal],
        remedy: "use a machine with dedicated CPUs, or pin its virtual CPUs to host CPUs",
        expected: estimate(70, 100),
        scope: Scope::Restart,
        undo: "use the old machine",
        source: "Virtual machines",
        propose: kernel::by_remedy,
        ..BASE
    },
    Rule {
        key: "priority-of-virtual-cpus",
        causes: &[CauseWord::Steal],
        condition: "the end runs in a virtual machine that Tailbound starts",
        knob: "ends.{end}.place.vcpu_threads",
        value: "{ policy: fifo, priority: 60 }",
        remedy: "give the threads of the virtual CPUs a real-time policy on the host (chrt -f -p 60 TID)",
        expected: estimate(50, 100),
        risk: "a busy virtual CPU keeps its host CPU from all threads below",
        scope: Scope::Restart,
        undo: "start the virtual machine without the policy",
        watch: &[Watch::CpuTime],
        source: "Virtual machines",
        propose: machine::vcpu_priority,
        ..BASE
    },
    Rule {
        key: "kvm-halt-poll",
        causes: &[CauseWord::IdleExit, CauseWord::Steal],
        condition: "the end runs in a virtual machine of this host",
        knob: "host.kvm_halt_poll",
        value: "200 us",
        remedy: "echo 200000 > /sys/module/kvm/parameters/halt_poll_ns",
        expected: estimate(20, 80),
        risk: "more CPU time of the host",
        watch: &[Watch::CpuTime],
        source: "kernel documentation, virt/kvm/halt-polling",
        propose: machine::kvm_halt_poll,
        ..BASE
    },
    Rule {
        key: "quiet-machine",
        causes: &[CauseWord::WaitedForCpu],
        remedy: "stop programs that are not needed, or keep them off the measured CPUs (cpusets, isolcpus)",
        undo: "start the programs again",
        source: "cpuset(7)",
        ..BASE
    },
    Rule {
        key: "more-cpus",
        causes: &[CauseWord::WaitedForCpu],
        remedy: "allow at least two CPUs (cpuset, container limits, affinity), better three",
        scope: Scope::Restart,
        undo: "set the old limits",
        source: "cpuset(7)",
        ..BASE
    },
];
