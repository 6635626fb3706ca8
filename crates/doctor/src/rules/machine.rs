//! Rules that check the machine below the kernel, and the other programs on the machine.

use crate::condition::{Condition, Judgement, NotKnown, number, text};
use crate::finding::Rule;
use tailbound_model::{CpuList, HostFacts};

/// Number of running threads of other programs for each CPU, above which these threads probably delay messages.
const LOAD_PER_CPU: f64 = 0.25;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "machine.emulated",
        title: "CPU emulated in software",
        unit: "",
        bad: Condition::Flag(true),
        because: "the speed of an emulated CPU depends on the emulator: figures show that messages arrive, not how \
                  late they are",
        remedy: "measure on a real CPU, or on a virtual CPU with hardware support (KVM)",
        host: "",
    },
    Rule {
        key: "machine.hypervisor",
        title: "hypervisor",
        unit: "",
        bad: Condition::NotOneOf(&["none"]),
        because: "a virtual CPU stops while the hypervisor runs something else or handles an exit, and this kernel \
                  does not see the stop",
        remedy: "pin the virtual CPUs to host CPUs of their own, or measure on the bare machine",
        host: "",
    },
    Rule {
        key: "cpu.steal_ppm",
        title: "CPU time stolen since boot",
        unit: " ppm",
        bad: Condition::Above(10),
        because: "the hypervisor gave this machine's CPUs to other machines while threads of this machine were ready \
            to run; each such time is a stall",
        remedy: "use a machine with dedicated CPUs, or pin its virtual CPUs to host CPUs",
        host: "",
    },
    Rule {
        key: "load.1min",
        title: "load average, last minute",
        unit: "",
        bad: Condition::Judge(load),
        because: "other threads run on this machine and take CPUs, caches and locks at unpredictable times",
        remedy: "stop programs that are not needed, or keep them off the measured CPUs (cpusets, isolcpus)",
        host: "",
    },
    Rule {
        key: "cpu.allowed",
        title: "CPUs that may be used",
        unit: "",
        bad: Condition::Judge(one_cpu),
        because: "with one CPU, both ends and all other threads take turns on this CPU",
        remedy: "allow at least two CPUs (cpuset, container limits, affinity), better three",
        host: "",
    },
];

fn load(facts: &HostFacts) -> Judgement {
    let read = || -> Result<Judgement, NotKnown> {
        let text = text(facts, "load.1min")?;
        let load: f64 = text.parse().map_err(|_| NotKnown(format!("`{text}` is not a number")))?;
        let cpus = number(facts, "cpu.count")?;
        Ok(Judgement::bad_if(load > LOAD_PER_CPU * cpus as f64, format!("{text} on {cpus} CPUs")))
    };
    read().unwrap_or_else(Judgement::NotKnown)
}

fn one_cpu(facts: &HostFacts) -> Judgement {
    let read = || -> Result<Judgement, NotKnown> {
        let text = text(facts, "cpu.allowed")?;
        let cpus: CpuList = text.parse().map_err(|_| NotKnown(format!("`{text}` is not a CPU list")))?;
        Ok(Judgement::bad_if(cpus.0.len() < 2, format!("CPU {text}")))
    };
    read().unwrap_or_else(Judgement::NotKnown)
}
