//! How long measuring will take.

use tailbound_model::{Length, Measure, Nanos, Plan, TrialSpec};

/// Assumed time of one slot of stop-and-wait, which has no period.
const SLOT_AT_MAX: Nanos = Nanos(100_000);

/// Time from the first to the last slot of all trials, warm-up included. Building labs, discovery and collecting come
/// on top. With `rate: max` and a number of slots, 100 us are assumed for each.
pub fn estimate(plan: &Plan) -> Nanos {
    let total = plan.trials.iter().fold(0i64, |sum, trial| {
        sum.saturating_add(plan.conditions.get(trial.condition).map_or(0, |c| trial_length(&c.spec).0))
    });
    Nanos(total)
}

/// The same of one trial.
pub fn trial_length(spec: &TrialSpec) -> Nanos {
    let keys = match &spec.measure {
        Measure::PingPong(keys) => keys,
        Measure::Flow(flow) => return flow.whole(),
    };
    let slot = spec.rate.period().unwrap_or(SLOT_AT_MAX).0;
    let of_slots = |slots: u64| slot.saturating_mul(i64::try_from(slots).unwrap_or(i64::MAX));
    let measured = match keys.length {
        Length::Slots(slots) => of_slots(slots),
        Length::Duration(time) => time.0,
    };
    Nanos(measured.saturating_add(of_slots(keys.warm_up_slots)))
}
