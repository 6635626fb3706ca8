//! Rules that check a host's CPUs: frequency, sleep states, sharing, isolation, mitigations.

use crate::condition::{Condition, Judgement, NotKnown, number, text};
use crate::finding::Rule;
use tailbound_model::{FactValue, HostFacts};

/// Longest wake-up time of an idle state, in us, that is not reported as bad: waking a CPU from such a state does not
/// take longer than waking the thread itself.
const DEEP_US: i64 = 10;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "cpu.governor",
        advice: "governor-performance",
        weight: 3,
        title: "frequency governor",
        unit: "",
        bad: Condition::NotOneOf(&["performance"]),
        because: "a CPU that was idle starts at a low frequency, which rises only after the first messages are late",
    },
    Rule {
        key: "cpu.turbo",
        advice: "turbo-off",
        weight: 2,
        title: "turbo frequencies",
        unit: "",
        bad: Condition::Flag(true),
        because: "a turbo frequency depends on the load of the other cores and on the temperature, and each change \
                  of the frequency stops the CPU for some microseconds",
    },
    Rule {
        key: "cpu.idle_deepest_us",
        advice: "no-deep-idle",
        weight: 3,
        title: "wake-up time of an idle CPU",
        unit: " us",
        bad: Condition::Judge(idle),
        because: "a CPU in a deep idle state wakes up slowly, and its caches may be cold then",
    },
    Rule {
        key: "cpu.smt_active",
        advice: "smt-off",
        weight: 1,
        title: "two threads per core (SMT)",
        unit: "",
        bad: Condition::Flag(true),
        because: "a thread on the sibling CPU takes a part of the core's execution units and caches",
    },
    Rule {
        key: "cpu.isolated",
        advice: "isolated-cpus",
        weight: 4,
        title: "isolated CPUs",
        unit: "",
        bad: Condition::Empty,
        because: "the scheduler may put any thread, including worker threads of the kernel, on any CPU",
    },
    Rule {
        key: "cpu.nohz_full",
        advice: "nohz-full",
        weight: 1,
        title: "CPUs without a tick",
        unit: "",
        bad: Condition::Empty,
        because: "the timer tick interrupts every busy CPU 100 to 1000 times a second, each time for some microseconds",
    },
    Rule {
        key: "cpu.mitigations",
        advice: "mitigations",
        weight: 1,
        title: "mitigations of CPU flaws",
        unit: "",
        bad: Condition::Judge(mitigations),
        because: "each mitigation adds work to system calls, interrupts or context switches, and some mitigations \
                  empty buffers and predictors",
    },
];

/// Judges the wake-up time of the deepest idle state that CPUs can enter. If a program requests an upper limit for the
/// wake-up latency, CPUs do not enter idle states above this limit.
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
        return Judgement::NotKnown(NotKnown("the kernel lists no CPU flaws".into()));
    }
    let active: Vec<&str> = all
        .iter()
        .filter(|(_, value)| matches!(value, FactValue::Text(text) if text.contains("Mitigation:")))
        .map(|(name, _)| *name)
        .collect();
    let value = if active.is_empty() { "none active".to_owned() } else { active.join(", ") };
    Judgement::bad_if(!active.is_empty(), value)
}
