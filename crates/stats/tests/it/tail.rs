//! Tail estimates of known distributions: intervals enclose the true return levels about as often as promised, and
//! there is no estimate if the late messages have several causes.
//!
//! Fixed seeds: the outcome is the same on every machine.

use crate::random::Random;
use tailbound_stats::{Distribution, NotApplicable, Peaks, TailEstimate, tail_estimate};

/// Type of a function that draws one record: trials, each with values in the order of their slots.
type Draw = fn(&mut Random) -> Vec<Vec<i64>>;

fn estimate(trials: &[Vec<i64>], one_in: u64) -> Result<TailEstimate, NotApplicable> {
    let mut distribution = Distribution::new();
    trials.iter().for_each(|t| distribution.values(t));
    let mut peaks = Peaks::of(&distribution);
    for trial in trials {
        peaks.push_all(trial);
        peaks.end_sequence();
    }
    tail_estimate(&peaks, one_in)
}

/// The value in ns that one value in `rarity` exceeds: a generalised Pareto distribution that begins at 20 us.
fn level(shape: f64, rarity: f64) -> f64 {
    let growth = if shape == 0.0 { rarity.ln() } else { (rarity.powf(shape) - 1.0) / shape };
    20_000.0 + 10_000.0 * growth
}

fn independent(random: &mut Random, n: usize, shape: f64) -> Vec<i64> {
    (0..n).map(|_| level(shape, 1.0 / random.unit()) as i64).collect()
}

/// Draws values in which late messages come in clusters of about `long` messages: each value is the maximum of the last
/// `long` drawn numbers.
fn clustered(random: &mut Random, n: usize, shape: f64, long: usize) -> Vec<i64> {
    // The latest of `long` parts has the wanted distribution if each part has the `long`-th root of its distribution
    // function.
    let parts: Vec<i64> = (0..n + long)
        .map(|_| {
            let below = random.unit().powf(long as f64);
            level(shape, 1.0 / (1.0 - below).max(1e-15)) as i64
        })
        .collect();
    parts.windows(long).take(n).map(|w| *w.iter().max().unwrap()).collect()
}

/// Results of the tail estimates of many simulated records: number of tail estimates, number of estimates whose
/// interval contains the true level, and reasons why there was no estimate.
#[derive(Debug, Default)]
struct Outcome {
    told: usize,
    covered: usize,
    not_applicable: Vec<NotApplicable>,
}

fn outcome(draw: Draw, one_in: u64, truth: f64, runs: usize, seed: u64) -> Outcome {
    let mut random = Random::seeded(seed);
    let mut outcome = Outcome::default();
    for _ in 0..runs {
        match estimate(&draw(&mut random), one_in) {
            Ok(told) => {
                assert!(told.low_ns <= told.level_ns && told.level_ns <= told.high_ns, "{told:?}");
                outcome.told += 1;
                outcome.covered += usize::from(told.low_ns <= truth && truth <= told.high_ns);
            }
            Err(reason) => outcome.not_applicable.push(reason),
        }
    }
    outcome
}

const RUNS: usize = 60;

/// Asserts that nine in ten records have a tail estimate, and that 95 % of their intervals enclose the true level; both
/// limits leave room for chance.
fn assert_covers(draw: Draw, one_in: u64, shape: f64, seed: u64) {
    let found = outcome(draw, one_in, level(shape, one_in as f64), RUNS, seed);
    assert!(found.told * 10 >= RUNS * 9 - 20 && found.covered * 100 >= found.told * 88, "{shape}: {found:?}");
}

/// Draws latencies of which one in `one_in` is later by about `at_ns`, as with a second cause of delay.
fn mixture(random: &mut Random, n: usize, one_in: f64, at_ns: f64) -> Vec<i64> {
    let value = |random: &mut Random| {
        let far = if random.unit() < 1.0 / one_in { at_ns * (1.0 + 0.1 * random.normal()) } else { 0.0 };
        (20_000.0 + 10_000.0 * random.exponential() + far) as i64
    };
    (0..n).map(|_| value(random)).collect()
}

#[test]
fn levels_of_known_distributions_are_enclosed() {
    assert_covers(|r| vec![independent(r, 10_000, 0.0)], 100_000, 0.0, 1);
    assert_covers(|r| (0..5).map(|_| independent(r, 2_000, 0.2)).collect(), 100_000, 0.2, 2);
    assert_covers(|r| vec![independent(r, 10_000, -0.25)], 1_000_000, -0.25, 3);
}

