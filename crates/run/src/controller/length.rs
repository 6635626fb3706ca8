//! How long a trial is: slots, time, and the most of either.

use super::{FASTEST_ROUND_TRIP_NS, flow, proof, tool};
use std::time::Duration;
use tailbound_model::*;

/// Most slots that stop-and-wait by duration keeps memory for, where it is not drained.
const MOST_SLOTS: u64 = 20_000_000;

/// Slots that memory is needed for, and how many of them are warm-up.
pub(super) fn slots(spec: &TrialSpec) -> (u64, u64) {
    let p = match &spec.measure {
        Measure::PingPong(p) => p,
        Measure::Flow(f) => return (flow::rows(f, spec.rate), 0),
    };
    let measured = match (p.length, spec.rate) {
        (Length::Slots(n), _) => n,
        (Length::Duration(d), Rate::Period(period)) => (d.0 / period.0.max(1)).max(1) as u64,
        (Length::Duration(d), Rate::Max) => {
            let most = if spec.collect == Collect::Live { u64::MAX >> 16 } else { MOST_SLOTS };
            ((d.0 / FASTEST_ROUND_TRIP_NS).max(1) as u64).min(most)
        }
    };
    (measured + p.warm_up_slots, p.warm_up_slots)
}

/// How long a trial's slots take.
pub(super) fn estimate(spec: &TrialSpec) -> Nanos {
    let p = match &spec.measure {
        Measure::PingPong(p) => p,
        Measure::Flow(f) => return f.whole(),
    };
    match (p.length, spec.rate) {
        (_, Rate::Period(period)) => Nanos(slots(spec).0 as i64 * period.0),
        (Length::Duration(d), Rate::Max) => d,
        (Length::Slots(n), Rate::Max) => Nanos(n as i64 * 50_000),
    }
}

/// How long the ends of a trial are up once they have met: the quiet interval and the slots.
pub(super) fn takes(spec: &TrialSpec) -> Nanos {
    if spec.has_tool() {
        return tool::takes(spec);
    }
    Nanos(estimate(spec).0 + proof::quiet(spec).0)
}

/// The longest that a trial may take: every answer of stop-and-wait lost, or a sender that falls behind.
pub(super) fn limit(spec: &TrialSpec) -> Duration {
    let p = match &spec.measure {
        Measure::PingPong(p) => p,
        Measure::Flow(f) => return flow::limit(f),
    };
    let slots = slots(spec).0 as i64;
    let worst = match (p.length, spec.rate) {
        (Length::Slots(_), Rate::Max) => slots.saturating_mul(p.timeout.0).min(24 * 3_600 * 1_000_000_000),
        (Length::Duration(d), Rate::Max) => d.0 + p.warm_up_slots as i64 * p.timeout.0,
        _ => estimate(spec).0.saturating_mul(2),
    };
    Nanos(worst.saturating_add(4 * p.timeout.0)).duration() + Duration::from_secs(30)
}
