//! Simulated coverage where messages depend on each other: intervals from the effective number of slots enclose the
//! true quantile about as often as promised, and intervals for independent slots do not.
//!
//! Fixed seeds: the outcome is the same on every machine.

use crate::random::Random;
use tailbound_stats::{
    Bound, Distribution, Estimate, Exceedance, NeedsMore, Quantile, interval_ranks, interval_ranks_of_dependent, needs,
};

const RUNS: usize = 200;

/// Type of a function that draws one record: trials, each with values in the order of their slots.
type Draw = fn(&mut Random) -> Vec<Vec<i64>>;

/// Shares in per cent: intervals for independent slots, and intervals from the effective number of slots, that enclose
/// the true quantile; records with too little information for an interval; and records that are marked because their
/// dependence is not resolved.
#[derive(Debug)]
struct Coverage {
    independent: f64,
    effective: f64,
    none: f64,
    marked: f64,
}

fn coverage(draw: Draw, q: Quantile, truth: i64, seed: u64) -> Coverage {
    let mut random = Random::seeded(seed);
    let (mut independent, mut effective, mut none, mut marked) = (0, 0, 0, 0);
    for _ in 0..RUNS {
        let trials = draw(&mut random);
        let mut distribution = Distribution::new();
        trials.iter().for_each(|t| distribution.values(t));
        let mut second = distribution.plan(&[q]);
        trials.iter().flatten().for_each(|v| second.offer(*v));
        let estimate = second.finish().unwrap()[0];
        let mut exceedance = Exceedance::new();
        for trial in &trials {
            exceedance.push_all(trial, estimate.value_ns().expect("enough slots"));
            exceedance.end_sequence();
        }
        let worth = exceedance.effective();
        independent += usize::from(encloses(estimate, truth).expect("enough slots"));
        marked += usize::from(worth.unresolved);
        if worth.slots < needs(q) {
            none += 1;
            continue;
        }
        let widened = distribution.widened(estimate, worth.slots);
        effective += usize::from(encloses(widened, truth).expect("enough slots"));
    }
    let share = |n: usize, of: usize| 100.0 * n as f64 / of as f64;
    Coverage {
        independent: share(independent, RUNS),
        effective: share(effective, RUNS - none),
        none: share(none, RUNS),
        marked: share(marked, RUNS),
    }
}

fn encloses(estimate: Estimate, truth: i64) -> Option<bool> {
    let Estimate::Value { low_ns, high, .. } = estimate else { return None };
    let above = match high {
        Bound::Ns(ns) => ns >= truth,
        Bound::Beyond => true,
    };
    Some(low_ns <= truth && above)
}

/// Draws latencies whose logarithms are a Gaussian AR(1) process: log-normal with median 1 ms.
fn ar1(random: &mut Random, n: usize, phi: f64) -> Vec<i64> {
    let mut x = random.normal();
    let step = (1.0 - phi * phi).sqrt();
    (0..n)
        .map(|_| {
            x = phi * x + step * random.normal();
            (1e6 * (0.3 * x).exp()) as i64
        })
        .collect()
}

/// Draws latencies with stalls: one in `every` messages begins a stall, which lasts about `long` messages. Each message
/// is late by the remaining time of the stall.
fn stalls(random: &mut Random, n: usize, every: f64, long: f64) -> Vec<i64> {
    let mut left = 0.0f64;
    (0..n)
        .map(|_| {
            if random.unit() < 1.0 / every {
                left = left.max(long * random.exponential());
            }
            let late = 20_000.0 * left;
            left = (left - 1.0).max(0.0);
            (50_000.0 + 10_000.0 * random.exponential() + late) as i64
        })
        .collect()
}

/// Draws trials with a different level of latency in each trial.
fn uneven(random: &mut Random, trials: usize) -> Vec<Vec<i64>> {
    let trial = |random: &mut Random| {
        let level = 0.2 * random.normal();
        (0..2_000).map(|_| (1e6 * (level + 0.3 * random.normal()).exp()) as i64).collect()
    };
    (0..trials).map(|_| trial(random)).collect()
}

/// The quantile of the log-normal latencies, in ns, that corresponds to a quantile of the normal distribution.
fn log_normal(z: f64) -> i64 {
    (1e6 * (0.3 * z).exp()) as i64
}

const Z_99: f64 = 2.326_348;

fn assert_covers(c: &Coverage, low: f64) {
    assert!((low..=99.0).contains(&c.effective), "{c:?}");
}

