//! CPUs: frequency, sleep, sharing, isolation, mitigations.

use crate::condition::{Condition, Judgement, number, text};
use crate::finding::Rule;
use tailbound_model::{FactValue, HostFacts};

/// A wake-up from a shallower state is lost in that of the thread itself.
const DEEP_US: i64 = 10;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "cpu.governor",
        title: "frequency governor",
        unit: "",
        bad: Condition::NotOneOf(&["performance"]),
        because: "a CPU that was idle starts slowly and speeds up only after the first messages are late",
        mend: "cpupower frequency-set -g performance",
        host: "governor: performance",
    },
    Rule {
        key: "cpu.turbo",
        title: "turbo frequencies",
        unit: "",
        bad: Condition::Flag(true),
        because: "the frequency depends on what the other cores do and on the temperature, and changing it stops the CPU \
                  for some microseconds",
        mend: "write 1 to /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 to /sys/devices/system/cpu/cpufreq/boost, \
               where even figures count more than fast ones",
        host: "",
    },
    Rule {
        key: "cpu.idle_deepest_us",
        title: "deepest idle state's wake-up",
        unit: " us",
        bad: Condition::Judge(idle),
        because: "an idle CPU sleeps so deeply that it takes this long to come back, and the caches may be cold then",
        mend: "cpupower idle-set -D 10, or keep /dev/cpu_dma_latency open with 0 in it while measuring",
        host: "cpu_dma_latency: 0 us",
    },
    Rule {
        key: "cpu.smt_active",
        title: "two threads per core (SMT)",
        unit: "",
        bad: Condition::Flag(true),
        because: "whatever runs on the sibling takes part of the core's units and caches away",
        mend: "echo off > /sys/devices/system/cpu/smt/control, or leave the siblings of CPUs that matter idle",
        host: "",
    },
    Rule {
        key: "cpu.isolated",
        title: "isolated CPUs",
        unit: "",
        bad: Condition::Empty,
        because: "the scheduler puts any thread on any CPU, the kernel's workers too",
        mend: "boot with isolcpus=... (or use a cpuset partition) and pin the threads that matter there",
        host: "",
    },
    Rule {
        key: "cpu.nohz_full",
        title: "CPUs without a tick",
        unit: "",
        bad: Condition::Empty,
        because: "the timer tick interrupts every busy CPU 100 to 1000 times a second, each time for some microseconds",
        mend: "boot with nohz_full=... for the isolated CPUs (kernels with NO_HZ_FULL)",
        host: "",
    },
    Rule {
        key: "cpu.mitigations",
        title: "mitigations of CPU flaws",
        unit: "",
        bad: Condition::Judge(mitigations),
        because: "each adds work to system calls, interrupts or context switches, and some empty buffers and predictors",
        mend: "know it when comparing machines; mitigations=off only where nobody untrusted runs code, and measure what it \
               brings",
        host: "",
    },
];

/// A bound on wake-up latency that somebody holds open keeps CPUs out of the deeper states.
fn idle(facts: &HostFacts) -> Judgement {
    let polls = text(facts, "kernel.cmdline").is_ok_and(|line| line.split_whitespace().any(|w| w == "idle=poll"));
    match (number(facts, "cpu.idle_deepest_us"), number(facts, "cpu.dma_latency_us")) {
        _ if polls => Judgement::Fine("idle=poll".into()),
        (Ok(deepest), Ok(bound)) if bound < deepest => {
            Judgement::bad_if(bound > DEEP_US, format!("{deepest} us, bounded to {bound} us"))
        }
        (Ok(deepest), _) => Judgement::bad_if(deepest > DEEP_US, deepest.to_string()),
        (Err(why), _) => Judgement::NotKnown(why),
    }
}

fn mitigations(facts: &HostFacts) -> Judgement {
    let prefix = "cpu.vulnerability.";
    let all: Vec<(&str, &FactValue)> =
        facts.facts.iter().filter_map(|f| Some((f.key.strip_prefix(prefix)?, &f.value))).collect();
    if all.is_empty() {
        return Judgement::NotKnown("the kernel lists no CPU flaws".into());
    }
    let active: Vec<&str> = all
        .iter()
        .filter(|(_, value)| matches!(value, FactValue::Text(text) if text.contains("Mitigation:")))
        .map(|(name, _)| *name)
        .collect();
    let value = if active.is_empty() { "none active".to_owned() } else { active.join(", ") };
    Judgement::bad_if(!active.is_empty(), value)
}
