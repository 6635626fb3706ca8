//! Estimates the duration of the measurements of a study.

use tailbound_model::{Length, Measure, Nanos, Plan, TrialSpec};

/// Assumed duration of one slot with stop-and-wait, which has no period.
const SLOT_AT_MAX: Nanos = Nanos(100_000);

/// Estimates the measuring time of a plan: time from the first to the last slot, summed over all trials, including
/// warm-up. Building labs, discovery and collecting samples are not included. With `rate: max` and a number of slots,
/// each slot is assumed to take 100 us.
pub fn estimate(plan: &Plan) -> Nanos {
    let total = plan.trials.iter().fold(0i64, |sum, trial| {
        sum.saturating_add(plan.conditions.get(trial.condition).map_or(0, |c| trial_length(&c.spec).0))
    });
    Nanos(total)
}

/// Estimates the time from the first to the last slot of one trial, including the warm-up.
pub fn trial_length(spec: &TrialSpec) -> Nanos {
    let keys = match &spec.measure {
        Measure::PingPong(keys) => keys,
        Measure::Flow(flow) => return flow.whole(),
    };
    let slot = spec.rate.period().unwrap_or(SLOT_AT_MAX).0;
    let of_slots = |slots: u64| slot.saturating_mul(i64::try_from(slots).unwrap_or(i64::MAX));
    let measured = match keys.length {
        Length::Slots(slots) | Length::Loops(slots) => of_slots(slots),
        Length::Duration(time) => time.0,
    };
    Nanos(measured.saturating_add(of_slots(keys.warm_up_slots)))
}
