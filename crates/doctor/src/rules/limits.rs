//! Rules that check the restrictions of a process: quotas, limits, capabilities.

use crate::condition::{Condition, Judgement, NotKnown, flag, limit, text};
use crate::finding::Rule;
use tailbound_model::HostFacts;

/// Memory that a measuring process may need to lock, in bytes; with a lower limit, locking memory fails.
const MEMLOCK_BYTES: i64 = 1 << 30;

pub(super) const RULES: &[Rule] = &[
    Rule {
        key: "cgroup.cpu_max",
        advice: "no-cpu-quota",
        weight: 5,
        title: "CPU quota of the control group",
        unit: "",
        bad: Condition::Judge(quota),
        because: "once the quota of a period is used up all threads of the group stop until the next period",
    },
    Rule {
        key: "limit.rtprio",
        advice: "real-time-right",
        weight: 5,
        title: "right to real-time priorities",
        unit: "",
        bad: Condition::Judge(real_time),
        because: "threads cannot have a real-time policy and take turns with every ordinary thread",
    },
    Rule {
        key: "limit.memlock_bytes",
        advice: "lock-right",
        weight: 4,
        title: "right to lock memory",
        unit: "",
        bad: Condition::Judge(memory_lock),
        because: "memory that cannot be locked is reclaimed and faults when it is touched again",
    },
];

fn quota(facts: &HostFacts) -> Judgement {
    match text(facts, "cgroup.cpu_max").map(|t| t.split_once(' ').ok_or(t)) {
        Ok(Ok((quota, period))) => Judgement::Bad(format!("{quota} us of CPU time per {period} us")),
        Ok(Err("max")) => Judgement::Fine("none".into()),
        Ok(Err(other)) => Judgement::NotKnown(NotKnown(format!("`{other}` is not a quota"))),
        Err(why) => Judgement::NotKnown(why),
    }
}

fn real_time(facts: &HostFacts) -> Judgement {
    match (flag(facts, "capability.sys_nice"), limit(facts, "limit.rtprio")) {
        (Ok(true), _) => Judgement::Fine("CAP_SYS_NICE".into()),
        (_, Ok(None)) => Judgement::Fine("unlimited".into()),
        (_, Ok(Some(limit))) if limit > 0 => Judgement::Fine(format!("up to {limit}")),
        (Ok(false), Ok(Some(_))) => Judgement::Bad("none".into()),
        (Err(why), _) | (_, Err(why)) => Judgement::NotKnown(why),
    }
}

fn memory_lock(facts: &HostFacts) -> Judgement {
    match (flag(facts, "capability.ipc_lock"), limit(facts, "limit.memlock_bytes")) {
        (Ok(true), _) => Judgement::Fine("CAP_IPC_LOCK".into()),
        (_, Ok(None)) => Judgement::Fine("unlimited".into()),
        (_, Ok(Some(limit))) if limit >= MEMLOCK_BYTES => Judgement::Fine(format!("{limit} B")),
        (Ok(false), Ok(Some(limit))) => Judgement::Bad(format!("{limit} B")),
        (Err(why), _) | (_, Err(why)) => Judgement::NotKnown(why),
    }
}
