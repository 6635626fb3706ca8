//! Rules that check settings by which the kernel moves, merges or swaps memory pages.

use crate::condition::{Condition, Judgement, flag, number};
use crate::finding::Rule;
use tailbound_model::HostFacts;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "memory.thp",
        advice: "thp-madvise",
        weight: 3,
        title: "transparent huge pages",
        unit: "",
        bad: Condition::OneOf(&["always"]),
        because: "a page fault may first have to clear or collect 2 MiB, and khugepaged rebuilds the memory of \
            running programs",
    },
    Rule {
        key: "memory.swap_total_kib",
        advice: "no-swap",
        weight: 4,
        title: "swap",
        unit: " KiB",
        bad: Condition::Above(0),
        because: "a page that was swapped out is read back from a disk, which takes milliseconds",
    },
    Rule {
        key: "memory.ksm",
        advice: "ksm-off",
        weight: 2,
        title: "merging of equal pages (KSM)",
        unit: "",
        bad: Condition::Is(1),
        because: "the first write to a merged page faults and copies it, and ksmd takes CPU time",
    },
    Rule {
        key: "memory.numa_balancing",
        advice: "numa-balancing-off",
        weight: 3,
        title: "automatic NUMA balancing",
        unit: "",
        bad: Condition::Judge(numa_balancing),
        because: "the kernel unmaps pages to see which threads use them, and moves the pages between NUMA nodes",
    },
    Rule {
        key: "memory.compaction_proactiveness",
        advice: "compaction-off",
        weight: 3,
        title: "proactive compaction",
        unit: "",
        bad: Condition::Above(0),
        because: "kcompactd moves pages of running programs; a thread that accesses such a page meanwhile waits",
    },
];

fn numa_balancing(facts: &HostFacts) -> Judgement {
    match (flag(facts, "memory.numa_balancing"), number(facts, "numa.nodes")) {
        (_, Ok(1)) => Judgement::Fine("one node".into()),
        (Ok(on), _) => Judgement::bad_if(on, if on { "on" } else { "off" }),
        (Err(why), _) => Judgement::NotKnown(why),
    }
}
