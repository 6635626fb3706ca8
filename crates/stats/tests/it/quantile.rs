//! Tests that quantiles and their ranks are computed as exact decimals, without rounding errors.

use proptest::prelude::*;
use tailbound_stats::{Quantile, QuantileError};

fn q(text: &str) -> Quantile {
    text.parse().unwrap()
}

#[test]
fn ranks_have_no_floating_point_error() {
    for (quantile, n, rank) in [
        (Quantile::P99, 100, 99), // 0.99 * 100.0 is above 99 in some spellings
        (Quantile::P99, 101, 100),
        (Quantile::P99, 1, 1),
        (Quantile::P99, 0, 0),
        (Quantile::P50, 1, 1),
        (Quantile::P50, 2, 1),
        (Quantile::P50, 3, 2),
        (q("0.07"), 100, 7), // 0.07 * 100.0 = 7.000000000000001
        (q("0.29"), 100, 29),
        (q("0.000000001"), 5, 1),
        (Quantile::P99_9, 1_000, 999),
        (Quantile::P99_99, 10_000_000, 9_999_000),
        (q("0.999999999"), 1_000_000_000, 999_999_999),
        (q("0.999999999"), u64::MAX, u64::MAX - u64::MAX / 1_000_000_000),
    ] {
        assert_eq!(quantile.rank(n), rank, "{quantile} of {n}");
    }
}

#[test]
fn decimals_and_labels_are_read_and_written() {
    for (text, parts, decimal, label) in [
        ("0.5", 500_000_000_000_000, "0.5", "p50"),
        (".99", 990_000_000_000_000, "0.99", "p99"),
        ("0.9900", 990_000_000_000_000, "0.99", "p99"),
        ("p99.9", 999_000_000_000_000, "0.999", "p99.9"),
        ("p5", 50_000_000_000_000, "0.05", "p5"),
        ("p0.1", 1_000_000_000_000, "0.001", "p0.1"),
        ("0.123456789", 123_456_789_000_000, "0.123456789", "p12.3456789"),
        ("0.9999999999", 999_999_999_900_000, "0.9999999999", "p99.99999999"),
        ("0.999999999999999", 999_999_999_999_999, "0.999999999999999", "p99.9999999999999"),
    ] {
        let quantile = q(text);
        assert_eq!(quantile.parts(), parts);
        assert_eq!(quantile.to_string(), decimal);
        assert_eq!(quantile.label(), label);
    }
}

#[test]
fn what_is_not_a_quantile_is_refused() {
    use QuantileError::{NotADecimal, OutOfRange, TooFine};
    for (text, error) in [
        ("", NotADecimal),
        (".", NotADecimal),
        ("p", NotADecimal),
        ("-0.5", NotADecimal),
        ("1e-3", NotADecimal),
        ("0.9.9", NotADecimal),
        ("0", OutOfRange),
        ("1", OutOfRange),
        ("1.0", OutOfRange),
        ("p100", OutOfRange),
        ("99", OutOfRange),
        ("99999999999999999999", OutOfRange),
        ("0.9999999999999999", TooFine),
    ] {
        assert_eq!(text.parse::<Quantile>(), Err(error), "{text:?}");
    }
    for x in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY, 1e-16, 0.999_999_999_999_999_9] {
        assert_eq!(Quantile::from_f64(x), Err(OutOfRange), "{x}");
    }
}

proptest! {
    #[test]
    fn every_quantile_survives_its_spellings(parts in 1u64..1_000_000_000_000_000) {
        let quantile = Quantile::from_parts(parts).unwrap();
        prop_assert_eq!(quantile.to_string().parse(), Ok(quantile));
        prop_assert_eq!(quantile.label().parse(), Ok(quantile));
        prop_assert_eq!(Quantile::from_f64(quantile.as_f64()), Ok(quantile));
    }

    #[test]
    fn the_rank_is_the_smallest_that_covers_the_share(parts in 1u64..1_000_000_000_000_000, n in 1u64..1 << 40) {
        let rank = u128::from(Quantile::from_parts(parts).unwrap().rank(n));
        let share = u128::from(parts) * u128::from(n);
        prop_assert!(rank * 1_000_000_000_000_000 >= share);
        prop_assert!((rank - 1) * 1_000_000_000_000_000 < share);
    }
}
