//! Resolves the keys of the gates of an interface.

use super::stream::USUAL_AHEAD;
use crate::error::{Fault, advice};
use crate::format::{
    AssistKeys, Duration, GateClassKeys, GateEntryKeys, GatesByChoice, GatesKeys, PreemptibleChoice, ReplaceChoice,
};
use crate::read::At;
use std::collections::BTreeSet;
use tailbound_model::{GateClass, GateEntry, GatesBy, GatesSpec, MOST_CLASSES, Nanos, SOCKET_PRIORITIES};

/// Longest cycle, and longest list of entries: the kernel counts their nanoseconds in 31 bits (`fill_sched_entry` and
/// `parse_taprio_schedule` of net/sched/sch_taprio.c).
pub(super) const LONGEST: Nanos = Nanos(i32::MAX as i64);
/// Shortest entry: the kernel wants room for the smallest frame, of 60 bytes, at 10 Gbit/s.
const SHORTEST_ENTRY: Nanos = Nanos(48);
/// Largest number of transmit queues of all classes together.
const MOST_QUEUES: u16 = 16;

/// Resolves the keys of the gates of an interface.
pub(crate) fn gates(keys: &At<GatesKeys>) -> Result<GatesSpec, Fault> {
    let by = match &keys.value.by {
        None | Some(GatesByChoice::Software) => GatesBy::Software,
        Some(GatesByChoice::Assist(keys)) => assist(keys)?,
        Some(GatesByChoice::Offload) => GatesBy::Offload,
        Some(GatesByChoice::Existing) => return existing(&keys.value),
    };
    let missing = |key: &str| Fault::new(keys.at, format!("`{key}` is missing")).help(format!("add the key `{key}`"));
    let given = keys.value.classes.as_ref().ok_or_else(|| missing("classes"))?;
    let classes = classes(given)?;
    if by != GatesBy::Offload {
        not_preemptible(given, &format!("gates by `{by}` cannot interrupt a frame, because only a network card can"))?;
    } else if classes.iter().all(|class| class.preemptible) {
        let reason = "all classes are preemptible, so that no frame can interrupt another one";
        return Err(Fault::new(given.at, reason).help("remove `preemptible` of the classes whose frames are urgent"));
    }
    let given = keys.value.entries.as_ref().ok_or_else(|| missing("entries"))?;
    if given.value.is_empty() {
        return Err(Fault::new(given.at, "the gate control list has no entry")
            .help("write for example `{ open: [stream], for: 100 us }`"));
    }
    let entries: Vec<GateEntry> =
        given.value.iter().map(|entry| gate_entry(entry, &classes)).collect::<Result<_, Fault>>()?;
    let sum = Nanos(entries.iter().map(|entry| entry.time.0).sum());
    if sum > LONGEST {
        let reason = format!("the gate control list lasts {sum}");
        return Err(Fault::new(given.at, reason).help(format!("at most {LONGEST} are possible")));
    }
    let least = Nanos(SHORTEST_ENTRY.0 * entries.len() as i64);
    let cycle = keys.value.cycle.as_ref().map(|cycle| match cycle.value.0 {
        time if (least..=LONGEST).contains(&time) => Ok(time),
        time => {
            let help = format!("write {least} to {LONGEST}, or remove `cycle`, which is then the sum of the entries");
            Err(Fault::new(cycle.at, format!("a cycle of {time} is not possible")).help(help))
        }
    });
    let base = base(keys.value.base.as_ref())?;
    let replace = keys.value.replace.as_ref().is_some_and(|replace| replace.value == ReplaceChoice::Yes);
    Ok(GatesSpec { by, classes, entries, cycle: cycle.transpose()?, base, replace })
}

/// Time after a whole second at which a schedule begins.
pub(super) fn base(given: Option<&At<Duration>>) -> Result<Nanos, Fault> {
    match given.map(|base| (base.at, base.value.0)) {
        None => Ok(Nanos(0)),
        Some((_, time)) if time < Nanos::from_secs(1) => Ok(time),
        Some((at, time)) => Err(Fault::new(at, format!("the schedule cannot begin {time} after a whole second"))
            .help("write less than 1 s")),
    }
}

/// Gates that are only read. Keys that describe gates would have no effect.
fn existing(keys: &GatesKeys) -> Result<GatesSpec, Fault> {
    let given = [
        keys.classes.as_ref().map(|given| ("classes", given.at)),
        keys.entries.as_ref().map(|given| ("entries", given.at)),
        keys.cycle.as_ref().map(|given| ("cycle", given.at)),
        keys.base.as_ref().map(|given| ("base", given.at)),
        keys.replace.as_ref().map(|given| ("replace", given.at)),
    ];
    if let Some((key, at)) = given.into_iter().flatten().next() {
        let reason = format!("existing gates are only read, so that `{key}` has no effect");
        return Err(Fault::new(at, reason).help(format!("remove `{key}`, or `by: existing`")));
    }
    let (classes, entries) = (Vec::new(), Vec::new());
    Ok(GatesSpec { by: GatesBy::Existing, classes, entries, cycle: None, base: Nanos(0), replace: false })
}

