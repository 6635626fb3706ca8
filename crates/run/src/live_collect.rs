//! `collect: live`: computes the size of the sample ring, and the time for which a row of samples stays in the ring.

use tailbound_model::{Rate, TrialSpec};

/// Shortest round trip that stop-and-wait has sample memory for, ns. No driver answers faster.
pub(crate) const FASTEST_ROUND_TRIP_NS: i64 = 2_000;
/// Period in which the supervisor drains the rings of sample memory, ns.
pub(crate) const DRAIN_PERIOD_NS: i64 = 100_000_000;
/// Longest delay of a drain, ns: a ring has room for the rows of this time.
const SPARE_NS: i64 = 2_000_000_000;
/// Memory that the ring of an end may always use, in bytes. At slow rates this memory gives the drain more spare time.
const SMALL_BYTES: u64 = 2 << 20;

/// Time from the sending of a slot until its row may be stored, ns: twice the timeout, as after the last slot of a
/// trial, plus two drain periods.
pub(crate) fn settle_ns(spec: &TrialSpec) -> i64 {
    2 * spec.measure.timeout().0 + 2 * DRAIN_PERIOD_NS
}

/// Number of cells of the sample ring of one end, a power of two.
pub(crate) fn ring_cells(spec: &TrialSpec) -> u64 {
    let small = SMALL_BYTES / size_of::<tailbound_model::SenderCell>() as u64;
    needed_cells(spec).max(small / 2 + 1).next_power_of_two()
}

/// Smallest number of cells of the sample ring of one end, a power of two. A trial that may end early has this ring,
/// because it ends when its ring is full.
pub(crate) fn smallest_ring_cells(spec: &TrialSpec) -> u64 {
    needed_cells(spec).next_power_of_two()
}

fn needed_cells(spec: &TrialSpec) -> u64 {
    let period_ns = match spec.rate {
        Rate::Period(period) => period.0.max(1),
        Rate::Max => FASTEST_ROUND_TRIP_NS,
    };
    ((settle_ns(spec) + DRAIN_PERIOD_NS + SPARE_NS) / period_ns + 1) as u64
}
