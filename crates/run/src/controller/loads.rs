//! What the loads of a trial did, held against what was asked for.

use super::trial::Part;
use tailbound_model::*;

/// A load that was not there for as long as it was to: the figures are of something else.
pub(super) fn fell_short(load: &LoadDone) -> Option<Warning> {
    let text = format!("the load `{}` was not there as long as it was to: {}", load.run, load.failed.as_ref()?);
    let mend = "give it a `duration` that it keeps, or mend its command";
    Some(Warning::new("load_fell_short", Severity::Invalid, text, mend).at_end(load.at.clone()))
}

/// Loads of which nothing arrived.
pub(super) fn unheard(parts: &[Part]) -> Vec<Warning> {
    let loads: Vec<&LoadDone> = parts.iter().flat_map(|p| &p.done).flat_map(|d| &d.loads).collect();
    let all = |load: &LoadDone, part: LoadPart| -> u64 {
        loads.iter().filter(|l| l.run == load.run && l.part == Some(part)).filter_map(|l| l.messages).sum()
    };
    let unheard = loads.iter().filter(|l| l.part == Some(LoadPart::Receives) && l.failed.is_none());
    let unheard = unheard.filter(|l| all(l, LoadPart::Receives) == 0 && all(l, LoadPart::Sends) > 0);
    let warning = |l: &&LoadDone| {
        let text = format!("of the load `{}` {} messages were sent and none arrived", l.run, all(l, LoadPart::Sends));
        Warning::new("load_fell_short", Severity::Invalid, text, "look at what the path carries, and how much")
            .at_end(l.at.clone())
    };
    unheard.map(warning).collect()
}
