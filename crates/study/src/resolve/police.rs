//! Resolves the keys of the policing of received packets.

use super::gates::{LONGEST, base};
use crate::error::Fault;
use crate::format::{GateChoice, PoliceEntryKeys, PoliceKeys};
use crate::read::At;
use tailbound_model::{Nanos, PoliceEntry, PoliceSpec};

/// Shortest entry: the gate is moved by a timer, which would otherwise use a CPU for itself.
const SHORTEST_ENTRY: Nanos = Nanos(10_000);

/// Resolves the keys of the policing of received packets.
pub(crate) fn police(keys: &At<PoliceKeys>) -> Result<PoliceSpec, Fault> {
    let given = &keys.value.entries;
    let entries: Vec<PoliceEntry> = given.value.iter().map(entry).collect::<Result<_, Fault>>()?;
    let spec = PoliceSpec { entries, base: base(keys.value.base.as_ref())? };
    let has = |open| spec.entries.iter().any(|entry| entry.open == open);
    if !has(true) || !has(false) {
        let reason = match has(false) {
            true => "the gate never opens, so that no message arrives",
            false => "the gate never closes, so that nothing is policed",
        };
        return Err(Fault::new(given.at, reason)
            .help("write for example `[{ gate: open, for: 5 ms }, { gate: closed, for: 15 ms }]`"));
    }
    if spec.cycle() > LONGEST {
        let reason = format!("the gate control list lasts {}", spec.cycle());
        return Err(Fault::new(given.at, reason).help(format!("at most {LONGEST} are possible")));
    }
    Ok(spec)
}

fn entry(keys: &PoliceEntryKeys) -> Result<PoliceEntry, Fault> {
    let time = keys.time.value.0;
    if !(SHORTEST_ENTRY..=LONGEST).contains(&time) {
        let reason = format!("an entry cannot last {time}");
        return Err(Fault::new(keys.time.at, reason).help(format!("write {SHORTEST_ENTRY} to {LONGEST}")));
    }
    Ok(PoliceEntry { open: keys.gate == GateChoice::Open, time })
}
