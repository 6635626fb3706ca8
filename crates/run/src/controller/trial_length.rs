//! Computes the length of a trial: number of slots, expected time, and upper limits of both.

use super::flow;
use crate::live_collect::FASTEST_ROUND_TRIP_NS;
use std::time::Duration;
use tailbound_model::*;

/// Largest number of slots for which stop-and-wait with a duration allocates memory, unless samples are collected live.
const MOST_SLOTS: u64 = 20_000_000;
/// Time that a tool may take to start, to end and to print its result, in addition to its measuring time, ns.
const TOOL_MARGIN_NS: i64 = 10_000_000_000;
/// Longest quiet interval (silence before the measurement) that `quiet: auto` chooses, except for slow rates.
const QUIET_AUTO: Nanos = Nanos::from_secs(1);
/// Longest quiet interval (silence before the measurement) that `quiet: auto` chooses for slow rates.
const QUIET_AUTO_SLOW: Nanos = Nanos::from_secs(5);
/// At slow rates, the quiet interval that `quiet: auto` chooses is as long as this number of slots (within its limits).
const QUIET_SLOTS: i64 = 20;

/// Number of slots for which a trial needs memory, and number of warm-up slots among them.
pub(super) fn slots(spec: &TrialSpec) -> (u64, u64) {
    let p = match &spec.measure {
        Measure::PingPong(p) => p,
        Measure::Flow(f) => return (flow::rows(f, spec.rate), 0),
    };
    let measured = match (p.length, spec.rate) {
        (length, Rate::Period(period)) => length.most_slots(period.0),
        (Length::Duration(d), Rate::Max) => {
            let most = if spec.collect == Collect::Live { u64::MAX >> 16 } else { MOST_SLOTS };
            ((d.0 / FASTEST_ROUND_TRIP_NS).max(1) as u64).min(most)
        }
        (Length::Slots(n) | Length::Loops(n), Rate::Max) => n,
    };
    (measured + p.warm_up_slots, p.warm_up_slots)
}

/// Expected time of all slots of a trial.
fn slots_time(spec: &TrialSpec) -> Nanos {
    let p = match &spec.measure {
        Measure::PingPong(p) => p,
        Measure::Flow(f) => return f.whole(),
    };
    match (p.length, spec.rate) {
        (length, Rate::Period(period)) => Nanos((length.planned_slots(period.0) + p.warm_up_slots) as i64 * period.0),
        (Length::Duration(d), Rate::Max) => d,
        (Length::Slots(n) | Length::Loops(n), Rate::Max) => Nanos(n as i64 * 50_000),
    }
}

/// True if the driver of the trial provides a scripted clock.
pub(super) fn is_scripted(spec: &TrialSpec) -> bool {
    spec.driver.options.get("clock").is_some_and(|c| c == "scripted")
}

/// Length of the quiet interval before the slots, in which the ends send nothing.
pub(super) fn quiet(spec: &TrialSpec) -> Nanos {
    let whole = slots_time(spec);
    match spec.quiet {
        // With a scripted clock, nothing is sent over the path, and the whole trial takes no time.
        _ if is_scripted(spec) => Nanos(0),
        Quiet::Off => Nanos(0),
        Quiet::Same => whole,
        Quiet::For(time) => time,
        Quiet::Auto => {
            let slots = spec.rate.period().map_or(0, |p| p.0.saturating_mul(QUIET_SLOTS));
            whole.min(Nanos(slots.clamp(QUIET_AUTO.0, QUIET_AUTO_SLOW.0)))
        }
    }
}

/// Expected time from the moment at which the ends have found each other to the end of the trial.
pub(super) fn expected(spec: &TrialSpec) -> Nanos {
    if spec.has_tool() {
        return tool_time(spec);
    }
    Nanos(slots_time(spec).0 + quiet(spec).0)
}

/// Longest time that the slots of a trial may take, if every answer of stop-and-wait is lost or a sender falls behind.
pub(super) fn limit(spec: &TrialSpec) -> Duration {
    let p = match &spec.measure {
        Measure::PingPong(p) => p,
        Measure::Flow(f) => return flow::limit(f),
    };
    let slots = slots(spec).0 as i64;
    let worst = match (p.length, spec.rate) {
        (Length::Slots(_) | Length::Loops(_), Rate::Max) => {
            slots.saturating_mul(p.timeout.0).min(24 * 3_600 * 1_000_000_000)
        }
        (Length::Duration(d), Rate::Max) => d.0 + p.warm_up_slots as i64 * p.timeout.0,
        (Length::Loops(_), Rate::Period(period)) => slots.saturating_mul(period.0),
        _ => slots_time(spec).0.saturating_mul(2),
    };
    Nanos(worst.saturating_add(4 * p.timeout.0)).duration() + Duration::from_secs(30)
}

/// Number of whole seconds for which a tool is asked to run.
pub(super) fn tool_seconds(spec: &TrialSpec) -> u64 {
    let ns = match &spec.measure {
        Measure::Flow(flow) => flow.window.0,
        Measure::PingPong(p) => match (p.length, spec.rate) {
            (Length::Duration(d), _) => d.0,
            (Length::Slots(n) | Length::Loops(n), Rate::Period(period)) => (n as i64).saturating_mul(period.0),
            (Length::Slots(_) | Length::Loops(_), Rate::Max) => 0,
        },
    };
    (ns as u64).div_ceil(1_000_000_000).max(1)
}

/// Time for which a tool's program is asked to measure in a trial.
pub(super) fn tool_time(spec: &TrialSpec) -> Nanos {
    Nanos::from_secs(tool_seconds(spec) as i64)
}

/// Time from the start of a tool's program after which the program is killed.
pub(super) fn tool_limit(spec: &TrialSpec) -> Nanos {
    Nanos(tool_time(spec).0 + TOOL_MARGIN_NS)
}