#[test]
fn levels_are_enclosed_where_late_messages_come_in_clusters() {
    assert_covers(|r| vec![clustered(r, 16_000, 0.0, 5)], 1_000_000, 0.0, 4);
    assert_covers(|r| vec![clustered(r, 16_000, -0.25, 5)], 100_000, -0.25, 5);
    let one = estimate(&[clustered(&mut Random::seeded(1), 16_000, 0.0, 5)], 100_000).unwrap();
    assert!((0.15..0.3).contains(&one.extremal_index) && one.clusters * 3 < one.exceedances, "{one:?}");
}

#[test]
fn mixed_causes_give_no_tail_estimate() {
    for (draw, least) in [
        // Twenty messages far beyond the others, then four.
        ((|r| vec![mixture(r, 40_000, 2_000.0, 500_000.0)]) as Draw, 25),
        (|r| vec![mixture(r, 40_000, 2_000.0, 150_000.0)], 21),
        (|r| vec![mixture(r, 40_000, 10_000.0, 500_000.0)], 19),
        // Ends abruptly, which no distribution of the family with a regular likelihood does.
        (|r| vec![(0..40_000).map(|_| (20_000.0 + 1e5 * r.unit()) as i64).collect()], 18),
    ] {
        let found = outcome(draw, 1_000_000, 0.0, 25, 6);
        assert!(found.not_applicable.len() >= least, "{found:?}");
    }
}

#[test]
fn records_that_change_give_no_tail_estimate() {
    let uneven: Draw = |r| (0..5).map(|k| independent(r, 4_000, 0.0).iter().map(|v| v + 5_000 * k).collect()).collect();
    let found = outcome(uneven, 1_000_000, 0.0, 25, 7);
    assert!(found.not_applicable.len() >= 23, "{found:?}");
    let trend = |r: &mut Random| {
        (0..20_000).map(|k| (level(0.0, 1.0 / r.unit()) * (1.0 + f64::from(k) / 1e4)) as i64).collect()
    };
    let changes = estimate(&[trend(&mut Random::seeded(8))], 1_000_000);
    assert!(matches!(changes, Err(NotApplicable::Trend | NotApplicable::Uneven)), "{changes:?}");
}

#[test]
fn what_is_refused() {
    let mut random = Random::seeded(9);
    let values = independent(&mut random, 10_000, 0.0);
    let told = |one_in| estimate(std::slice::from_ref(&values), one_in).map(|e| e.one_in);
    assert_eq!(told(1_000_000), Ok(1_000_000));
    assert_eq!(told(1_000_001), Err(NotApplicable::TooFar { most: 1_000_000 }));
    assert_eq!(told(10), Err(NotApplicable::TooNear));
    let few = estimate(&[values[..900].to_vec()], 90_000);
    assert!(matches!(few, Err(NotApplicable::TooFew { clusters: ..50 })), "{few:?}");
    let steps: Vec<i64> = values.iter().map(|v| v / 4_000 * 4_000).collect();
    assert_eq!(estimate(&[steps], 100_000), Err(NotApplicable::Steps { step_ns: 4_000 }));
    assert_eq!(estimate(&[vec![5; 10_000]], 100_000).map(|e| e.one_in), Err(NotApplicable::TooFew { clusters: 0 }));
    let peaks = Peaks::of(&Distribution::new());
    assert_eq!(tail_estimate(&peaks, 10), Err(NotApplicable::TooFar { most: 0 }));
}

#[test]
fn every_reason_is_a_sentence() {
    for (reason, text) in [
        (
            NotApplicable::Unanswered { count: 3 },
            "unanswered messages (3) are later than any time that an estimate could give",
        ),
        (
            NotApplicable::TooFew { clusters: 12 },
            "late messages came in 12 clusters, but an estimate needs at least 50",
        ),
        (
            NotApplicable::TooFar { most: 400 },
            "the messages are too few for this rarity: they allow at most 1 in 400, which is 100 times their number",
        ),
        (
            NotApplicable::BackTest { expected: 10.0, found: 31 },
            "the back-test failed: the first half of the record predicts 10 late clusters in the second half, \
             which has 31",
        ),
    ] {
        assert_eq!(reason.to_string(), text);
    }
}
