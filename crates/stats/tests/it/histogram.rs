//! Tests that histogram buckets cover every value without gaps, and that histograms can be merged by addition.

use proptest::prelude::*;
use tailbound_stats::{Bucket, BucketIndex, Histogram, RankedBucket, round_outward};

fn recorded(values: &[i64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&v| histogram.record(v));
    histogram
}

/// Generates values of every magnitude and both signs for tests of histograms.
fn any_value() -> impl Strategy<Value = i64> {
    (any::<i64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

#[test]
fn small_values_are_exact() {
    for value in -256..256 {
        assert_eq!(round_outward(value, value), (value, value));
    }
    assert_eq!(round_outward(-257, 256), (-258, 257));
}

#[test]
fn the_ends_of_the_range_have_buckets() {
    assert_eq!(BucketIndex::of(i64::MIN).as_usize(), 0);
    assert_eq!(BucketIndex::of(i64::MIN).low(), i64::MIN);
    let last = BucketIndex::of(i64::MAX);
    assert_eq!(last.as_usize(), BucketIndex::COUNT - 1);
    assert_eq!(last.high(), i64::MAX);
}

#[test]
fn buckets_follow_each_other_without_gap() {
    let mut index = BucketIndex::of(i64::MIN);
    let mut buckets = 1;
    while index.high() < i64::MAX {
        let next = BucketIndex::of(index.high() + 1);
        assert_eq!(next.low(), index.high() + 1);
        assert_eq!(next.as_usize(), index.as_usize() + 1);
        index = next;
        buckets += 1;
    }
    assert_eq!(buckets, BucketIndex::COUNT);
}

#[test]
fn ranks_fall_into_buckets() {
    let histogram = recorded(&[5, -3, 1_000, 1_003, 5]);
    let at = |low, high, count, before| {
        let bucket = Bucket { low, high, count };
        Some(RankedBucket { bucket, before })
    };
    assert_eq!(histogram.bucket_of_rank(0), None);
    assert_eq!(histogram.bucket_of_rank(1), at(-3, -3, 1, 0));
    assert_eq!(histogram.bucket_of_rank(2), at(5, 5, 2, 1));
    assert_eq!(histogram.bucket_of_rank(3), at(5, 5, 2, 1));
    assert_eq!(histogram.bucket_of_rank(4), at(1_000, 1_003, 2, 3));
    assert_eq!(histogram.bucket_of_rank(5), at(1_000, 1_003, 2, 3));
    assert_eq!(histogram.bucket_of_rank(6), None);
    assert_eq!(Histogram::new().bucket_of_rank(1), None);
}

#[test]
fn nothing_recorded_is_an_empty_histogram() {
    let mut histogram = Histogram::new();
    histogram.record_n(1_000_000, 0);
    assert_eq!(histogram, Histogram::new());
    assert_eq!(histogram.buckets().count(), 0);
}

proptest! {
    #[test]
    fn a_bucket_contains_its_value_and_is_narrow(value in any_value()) {
        let (low, high) = (Histogram::bucket_low(value), Histogram::bucket_high(value));
        prop_assert!(low <= value && value <= high);
        prop_assert_eq!(round_outward(value, value), (low, high));
        prop_assert_eq!(BucketIndex::of(low), BucketIndex::of(high));
        let width = u128::from(low.abs_diff(high)) + 1;
        let smallest = u128::from(low.unsigned_abs().min(high.unsigned_abs()));
        prop_assert!(width == 1 || width * 128 <= smallest);
    }

    #[test]
    fn a_higher_value_never_has_a_lower_bucket(a in any_value(), b in any_value()) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(Histogram::bucket_index(low) <= Histogram::bucket_index(high));
    }

    #[test]
    fn merging_is_recording_everything(
        a in prop::collection::vec(any_value(), 0..50),
        b in prop::collection::vec(any_value(), 0..50),
    ) {
        let mut merged = recorded(&a);
        merged.merge(&recorded(&b));
        let all = recorded(&[a, b].concat());
        prop_assert_eq!(merged.count(), all.count());
        prop_assert_eq!(merged, all);
    }

    #[test]
    fn the_buckets_rebuild_the_histogram(values in prop::collection::vec(any_value(), 0..100)) {
        let histogram = recorded(&values);
        let mut rebuilt = Histogram::new();
        let mut previous = None;
        for bucket in histogram.buckets() {
            prop_assert!(previous < Some(bucket.low));
            previous = Some(bucket.low);
            rebuilt.record_n(bucket.low, bucket.count);
        }
        prop_assert_eq!(rebuilt, histogram);
    }

    #[test]
    fn every_rank_is_in_the_bucket_of_its_value(
        mut values in prop::collection::vec(any_value(), 1..100),
    ) {
        let histogram = recorded(&values);
        values.sort_unstable();
        for (rank, &value) in (1..).zip(&values) {
            let RankedBucket { bucket, before } = histogram.bucket_of_rank(rank).unwrap();
            prop_assert_eq!(bucket.low, Histogram::bucket_low(value));
            prop_assert_eq!(bucket.high, Histogram::bucket_high(value));
            prop_assert!(before < rank && rank <= before + bucket.count);
        }
    }
}
