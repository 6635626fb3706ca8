//! Rules that check the machine below the kernel, and the other programs on the machine.

use crate::condition::{Condition, Judgement, NotKnown, number, text};
use crate::finding::Rule;
use tailbound_model::{CpuList, HostFacts};

/// Number of running threads of other programs for each CPU, above which these threads probably delay messages.
const LOAD_PER_CPU: f64 = 0.25;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "machine.emulated",
        advice: "real-cpu",
        weight: 5,
        title: "CPU emulated in software",
        unit: "",
        bad: Condition::Flag(true),
        because: "the speed of an emulated CPU depends on the emulator: figures show that messages arrive, not how \
                  late they are",
    },
    Rule {
        key: "machine.hypervisor",
        advice: "pinned-virtual-cpus",
        weight: 4,
        title: "hypervisor",
        unit: "",
        bad: Condition::NotOneOf(&["none"]),
        because: "a virtual CPU stops while the hypervisor runs something else or handles an exit, and this kernel \
                  does not see the stop",
    },
    Rule {
        key: "cpu.steal_ppm",
        advice: "dedicated-cpus",
        weight: 5,
        title: "CPU time stolen since boot",
        unit: " ppm",
        bad: Condition::Above(10),
        because: "the hypervisor gave this machine's CPUs to other machines while threads of this machine were ready \
            to run; each such time is a stall",
    },
    Rule {
        key: "load.1min",
        advice: "quiet-machine",
        weight: 4,
        title: "load average, last minute",
        unit: "",
        bad: Condition::Judge(load),
        because: "other threads run on this machine and take CPUs, caches and locks at unpredictable times",
    },
    Rule {
        key: "cpu.allowed",
        advice: "more-cpus",
        weight: 5,
        title: "CPUs that may be used",
        unit: "",
        bad: Condition::Judge(one_cpu),
        because: "with one CPU, both ends and all other threads take turns on this CPU",
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
