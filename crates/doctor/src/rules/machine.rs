//! The machine below the kernel, and what else runs on it.

use crate::condition::{Condition, Judgement, number, text};
use crate::finding::Rule;
use tailbound_model::{CpuList, HostFacts};

/// Work that others have to do, in running threads per CPU: above it they are likely to be in the way.
const LOAD_PER_CPU: f64 = 0.25;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "machine.emulated",
        title: "CPU emulated in software",
        unit: "",
        bad: Condition::Flag(true),
        because: "time inside an emulated CPU runs as the emulator gets round to it: figures show that things work, not \
                  how late they are",
        mend: "measure on a real CPU, or on a virtual one with hardware support (KVM)",
        host: "",
    },
    Rule {
        key: "machine.hypervisor",
        title: "hypervisor",
        unit: "",
        bad: Condition::NotOneOf(&["none"]),
        because: "a virtual CPU stands still whenever the hypervisor runs something else or handles an exit, and this \
                  kernel does not see it",
        mend: "pin the virtual CPUs to host CPUs of their own, or measure on the bare machine",
        host: "",
    },
    Rule {
        key: "cpu.steal_ppm",
        title: "CPU time stolen since boot",
        unit: " ppm",
        bad: Condition::Above(10),
        because: "the hypervisor gave this machine's CPUs to others while threads here wanted to run; each time is a stall",
        mend: "take a machine with dedicated CPUs, or pin its virtual CPUs",
        host: "",
    },
    Rule {
        key: "load.1min",
        title: "load average, last minute",
        unit: "",
        bad: Condition::Judge(load),
        because: "other threads are running: they take CPUs, caches and locks at moments of their own",
        mend: "stop what need not run, or keep it off the CPUs that matter (cpusets, isolcpus)",
        host: "",
    },
    Rule {
        key: "cpu.allowed",
        title: "CPUs that may be used",
        unit: "",
        bad: Condition::Judge(one_cpu),
        because: "with one CPU both ends and everything else take turns on it",
        mend: "allow at least two CPUs (cpuset, container limits, affinity), better three",
        host: "",
    },
];

fn load(facts: &HostFacts) -> Judgement {
    let read = || -> Result<Judgement, String> {
        let text = text(facts, "load.1min")?;
        let load: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
        let cpus = number(facts, "cpu.count")?;
        Ok(Judgement::bad_if(load > LOAD_PER_CPU * cpus as f64, format!("{text} on {cpus} CPUs")))
    };
    read().unwrap_or_else(Judgement::NotKnown)
}

fn one_cpu(facts: &HostFacts) -> Judgement {
    let read = || -> Result<Judgement, String> {
        let text = text(facts, "cpu.allowed")?;
        let cpus: CpuList = text.parse().map_err(|_| format!("`{text}` is not a CPU list"))?;
        Ok(Judgement::bad_if(cpus.0.len() < 2, format!("CPU {text}")))
    };
    read().unwrap_or_else(Judgement::NotKnown)
}