#[test]
fn independent_messages_keep_their_intervals() {
    for (q, z) in [(Quantile::P50, 0.0), (Quantile::P99, Z_99)] {
        let c = coverage(|r| vec![ar1(r, 2_000, 0.0)], q, log_normal(z), 1);
        assert_covers(&c, 93.0);
        assert!((c.effective - c.independent).abs() < 1.5 && c.marked < 2.0 && c.none < 2.0, "{c:?}");
    }
}

#[test]
fn slowly_fading_dependence_is_covered() {
    for (draw, q, z) in [
        ((|r| vec![ar1(r, 6_000, 0.9)]) as Draw, Quantile::P50, 0.0),
        (|r| vec![ar1(r, 10_000, 0.9)], Quantile::P99, Z_99),
        (|r| (0..5).map(|_| ar1(r, 2_000, 0.9)).collect(), Quantile::P99, Z_99),
        (|r| vec![ar1(r, 20_000, 0.99)], Quantile::P50, 0.0),
    ] {
        let c = coverage(draw, q, log_normal(z), 2);
        assert_covers(&c, 92.0);
        assert!(c.independent < 75.0 && c.marked < 2.0 && c.none < 5.0, "{c:?}");
    }
}

/// Test: intervals enclose true quantiles, which were computed from twenty million simulated messages.
#[test]
fn stalls_are_covered() {
    for (draw, q, truth) in [
        ((|r| vec![stalls(r, 20_000, 500.0, 20.0)]) as Draw, Quantile::P99, 626_167),
        (|r| (0..4).map(|_| stalls(r, 10_000, 500.0, 5.0)).collect(), Quantile::P99, 107_659),
        (|r| (0..5).map(|_| stalls(r, 20_000, 1_000.0, 5.0)).collect(), Quantile::P99_9, 230_152),
    ] {
        let c = coverage(draw, q, truth, 3);
        assert_covers(&c, 91.0);
        assert!(c.independent < 65.0, "{c:?}");
    }
}

#[test]
fn trials_that_differ_are_covered_or_marked() {
    let (median, p99) = (log_normal(0.0), (1e6 * (0.13f64.sqrt() * Z_99).exp()) as i64);
    let few = coverage(|r| uneven(r, 3), Quantile::P50, median, 4);
    assert!(few.independent < 25.0 && few.effective > 50.0 && few.marked > 90.0, "{few:?}");
    let c = coverage(|r| uneven(r, 8), Quantile::P50, median, 5);
    assert_covers(&c, 92.0);
    assert!(c.independent < 25.0 && c.marked < 5.0, "{c:?}");
    let c = coverage(|r| uneven(r, 8), Quantile::P99, p99, 6);
    // Most records have no interval, and few of all mislead.
    assert!((100.0 - c.effective) * (100.0 - c.none) < 800.0 && c.none > 30.0, "{c:?}");
}

#[test]
fn a_single_stall_is_not_a_tail() {
    let mut slots = vec![false; 10_000];
    slots[4_000..4_100].fill(true);
    let mut exceedance = Exceedance::new();
    slots.iter().for_each(|x| exceedance.push(*x));
    let worth = exceedance.effective();
    assert!(worth.slots < 200, "{worth:?}");
    let mut distribution = Distribution::new();
    (0..10_000).for_each(|v| distribution.value(v));
    let estimate = Estimate::Value { q: Quantile::P99, value_ns: 9_899, low_ns: 9_800, high: Bound::Ns(9_950) };
    let Estimate::Value { value_ns: 9_899, low_ns, high: Bound::Ns(high_ns), .. } =
        distribution.widened(estimate, worth.slots)
    else {
        panic!("the value stays");
    };
    assert!(low_ns < 9_800 && high_ns >= 9_999, "as wide as can be: {low_ns} to {high_ns}");
    assert_eq!(distribution.widened(Estimate::Beyond { q: Quantile::P99 }, 1), Estimate::Beyond { q: Quantile::P99 });
}

#[test]
fn ranks_spread_with_the_worth_and_never_draw_together() {
    for q in [Quantile::P50, Quantile::P90, Quantile::P99] {
        let n = 100_000;
        let whole = interval_ranks(n, q).unwrap();
        assert_eq!(interval_ranks_of_dependent(n, n, q), Ok(whole));
        let mut before = whole;
        for worth in [50_000, 9_999, 2_000, 400] {
            let wider = interval_ranks_of_dependent(n, worth, q).unwrap();
            assert!(wider.lower < before.lower && wider.upper > before.upper, "{q} {worth}: {wider:?}");
            assert!(wider.lower >= 1 && wider.upper <= n);
            before = wider;
        }
        let worth = needs(q) - 1;
        let Err(NeedsMore { needs: more }) = interval_ranks_of_dependent(n, worth, q) else { panic!("{q}") };
        assert_eq!(more, n * needs(q) / worth);
    }
}
