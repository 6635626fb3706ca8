//! Tests that the second pass finds the same order statistics as sorting all values.

use crate::random::Random;
use proptest::prelude::*;
use tailbound_stats::{Bucket, Histogram, PassesDiffer, RankOutOfRange, RankPicker};

fn picker(values: &[i64], ranks: &[u64]) -> Result<RankPicker, RankOutOfRange> {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&v| histogram.record(v));
    RankPicker::new(&histogram, ranks)
}

fn picked(values: &[i64], ranks: &[u64]) -> Vec<i64> {
    let mut picker = picker(values, ranks).unwrap();
    values.iter().for_each(|&v| picker.offer(v));
    picker.finish().unwrap()
}

fn sorted(values: &[i64], ranks: &[u64]) -> Vec<i64> {
    let mut all = values.to_vec();
    all.sort_unstable();
    ranks.iter().map(|&rank| all[rank as usize - 1]).collect()
}

#[test]
fn a_bucket_with_more_values_than_nanoseconds_is_counted() {
    let mut random = Random::seeded(7);
    let mut values: Vec<i64> =
        (0..40_000).map(|k| [1_000_000, -1_009_000][k % 2] + (random.unit() * 9_000.0) as i64).collect();
    values.extend([40_000_000_000; 5_000]);
    let ranks: Vec<u64> = (0..1_216).map(|k| 45_000 - 37 * k).collect();
    assert_eq!(picked(&values, &ranks), sorted(&values, &ranks));
}

#[test]
fn no_rank_needs_nothing() {
    assert_eq!(picked(&[1, 2, 3], &[]), []);
    assert_eq!(picked(&[], &[]), []);
}

#[test]
fn a_rank_that_no_value_has_is_refused() {
    for rank in [0, 4] {
        let refused = picker(&[1, 2, 3], &[2, rank]).unwrap_err();
        assert_eq!(refused, RankOutOfRange { rank, count: 3 });
    }
}

#[test]
fn a_second_pass_over_other_values_is_noticed() {
    let (low, high) = (Histogram::bucket_low(1_000), Histogram::bucket_high(1_000));
    for seen in [0, 1, 3] {
        let mut picker = picker(&[1_000, 1_001, 5_000], &[2]).unwrap();
        (0..seen).for_each(|_| picker.offer(1_000));
        let count = 2;
        let bucket = Bucket { low, high, count };
        assert_eq!(picker.finish(), Err(PassesDiffer { bucket, seen }));
    }
}

proptest! {
    #[test]
    fn picking_is_sorting(
        values in prop::collection::vec(
            prop_oneof![
                -10i64..10,
                -2_000i64..2_000,
                50_000i64..50_400,
                any::<i64>(),
                Just(i64::MIN),
                Just(i64::MAX),
                Just(123_456_789),
            ],
            1..300,
        ),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let ranks: Vec<u64> = places.iter().map(|p| p.index(values.len()) as u64 + 1).collect();
        prop_assert_eq!(picked(&values, &ranks), sorted(&values, &ranks));
    }
}
