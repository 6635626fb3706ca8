//! Helpers for sentences about the conditions of a plan.

use tailbound_model::{Condition, PlaceSpec, Plan, VmSpec};

/// Largest number of conditions that a sentence names. Further conditions are only counted.
const NAMED: usize = 4;

/// The conditions of a plan that can be run; conditions that are not possible are left out.
pub(super) fn possible(plan: &Plan) -> impl Iterator<Item = &Condition> {
    plan.conditions.iter().filter(|c| c.not_possible.is_none())
}

/// The levels of a condition as text for messages.
pub(super) fn levels(c: &Condition) -> String {
    c.levels.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(", ")
}

/// Ids of the conditions of a plan that have an end at the given place. A guest counts as the same place, whatever the
/// number of its neighbours is.
pub(super) fn with_place(plan: &Plan, place: &PlaceSpec) -> Vec<usize> {
    let alone = |place: &PlaceSpec| match place {
        PlaceSpec::Vm(guest) => PlaceSpec::Vm(Box::new(VmSpec { neighbours: 0, ..(**guest).clone() })),
        other => other.clone(),
    };
    let place = alone(place);
    let has = |c: &&Condition| [&c.spec.ping.place, &c.spec.pong.place].into_iter().any(|other| alone(other) == place);
    possible(plan).filter(has).map(|c| c.id).collect()
}

/// Appends to a reason the conditions that are concerned. If all conditions are concerned, the reason is returned
/// unchanged.
pub(super) fn with_conditions(plan: &Plan, why: &str, concerned: &[usize]) -> String {
    let all = possible(plan).count();
    if concerned.len() == all {
        return why.to_owned();
    }
    let some = possible(plan).filter(|c| concerned.contains(&c.id)).take(NAMED).map(levels);
    let some = some.collect::<Vec<_>>().join("; ");
    let more = match concerned.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    format!("{why} (of {} of {all} conditions: {some}{more})", concerned.len())
}
