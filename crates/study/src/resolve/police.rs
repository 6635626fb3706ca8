//! Resolves the keys of the policing of received packets.

use super::gates::{LONGEST, base};
use crate::error::Fault;
use crate::format::{GateChoice, PoliceEntryKeys, PoliceKeys, PoliceOnlyChoice};
use crate::read::At;
use tailbound_model::{Nanos, PoliceEntry, PoliceOnly, PoliceSpec};

/// Shortest entry: the gate is moved by a timer, which would otherwise use a CPU for itself.
const SHORTEST_ENTRY: Nanos = Nanos(10_000);

/// Resolves the keys of the policing of received packets.
pub(crate) fn police(keys: &At<PoliceKeys>) -> Result<PoliceSpec, Fault> {
    let given = &keys.value.entries;
    let entries: Vec<PoliceEntry> = given.value.iter().map(entry).collect::<Result<_, Fault>>()?;
    let only = keys.value.only.as_ref().map(only).transpose()?;
    let spec = PoliceSpec { entries, base: base(keys.value.base.as_ref())?, only };
    let has = |open| spec.entries.iter().any(|entry| entry.open == open);
    let is_limited = spec.entries.iter().any(|entry| entry.most_bytes.is_some());
    if !has(true) || !(has(false) || is_limited) {
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
    let open = keys.gate == GateChoice::Open;
    let most_bytes = keys.most.as_ref().map(|most| match i32::try_from(most.value.0.0) {
        Ok(bytes) if open && bytes > 0 => Ok(bytes.unsigned_abs()),
        _ if !open => Err(Fault::new(most.at, "nothing passes a closed gate, so that `most` has no effect")
            .help("remove `most`, or write `gate: open`")),
        _ => Err(Fault::new(most.at, format!("an entry cannot have {} at most", most.value.0))
            .help(format!("write 1 B to {} B", i32::MAX))),
    });
    Ok(PoliceEntry { open, time, most_bytes: most_bytes.transpose()? })
}

fn only(given: &At<PoliceOnlyChoice>) -> Result<PoliceOnly, Fault> {
    match &given.value {
        PoliceOnlyChoice::Messages => Ok(PoliceOnly::Messages),
        PoliceOnlyChoice::Port(port) => match u16::try_from(port.value) {
            Ok(number) if number > 0 => Ok(PoliceOnly::Port(number)),
            _ => Err(Fault::new(port.at, format!("there is no UDP port {}", port.value)).help("write 1 to 65535")),
        },
    }
}
