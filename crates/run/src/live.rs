//! `collect: live`: how large the ring is, and how long a row stays in it.

use tailbound_model::{Rate, TrialSpec};

/// The supervisor drains this often.
pub(crate) const TURN_NS: i64 = 100_000_000;
/// What the ring has beside the rows that are not settled yet: the time that a drain may be late.
const SPARE_NS: i64 = 2_000_000_000;
/// Memory per end that nobody misses: slow rates get more spare time for it.
const SMALL_OCTETS: u64 = 2 << 20;

/// How long after its sending a slot waits for its answer before it is stored: twice the timeout, as after the last slot
/// of a trial, and two turns.
pub(crate) fn settle_ns(spec: &TrialSpec) -> i64 {
    2 * spec.measure.timeout().0 + 2 * TURN_NS
}

/// Cells of a ring: a power of two.
pub(crate) fn ring_cells(spec: &TrialSpec) -> u64 {
    let period_ns = match spec.rate {
        Rate::Period(period) => period.0.max(1),
        Rate::Max => crate::controller::FASTEST_ROUND_TRIP_NS,
    };
    let needed = (settle_ns(spec) + TURN_NS + SPARE_NS) / period_ns + 1;
    let small = SMALL_OCTETS / size_of::<tailbound_model::SenderCell>() as u64;
    (needed as u64).max(small / 2 + 1).next_power_of_two()
}
