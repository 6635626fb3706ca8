//! The times at which the gate opens and closes, with their intervals.
//!
//! A message that passed soon was sent while the gate was open, so that the gate closed later. Messages that were sent after the
//! gate had closed arrived after it opened. These sides of the intervals are certain; the others follow from the probability
//! with which all messages would have been delayed as they were.

use super::delays::Delays;
use super::folded::{Closed, Folded};
use std::collections::BTreeMap;
use tailbound_stats::{Quantile, interval_ranks};

/// Probability with which an edge is outside of its interval.
const MISSED: f64 = 0.025;
/// Number of the first messages that passed, whose distances show how much earlier the gate can have opened.
const FIRST: usize = 10;

/// A closed part of the cycle, as the shortest way sees it: a message that is sent at the time of an edge and has the shortest
/// way is at the gate when it opens or closes, if the gate is at the begin of the way.
#[derive(Debug)]
pub(super) struct Edges {
    /// Smallest and largest time at which the gate closes, ns.
    pub closes_ns: [f64; 2],
    /// Smallest and largest time at which it opens again, ns.
    pub opens_ns: [f64; 2],
}

/// Shift of the openings of a gate from cycle to cycle, if the cycle is wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drift {
    /// Most likely, smallest and largest shift in a cycle, ns.
    pub at_ns: f64,
    pub low_ns: f64,
    pub high_ns: f64,
}

impl Edges {
    pub fn of(folded: &Folded, part: &Closed, delays: &Delays) -> Edges {
        let closes_ns = [folded.at(part.last).phase_ns, latest_close_ns(folded, part, delays)];
        let passed_ns: Vec<f64> = openings(folded, part, delays).into_values().collect();
        let opens_ns = passed_ns.iter().copied().fold(f64::INFINITY, f64::min);
        Edges { closes_ns, opens_ns: [opens_ns - slack_ns(passed_ns, delays), opens_ns] }
    }
}

/// The latest time at which the gate can have closed, ns: if it had closed later, one of the messages that were sent before would
/// probably have passed soon.
fn latest_close_ns(folded: &Folded, part: &Closed, delays: &Delays) -> f64 {
    let (mut low_ns, mut high_ns) = (folded.at(part.last).phase_ns, folded.at(part.next).phase_ns);
    let all_late = |close_ns: f64| {
        let sent_ns =
            (part.last + 1..part.next).map(|n| folded.at(n).phase_ns).take_while(|sent_ns| *sent_ns < close_ns);
        sent_ns.map(|sent_ns| delays.longer(folded.soon_ns().min(close_ns - sent_ns))).product::<f64>()
    };
    for _ in 0..50 {
        let middle_ns = (low_ns + high_ns) / 2.0;
        if all_late(middle_ns) > MISSED { low_ns = middle_ns } else { high_ns = middle_ns }
    }
    high_ns
}

/// For each cycle in which messages waited for the gate, when the first of them passed, ns: those that were certainly sent while
/// the gate was closed, or all if there are none.
fn openings(folded: &Folded, part: &Closed, delays: &Delays) -> BTreeMap<i64, f64> {
    let closed_ns = latest_close_ns(folded, part, delays);
    let first = |from_ns: f64| {
        let mut found: BTreeMap<i64, f64> = BTreeMap::new();
        for point in (part.last + 1..part.next).map(|n| folded.at(n)).filter(|point| point.phase_ns >= from_ns) {
            let passed_ns = found.entry(point.cycle).or_insert(f64::INFINITY);
            *passed_ns = passed_ns.min(point.passed_ns());
        }
        found
    };
    let found = first(closed_ns);
    if found.is_empty() { first(f64::NEG_INFINITY) } else { found }
}

/// Time by which the first of these messages passed the gate too late, at most, ns: the longest of three.
/// - The median of the delays of messages that found their gate open. The gate itself can be late each time (a timer and a thread of
///   the kernel open it), and no message shows by how much.
/// - The time that, by the delays of messages that found their gate open, the first of this number of messages exceeds with the
///   probability [`MISSED`].
/// - The same by the distances between the first messages. If the share of the messages that are late by up to x grows with x^2
///   (or with x, for which the time is too long), the square of the lateness of the first of k, as a share of the square for the
///   k-th, is the smallest of k - 1 uniform numbers (after Robson & Whitlock, Biometrika 51, 1964, who have k = 2).
fn slack_ns(passed_ns: Vec<f64>, delays: &Delays) -> f64 {
    let by_delays_ns = delays.least_of(passed_ns.len(), MISSED).max(delays.median());
    by_delays_ns.max(by_distances_ns(passed_ns))
}

/// Lateness of the first of these messages by the distances between the first ones, as in [`slack_ns`], ns; 0 for one message.
fn by_distances_ns(mut passed_ns: Vec<f64>) -> f64 {
    passed_ns.sort_by(f64::total_cmp);
    let first = FIRST.min(passed_ns.len());
    if first < 2 {
        return 0.0;
    }
    let share = (1.0 - MISSED.powf(1.0 / (first - 1) as f64)).sqrt();
    (passed_ns[first - 1] - passed_ns[0]) * share / (1.0 - share)
}

/// The shift of the openings of all closed parts; `None` if there are too few. Each opening of the first half of the messages is
/// compared with one of the second half. If the cycle is right, and the delays do not change, these differences are as often above
/// 0 as below, so that the shift is their median, with its distribution-free interval (after Sen, JASA 63, 1968). Because the delays
/// can change, the interval also contains what the first messages of the first and of the last third permit.
pub(super) fn drift(folded: &Folded, closed: &[Closed], delays: &Delays) -> Option<Drift> {
    let (mut shifts_ns, mut longest): (Vec<f64>, Vec<(i64, f64)>) = (Vec::new(), Vec::new());
    for part in closed {
        let all: Vec<(i64, f64)> = openings(folded, part, delays).into_iter().collect();
        let pairs = all.iter().zip(&all[all.len() / 2..]).take(all.len() / 2);
        shifts_ns.extend(pairs.map(|((early, a_ns), (late, b_ns))| (b_ns - a_ns) / (late - early).max(1) as f64));
        if all.len() > longest.len() {
            longest = all;
        }
    }
    shifts_ns.sort_by(f64::total_cmp);
    let ranks = interval_ranks(shifts_ns.len() as u64, Quantile::P50).ok()?;
    let [low_ns, high_ns] = [ranks.lower, ranks.upper].map(|rank| shifts_ns[rank as usize - 1]);
    let [least_ns, most_ns] = shift_of_first(&longest)?;
    let at_ns = shifts_ns[shifts_ns.len() / 2];
    Some(Drift { at_ns, low_ns: low_ns.min(least_ns), high_ns: high_ns.max(most_ns) })
}

/// Smallest and largest shift in a cycle, ns, by the first messages that passed in the first and in the last third of these openings,
/// each with the number of its cycle; `None` if there are too few.
fn shift_of_first(openings: &[(i64, f64)]) -> Option<[f64; 2]> {
    let third = openings.len() / 3;
    let first = |openings: &[(i64, f64)]| {
        let (cycle, ns) = openings.iter().copied().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        Some((cycle, ns, by_distances_ns(openings.iter().map(|(_, ns)| *ns).collect())))
    };
    let (early, early_ns, early_late_ns) = first(&openings[..third])?;
    let (late, late_ns, late_late_ns) = first(&openings[openings.len() - third..])?;
    let (cycles, shift_ns) = ((late - early).max(1) as f64, late_ns - early_ns);
    Some([(shift_ns - late_late_ns) / cycles, (shift_ns + early_late_ns) / cycles])
}
