//! Two clocks with a known offset and drift: the bounds must enclose them, and steps must be found.

use crate::random::Random;
use tailbound_stats::{ClockBounds, NoBounds, TwoClocks};

const SECOND: i64 = 1_000_000_000;

/// A clock that is `ahead(t)` ns ahead of the other clock, where `t` is the true time in ns.
struct Clock<F: Fn(i64) -> i64> {
    ahead: F,
}

/// The true times of a simulated round trip, in ns.
struct Trip {
    sent: i64,
    arrived: i64,
    answered: i64,
    back: i64,
}

/// Simulates 1,000 round trips per second for `seconds` seconds; the way back takes longer than the way out.
fn trips(seconds: i64, seed: u64) -> Vec<Trip> {
    let mut random = Random::seeded(seed);
    let mut delay = |least: f64, mean: f64| (least + mean * random.exponential()) as i64;
    (0..seconds * 1_000)
        .map(|k| {
            let sent = k * 1_000_000 + 7_777_777_777_777;
            let arrived = sent + delay(12_000.0, 8_000.0);
            let answered = arrived + 3_000;
            Trip { sent, arrived, answered, back: answered + delay(31_000.0, 40_000.0) }
        })
        .collect()
}

fn seen<F: Fn(i64) -> i64>(trips: &[Trip], clock: &Clock<F>) -> Result<ClockBounds, NoBounds> {
    let b = |t: i64| t + (clock.ahead)(t);
    let mut two = TwoClocks::default();
    for trip in trips {
        two.there(trip.sent, b(trip.arrived));
        two.back(b(trip.answered), trip.back);
    }
    two.bounds()
}

#[test]
fn the_true_offset_drift_and_legs_lie_within_the_bounds() {
    for seed in 0..40 {
        let mut random = Random::seeded(1_000 + seed);
        let offset = ((random.unit() - 0.5) * 4e18) as i64;
        // A drift as large as crystals and time services cause.
        let drift = (random.unit() - 0.5) * 400_000.0;
        let ahead = |t: i64| offset + (drift * (t - 7_777_777_777_777) as f64 / 1e9) as i64;
        let trips = trips(1 + seed as i64 % 7, seed);
        let bounds = seen(&trips, &Clock { ahead }).unwrap();
        let [slow, fast] = bounds.drift_ns_per_s();
        assert!(slow <= drift && drift <= fast, "seed {seed}: {drift} in {slow} to {fast}");
        let mut widest = 0;
        for trip in &trips {
            let (arrived, answered) = (trip.arrived + ahead(trip.arrived), trip.answered + ahead(trip.answered));
            let [low, high] = bounds.offset_ns(trip.sent);
            let at = ahead(trip.sent);
            assert!(low <= at && at <= high, "seed {seed}: {at} in {low} to {high}");
            let [least, most] = bounds.there_ns(trip.sent, arrived);
            let took = trip.arrived - trip.sent;
            // Timestamps are whole nanoseconds.
            assert!(least <= took + 1 && took <= most + 1, "seed {seed}: {took} in {least} to {most}");
            let [least, most] = bounds.back_ns(answered, trip.back);
            let took = trip.back - trip.answered;
            assert!(least <= took + 1 && took <= most + 1, "seed {seed}: {took} in {least} to {most}");
            widest = widest.max(high - low);
        }
        // The fastest messages took 12 us out and 31 us back, so the bounds cannot be narrower than that.
        assert!((43_000..70_000).contains(&widest), "seed {seed}: {widest}");
    }
}