fn assist(keys: &AssistKeys) -> Result<GatesBy, Fault> {
    let Some(ahead) = &keys.ahead else { return Ok(GatesBy::Assist { ahead: USUAL_AHEAD }) };
    match ahead.value.0 {
        time if time < Nanos::from_secs(1) => Ok(GatesBy::Assist { ahead: time }),
        time => {
            let reason = format!("frames cannot be given to the device {time} before their launch time");
            Err(Fault::new(ahead.at, reason).help("write less than 1 s"))
        }
    }
}

/// Resolves the traffic classes of an interface, which together have all priorities.
pub(super) fn classes(given: &At<Vec<GateClassKeys>>) -> Result<Vec<GateClass>, Fault> {
    if given.value.is_empty() || given.value.len() > MOST_CLASSES {
        let reason = format!("an interface cannot have {} traffic classes", given.value.len());
        return Err(Fault::new(given.at, reason).help(format!("write 1 to {MOST_CLASSES}")));
    }
    let mut classes: Vec<GateClass> = Vec::new();
    let mut taken: BTreeSet<u8> = BTreeSet::new();
    // The class without priorities, which has all that are left.
    let mut rest: Option<usize> = None;
    for (number, keys) in given.value.iter().enumerate() {
        let name = class_name(&keys.name, &classes)?;
        let mut priorities = BTreeSet::new();
        match &keys.priorities {
            Some(given) => {
                for priority in &given.value {
                    priorities.insert(free_priority(priority, &mut taken)?);
                }
            }
            None if rest.replace(number).is_some() => {
                return Err(Fault::new(
                    keys.name.at,
                    format!("the class `{name}` is the second one without `priorities`"),
                )
                .help("only one class can have all other priorities"));
            }
            None => {}
        }
        let queues = match &keys.queues {
            Some(queues) if !(1..=u32::from(MOST_QUEUES)).contains(&queues.value) => {
                let reason = format!("a class cannot have {} transmit queues", queues.value);
                return Err(Fault::new(queues.at, reason).help(format!("write 1 to {MOST_QUEUES}")));
            }
            queues => queues.as_ref().map_or(1, |queues| queues.value as u16),
        };
        let preemptible = keys.preemptible.as_ref().is_some_and(|given| given.value == PreemptibleChoice::Yes);
        classes.push(GateClass { name, priorities, queues, preemptible });
    }
    let left: BTreeSet<u8> = (0..SOCKET_PRIORITIES).filter(|priority| !taken.contains(priority)).collect();
    match rest {
        Some(number) => classes[number].priorities = left,
        None if !left.is_empty() => {
            let left = left.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
            return Err(Fault::new(given.at, format!("no class has the priorities {left}"))
                .help("leave `priorities` out in one class, which then has all others"));
        }
        None => {}
    }
    let all: u16 = classes.iter().map(|class| class.queues).sum();
    if all > MOST_QUEUES {
        return Err(Fault::new(given.at, format!("the classes have {all} transmit queues together"))
            .help(format!("at most {MOST_QUEUES} are possible")));
    }
    Ok(classes)
}

/// Refuses preemptible classes, for this reason.
pub(super) fn not_preemptible(given: &At<Vec<GateClassKeys>>, reason: &str) -> Result<(), Fault> {
    let preemptible = given.value.iter().filter_map(|class| class.preemptible.as_ref());
    match preemptible.filter(|given| given.value == PreemptibleChoice::Yes).map(|given| given.at).next() {
        None => Ok(()),
        Some(at) => Err(Fault::new(at, reason).help("remove `preemptible`, or use `gates` with `by: offload`")),
    }
}

/// The name of a class, which none of the `others` has.
fn class_name(given: &At<String>, others: &[GateClass]) -> Result<String, Fault> {
    let name = given.value.trim().to_owned();
    let is_taken = others.iter().any(|class| class.name == name);
    if name.is_empty() || is_taken {
        let twice = format!("the class `{name}` is given twice");
        let reason = if is_taken { twice } else { "the name of the class is empty".to_owned() };
        return Err(Fault::new(given.at, reason).help("each class has a name of its own"));
    }
    Ok(name)
}

fn free_priority(given: &At<u32>, taken: &mut BTreeSet<u8>) -> Result<u8, Fault> {
    let Some(priority) = u8::try_from(given.value).ok().filter(|priority| *priority < SOCKET_PRIORITIES) else {
        let reason = format!("no class can be chosen for the priority {}", given.value);
        return Err(Fault::new(given.at, reason).help(format!("write 0 to {}", SOCKET_PRIORITIES - 1)));
    };
    if !taken.insert(priority) {
        let reason = format!("the priority {priority} is given twice");
        return Err(Fault::new(given.at, reason).help("a priority belongs to one class"));
    }
    Ok(priority)
}

fn gate_entry(keys: &GateEntryKeys, classes: &[GateClass]) -> Result<GateEntry, Fault> {
    let time = keys.time.value.0;
    if !(SHORTEST_ENTRY..=LONGEST).contains(&time) {
        let reason = format!("an entry cannot last {time}");
        return Err(Fault::new(keys.time.at, reason).help(format!("write {SHORTEST_ENTRY} to {LONGEST}")));
    }
    let mut open = 0;
    for name in &keys.open.value {
        let Some(class) = classes.iter().position(|class| class.name == name.value.trim()) else {
            let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            let reason = format!("there is no class `{}`", name.value);
            return Err(Fault::new(name.at, reason).help(advice(name.value.trim(), &names)));
        };
        open |= 1 << class;
    }
    Ok(GateEntry { open, time })
}
