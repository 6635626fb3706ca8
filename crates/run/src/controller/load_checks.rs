//! Checks that the loads of a trial ran as the study asks.

use super::trial_state::Part;
use tailbound_model::*;

/// Warns of a load that ran for a shorter time than the study asks, so that the trial is invalid.
pub(super) fn fell_short(load: &LoadDone) -> Option<Warning> {
    let text = format!("the load `{}` did not run as long as asked: {}", load.run, load.failed.as_ref()?);
    let remedy = "give the load a `duration` for which it can run, or fix its command";
    Some(Warning::new("load_fell_short", Severity::Invalid, text, remedy).at_end(load.at.clone()))
}

/// Warns of loads that sent messages of which none arrived. `of_neighbours` are the loads that ran in guests without an
/// end.
pub(super) fn without_arrivals(parts: &[Part], of_neighbours: &[LoadDone]) -> Vec<Warning> {
    let of_ends = parts.iter().flat_map(|p| &p.done).flat_map(|d| &d.loads);
    let loads: Vec<&LoadDone> = of_ends.chain(of_neighbours).collect();
    let all = |load: &LoadDone, part: LoadPart| -> u64 {
        loads.iter().filter(|l| l.run == load.run && l.part == Some(part)).filter_map(|l| l.messages).sum()
    };
    let silent = loads.iter().filter(|l| l.part == Some(LoadPart::Receives) && l.failed.is_none());
    let silent = silent.filter(|l| all(l, LoadPart::Receives) == 0 && all(l, LoadPart::Sends) > 0);
    let warning = |l: &&LoadDone| {
        let text = format!("the load `{}` sent {} messages, and none arrived", l.run, all(l, LoadPart::Sends));
        Warning::new(
            "load_fell_short",
            Severity::Invalid,
            text,
            "check whether the path can carry the messages of the load at their rate",
        )
        .at_end(l.at.clone())
    };
    silent.map(warning).collect()
}