/// Test: if the clock difference follows the middle one or an outermost one of the lines that are possible, no message takes
/// less than zero time; and the outermost lines reach the bounds.
#[test]
fn lines_between_clocks_are_possible_and_reach_the_bounds() {
    for seed in 0..20 {
        let drift = (seed as f64 - 10.0) * 20_000.0;
        let ahead = |t: i64| -3 * SECOND + (drift * (t - 7_777_777_777_777) as f64 / 1e9) as i64;
        let trips = trips(1 + seed as i64 % 3, seed);
        let bounds = seen(&trips, &Clock { ahead }).unwrap();
        let times = [trips[0].sent, trips[trips.len() - 1].sent];
        let lines = bounds.extremes(times.into_iter());
        assert!((2..=6).contains(&lines.len()), "seed {seed}: {lines:?}");
        for line in lines.iter().chain([&bounds.middle()]) {
            for trip in &trips {
                let at = |true_ns: i64| line.at_a_ns(true_ns + ahead(true_ns));
                assert!(
                    trip.sent <= at(trip.arrived) + 2 && at(trip.answered) <= trip.back + 2,
                    "seed {seed}: {line:?}"
                );
                assert!(
                    (line.at_b_ns(at(trip.arrived)) - trip.arrived - ahead(trip.arrived)).abs() <= 1,
                    "seed {seed}"
                );
            }
        }
        for at_a in times {
            let [low, high] = bounds.offset_ns(at_a);
            let offsets = || lines.iter().map(|line| line.at_b_ns(at_a) - at_a);
            let (least, most) = (offsets().min().unwrap(), offsets().max().unwrap());
            assert!(least - low <= 1 && high - most <= 1, "seed {seed}: {least} to {most}, not {low} to {high}");
            let middle = bounds.middle().at_b_ns(at_a) - at_a;
            assert!(low < middle && middle < high, "seed {seed}: {middle} in {low} to {high}");
        }
    }
}

#[test]
fn a_step_and_a_slew_are_seen() {
    for ns in [-200_000, 200_000] {
        let trips = trips(6, 3);
        let step_at = trips[2_500].sent;
        let stepped = Clock { ahead: |t| if t < step_at { 5 * SECOND } else { 5 * SECOND + ns } };
        assert_eq!(seen(&trips, &stepped), Err(NoBounds::Crossed));
        // The messages before the step and the messages after it have bounds, and these bounds differ by the step.
        let [before, after] = [&trips[..2_499], &trips[2_500..]].map(|part| seen(part, &stepped).unwrap());
        let [_, most] = before.offset_ns(step_at);
        let [least, _] = after.offset_ns(step_at);
        assert!(if ns > 0 { most < least } else { before.offset_ns(step_at)[0] > after.offset_ns(step_at)[1] });
        // The kernel's fastest slew for the last two seconds.
        let slewed = Clock { ahead: |t| (t - trips[4_000].sent).max(0) / 2_000 * ns.signum() };
        assert_eq!(seen(&trips, &slewed), Err(NoBounds::Crossed));
    }
}

#[test]
fn a_step_below_the_resolution_does_not_widen_the_bounds() {
    let trips = trips(6, 9);
    let step_at = trips[3_000].sent;
    let clock = Clock { ahead: |t| if t < step_at { 0 } else { 10_000 } };
    let bounds = seen(&trips, &clock).unwrap();
    for trip in &trips {
        let [low, high] = bounds.offset_ns(trip.sent);
        assert!(high - low < 60_000 && low <= 43_000 && high >= -33_000);
    }
}

#[test]
fn one_direction_proves_nothing() {
    let mut two = TwoClocks::default();
    assert_eq!(two.bounds(), Err(NoBounds::OneWay));
    two.there(1, 2);
    assert_eq!(two.bounds(), Err(NoBounds::OneWay));
    two.back(3, 4);
    // Between -1 - 1 and 1 + 1: the resolution of the stamps on either side.
    assert_eq!(two.bounds().unwrap().offset_ns(1).map(|ns| ns.abs() <= 3), [true, true]);
}

#[test]
fn millions_of_messages_leave_a_few() {
    let mut two = TwoClocks::default();
    let mut random = Random::seeded(5);
    for k in 0..2_000_000 {
        let there = (10_000.0 + 5_000.0 * random.exponential()) as i64;
        two.there(k * 100_000, k * 100_000 + 77 + there);
        two.back(k * 100_000 + 77 + there, k * 100_000 + 2 * there);
    }
    let [low, high] = two.bounds().unwrap().offset_ns(SECOND);
    assert!(low <= 77 && 77 <= high && high - low < 20_100, "{low} to {high}");
}
