//! Tests that the ranks of quantile intervals agree with sums that use neither logarithms nor series.

use tailbound_stats::{CONFIDENCE, NeedsMore, Quantile, RankInterval, exact_coverage, interval_ranks, needs};

fn q(text: &str) -> Quantile {
    text.parse().unwrap()
}

fn ranks(lower: u64, upper: u64) -> RankInterval {
    RankInterval { lower, upper }
}

/// Converts the probabilities P(X = k) of a binomial distribution of n Bernoulli trials into the probabilities for n +
/// 1 Bernoulli trials; the computation has only positive terms.
fn add_trial(probabilities: &mut Vec<f64>, q: f64) {
    probabilities.push(0.0);
    for k in (0..probabilities.len()).rev() {
        let hit = if k > 0 { probabilities[k - 1] * q } else { 0.0 };
        probabilities[k] = probabilities[k] * (1.0 - q) + hit;
    }
}

#[test]
fn the_samples_a_quantile_needs() {
    for (quantile, slots) in [
        (Quantile::P50, 6),
        (Quantile::P90, 36),
        (Quantile::P99, 368),
        (Quantile::P99_9, 3_688),
        (Quantile::P99_99, 36_887),
        (Quantile::P99_999, 368_887),
        (q("0.1"), 36),
        (q("0.01"), 368),
    ] {
        assert_eq!(needs(quantile), slots, "{quantile}");
        let fewer = interval_ranks(slots - 1, quantile);
        assert_eq!(fewer, Err(NeedsMore { needs: slots }));
        let enough = interval_ranks(slots, quantile).unwrap();
        let p = quantile.as_f64();
        if p >= 0.5 {
            assert_eq!(enough.upper, slots, "{quantile}");
        }
        if p <= 0.5 {
            assert_eq!(enough.lower, 1, "{quantile}");
        }
    }
}

#[test]
fn ranks_and_coverage_match_plain_sums_up_to_200_slots() {
    for text in ["0.02", "0.1", "0.25", "0.4", "0.5", "0.63", "0.75", "0.9", "0.95", "0.98", "0.99"] {
        let quantile = q(text);
        let mut probabilities = vec![1.0];
        for n in 1..=200u64 {
            add_trial(&mut probabilities, quantile.as_f64());
            let at_most = |k: u64| probabilities[..=k as usize].iter().sum::<f64>();
            let at_least = |k: u64| probabilities[k as usize..].iter().rev().sum::<f64>();
            let lower = (1..=n).rev().find(|&l| at_most(l - 1) <= 0.025);
            let upper = (1..=n).find(|&u| at_least(u) <= 0.025);
            let expected = lower.zip(upper).map(|(l, u)| ranks(l, u));
            let found = interval_ranks(n, quantile).ok();
            assert_eq!(found, expected, "{quantile} of {n}");
            if let Some(found) = found {
                let plain: f64 = probabilities[found.lower as usize..found.upper as usize].iter().sum();
                let exact = exact_coverage(n, found, quantile);
                assert!((exact - plain).abs() < 1e-13, "{quantile} of {n}: {exact}");
            }
        }
    }
}

#[test]
fn coverage_of_any_two_ranks_matches_plain_sums() {
    let quantile = q("0.3");
    let mut probabilities = vec![1.0];
    for _ in 0..40 {
        add_trial(&mut probabilities, 0.3);
    }
    for lower in 0..=41usize {
        for upper in lower..=41 {
            let plain: f64 = probabilities[lower..upper].iter().sum();
            let exact = exact_coverage(40, ranks(lower as u64, upper as u64), quantile);
            assert!((exact - plain).abs() < 1e-13, "{lower}..{upper}: {exact}");
        }
    }
}

/// The expected values were computed from log-gamma and tail sums with 50 digits (mpmath 1.3), to twelve decimals.
#[test]
fn many_slots_match_a_calculation_with_fifty_digits() {
    for (n, text, lower, upper, coverage) in [
        (100_000, "0.5", 49_690, 50_311, 0.950_444_285_330),
        (100_000, "0.99", 98_938, 99_062, 0.951_233_861_297),
        (100_000, "0.999", 99_880, 99_920, 0.954_789_056_802),
        (10_000_000, "0.5", 4_996_901, 5_003_100, 0.950_038_792_967),
        (10_000_000, "0.99", 9_899_383, 9_900_617, 0.950_115_852_979),
        (10_000_000, "0.999", 9_989_804, 9_990_196, 0.950_120_375_466),
        (10_000_000, "0.99999", 9_999_880, 9_999_920, 0.954_682_570_169),
        (1_000_000_000, "0.5", 499_969_010, 500_030_991, 0.950_005_532_443),
        (1_000_000_000, "0.99", 989_993_833, 990_006_167, 0.950_004_358_853),
        (1_000_000_000, "0.999", 998_998_041, 999_001_960, 0.950_060_372_312),
        (1_000_000_000, "0.99999", 999_989_804, 999_990_197, 0.950_589_780_236),
    ] {
        let quantile = q(text);
        let found = interval_ranks(n, quantile).unwrap();
        assert_eq!(found, ranks(lower, upper), "{quantile} of {n}");
        let exact = exact_coverage(n, found, quantile);
        assert!((exact - coverage).abs() < 1e-11, "{quantile} of {n}: {exact}");
    }
}

#[test]
fn coverage_is_never_below_the_promise_and_the_rank_lies_inside() {
    for text in ["0.001", "0.05", "0.3", "0.5", "0.8", "0.9", "0.99", "0.999", "0.9999"] {
        let quantile = q(text);
        let mut n = needs(quantile);
        while n < 2_000_000 {
            let found = interval_ranks(n, quantile).unwrap();
            let exact = exact_coverage(n, found, quantile);
            assert!(exact >= CONFIDENCE, "{quantile} of {n}: {exact}");
            let rank = quantile.rank(n);
            assert!((found.lower..=found.upper).contains(&rank));
            // One rank narrower on a side breaks the promise of that side.
            let open = |lower, upper| exact_coverage(n, ranks(lower, upper), quantile);
            assert!(open(found.lower + 1, n + 1) < 0.975);
            assert!(open(0, found.upper - 1) < 0.975);
            n += 1 + n / 7;
        }
    }
}
