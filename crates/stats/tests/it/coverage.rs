//! Simulated coverage: the intervals enclose the true quantile as often as promised.
//!
//! Fixed seeds: the outcome is the same on every machine.

use crate::random::Random;
use tailbound_stats::{
    Bound, CONFIDENCE, Distribution, Estimate, Quantile, RankInterval, exact_coverage, interval_ranks, needs,
};

const RUNS: u32 = 10_000;

/// Numbers of slots for the simulations: 1, 1.5, 2 and 10 times the smallest number for which the quantile has an
/// interval.
fn sizes(q: Quantile) -> [u64; 4] {
    let needs = needs(q);
    [needs, needs * 3 / 2, needs * 2, needs * 10]
}

/// Asserts that the simulated share of runs whose interval contains the quantile is within 3 standard errors of the
/// exact share.
fn assert_close(covered: u32, n: u64, ranks: RankInterval, q: Quantile) {
    let exact = exact_coverage(n, ranks, q);
    assert!(exact >= CONFIDENCE, "{q} of {n}: exact {exact}");
    let simulated = f64::from(covered) / f64::from(RUNS);
    let standard_error = (exact * (1.0 - exact) / f64::from(RUNS)).sqrt();
    assert!(
        (simulated - exact).abs() <= 3.0 * standard_error,
        "{q} of {n}: simulated {simulated}, exact {exact}, standard error {standard_error}"
    );
}

/// Draws how many of `n` uniform values lie above `q`, from the geometric gaps between these values.
fn count_above(random: &mut Random, n: u64, q: f64) -> u64 {
    let mut above = 0;
    let mut place = 0.0;
    loop {
        place += (random.unit().ln() / q.ln()).floor() + 1.0;
        if place > n as f64 {
            return above;
        }
        above += 1;
    }
}

/// Whether two order statistics enclose the true quantile depends only on how many values lie below the quantile.
#[test]
fn ranks_cover_as_computed() {
    let mut random = Random::seeded(1);
    for q in [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P99_9] {
        for n in sizes(q) {
            let ranks = interval_ranks(n, q).unwrap();
            let mut covered = 0;
            for _ in 0..RUNS {
                let below = n - count_above(&mut random, n, q.as_f64());
                covered += u32::from((ranks.lower..ranks.upper).contains(&below));
            }
            assert_close(covered, n, ranks, q);
        }
    }
}

/// Draws `n` values many times, reads each set of values in the two passes of a report, and asserts that the intervals
/// in the report enclose the true quantile as often as computed.
///
/// The values are Pareto distributed, 20 us / u, so that their p99 is 2 ms exactly; a slot with the
/// smallest `u` is lost instead.
fn simulate(q: Quantile, n: u64, lost_share: f64, random: &mut Random) {
    let truth_ns = 2_000_000;
    let ranks = interval_ranks(n, q).unwrap();
    let (mut covered, mut covered_rounded) = (0, 0);
    let mut values = Vec::new();
    for _ in 0..RUNS {
        values.clear();
        let mut below = 0;
        let mut distribution = Distribution::new();
        for _ in 0..n {
            let u = random.unit();
            if u <= lost_share {
                distribution.beyond();
                continue;
            }
            let value = (20_000.0 / u) as i64;
            distribution.value(value);
            values.push(value);
            below += u64::from(value <= truth_ns);
        }
        let mut second = distribution.plan(&[q]);
        values.iter().for_each(|&v| second.offer(v));
        let enclosed = (ranks.lower..ranks.upper).contains(&below);
        let enclosed_rounded = match second.finish().unwrap()[0] {
            Estimate::Value { low_ns, high, .. } => low_ns <= truth_ns && high_ns(high) >= truth_ns,
            // No interval is printed: the run counts as its ranks do.
            Estimate::Beyond { .. } => enclosed,
            Estimate::Needs { .. } => panic!("{n} slots are enough for {q}"),
        };
        assert!(enclosed_rounded || !enclosed);
        covered += u32::from(enclosed);
        covered_rounded += u32::from(enclosed_rounded);
    }
    assert_close(covered, n, ranks, q);
    assert!(covered_rounded >= covered);
}

fn high_ns(high: Bound) -> i64 {
    match high {
        Bound::Ns(ns) => ns,
        Bound::Beyond => i64::MAX,
    }
}

#[test]
fn printed_intervals_cover_as_computed() {
    let mut random = Random::seeded(2);
    for n in &sizes(Quantile::P99)[..3] {
        simulate(Quantile::P99, *n, 0.0, &mut random);
    }
}

#[test]
fn printed_intervals_cover_as_computed_with_ten_times_what_is_needed() {
    let mut random = Random::seeded(3);
    simulate(Quantile::P99, sizes(Quantile::P99)[3], 0.0, &mut random);
}

#[test]
fn printed_intervals_cover_as_computed_with_lost_slots() {
    let mut random = Random::seeded(4);
    simulate(Quantile::P99, sizes(Quantile::P99)[1], 0.005, &mut random);
}
