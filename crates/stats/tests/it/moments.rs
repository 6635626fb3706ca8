//! Tests of moments: one pass gives the same result as two passes over all values.

use proptest::prelude::*;
use tailbound_stats::{Moments, rule_of_three};

fn recorded(values: &[i64]) -> Moments {
    let mut moments = Moments::new();
    values.iter().for_each(|&v| moments.record(v));
    moments
}

fn assert_close(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    let error = (found - expected).abs();
    assert!(error <= 1e-12 * expected.abs(), "{found} is not {expected}");
}

/// Computes mean and sample standard deviation from an exact sum and a second pass over the values.
fn naive(values: &[i64]) -> (f64, f64) {
    let n = values.len() as i128;
    let sum: i128 = values.iter().map(|&v| i128::from(v)).sum();
    let squares = values.iter().map(|&v| {
        let distance = (i128::from(v) * n - sum) as f64 / n as f64;
        distance * distance
    });
    let variance = squares.sum::<f64>() / (n - 1) as f64;
    (sum as f64 / n as f64, variance.sqrt())
}

#[test]
fn what_is_not_there_is_not_given() {
    let none = Moments::new();
    assert_eq!((none.count(), none.mean(), none.min(), none.max()), (0, None, None, None));
    let one = recorded(&[-7]);
    assert_eq!((one.mean(), one.standard_deviation()), (Some(-7.0), None));
    assert_eq!((one.min(), one.max()), (Some(-7), Some(-7)));
    let mut merged = none;
    merged.merge(&one);
    assert_eq!(merged, one);
    merged.merge(&none);
    assert_eq!(merged, one);
}

#[test]
fn a_small_spread_far_from_zero_keeps_its_digits() {
    let base = 1_700_000_000_000_000_000;
    let values: Vec<i64> = (0..100_000).map(|k| base + k % 2).collect();
    let moments = recorded(&values);
    assert_close(moments.standard_deviation(), (0.25f64 * 100_000.0 / 99_999.0).sqrt());
}

#[test]
fn values_from_end_to_end_of_their_type() {
    let values = [i64::MIN, i64::MAX, 0, i64::MIN, i64::MAX];
    let mut together = Moments::new();
    together.record_all(&values);
    assert_eq!(together, recorded(&values));
    together.record_all(&[]);
    assert_eq!(together.count(), 5);
}

#[test]
fn equal_values_have_no_spread() {
    assert_eq!(recorded(&[123_456_789; 1_000]).standard_deviation(), Some(0.0));
}

#[test]
fn the_rule_of_three() {
    assert_eq!(rule_of_three(1_000), 0.003);
    assert_eq!(rule_of_three(3), 1.0);
    assert_eq!(rule_of_three(0), 1.0);
}

proptest! {
    #[test]
    fn streaming_is_two_passes(
        values in prop::collection::vec(prop_oneof![-1_000i64..1_000, any::<i64>()], 2..200),
    ) {
        let moments = recorded(&values);
        let (mean, deviation) = naive(&values);
        prop_assert_eq!(moments.mean(), Some(mean));
        assert_close(moments.standard_deviation(), deviation);
        prop_assert_eq!(moments.min(), values.iter().min().copied());
        prop_assert_eq!(moments.max(), values.iter().max().copied());
    }

    #[test]
    fn many_at_once_are_one_by_one(
        values in prop::collection::vec(-1_000_000_000_000i64..1_000_000_000_000, 2..300),
        offset in -1_000_000_000_000_000_000i64..1_000_000_000_000_000_000,
    ) {
        let values: Vec<i64> = values.into_iter().map(|v| v / 1_000 + offset).collect();
        let one_by_one = recorded(&values);
        let mut together = Moments::new();
        together.record_all(&values);
        prop_assert_eq!((together.count(), together.mean()), (one_by_one.count(), one_by_one.mean()));
        prop_assert_eq!((together.min(), together.max()), (one_by_one.min(), one_by_one.max()));
        assert_close(together.standard_deviation(), one_by_one.standard_deviation().unwrap());
    }

    #[test]
    fn merging_is_recording_everything(
        a in prop::collection::vec(-1_000_000_000i64..1_000_000_000, 1..100),
        b in prop::collection::vec(-1_000_000_000i64..1_000_000_000, 1..100),
    ) {
        let mut merged = recorded(&a);
        merged.merge(&recorded(&b));
        let all = recorded(&[a, b].concat());
        prop_assert_eq!(merged.count(), all.count());
        prop_assert_eq!(merged.mean(), all.mean());
        assert_close(merged.standard_deviation(), all.standard_deviation().unwrap());
    }
}
