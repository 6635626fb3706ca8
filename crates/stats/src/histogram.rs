//! A histogram of nanosecond values that can be merged: the result of the first pass over any number of samples.

use crate::bucket::{Bucket, BucketIndex, magnitude, slot_of};

/// Counts of values by bucket (see [`BucketIndex`]). The buckets cover all of `i64`, so no value is clamped.
///
/// The memory of a histogram grows with the highest magnitude, not with the number of values: about 20 kB up to 10 ms,
/// at most 117 kB. Two histograms are equal if they contain the same counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    non_negative: Vec<u64>,
    negative: Vec<u64>,
    count: u64,
}

/// The bucket that contains the value of a rank; see [`Histogram::bucket_of_rank`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedBucket {
    /// The histogram bucket that contains the value with the requested rank.
    pub bucket: Bucket,
    /// Number of recorded values in all buckets of the histogram below this bucket.
    pub before: u64,
}

impl Histogram {
    /// Creates an empty histogram, which allocates no memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one value, in nanoseconds, to the histogram.
    #[inline]
    pub fn record(&mut self, value: i64) {
        self.record_n(value, 1);
    }

    /// Adds one value, in nanoseconds, `n` times to the histogram.
    #[inline]
    pub fn record_n(&mut self, value: i64, n: u64) {
        if n == 0 {
            return;
        }
        let side = if value < 0 { &mut self.negative } else { &mut self.non_negative };
        let slot = slot_of(magnitude(value));
        if slot >= side.len() {
            grow(side, slot);
        }
        side[slot] += n;
        self.count += n;
    }

    /// Adds the counts of another histogram. The result is the same as if all values of the other histogram had been
    /// recorded in this histogram.
    pub fn merge(&mut self, other: &Histogram) {
        add(&mut self.non_negative, &other.non_negative);
        add(&mut self.negative, &other.negative);
        self.count += other.count;
    }

    /// Number of values recorded in the histogram.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The index of the histogram bucket that contains `value`.
    pub fn bucket_index(value: i64) -> BucketIndex {
        BucketIndex::of(value)
    }

    /// The lowest value of the bucket that contains `value`, in nanoseconds.
    pub fn bucket_low(value: i64) -> i64 {
        BucketIndex::of(value).low()
    }

    /// The highest value of the bucket that contains `value`, in nanoseconds.
    pub fn bucket_high(value: i64) -> i64 {
        BucketIndex::of(value).high()
    }

    /// The buckets that contain recorded values, from the lowest values to the highest.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let negative = self.negative.iter().enumerate().rev();
        let non_negative = self.non_negative.iter().enumerate();
        negative
            .map(|(slot, &count)| (BucketIndex::from_negative_slot(slot), count))
            .chain(non_negative.map(|(slot, &count)| (BucketIndex::from_non_negative_slot(slot), count)))
            .filter(|&(_, count)| count > 0)
            .map(|(index, count)| Bucket { low: index.low(), high: index.high(), count })
    }

    /// The bucket that contains the value of a rank: rank 1 is the lowest recorded value, rank [`count`](Self::count)
    /// the highest. `None` for any other rank.
    pub fn bucket_of_rank(&self, rank: u64) -> Option<RankedBucket> {
        let within = rank.checked_sub(1)?;
        let mut before = 0;
        for bucket in self.buckets() {
            if within < before + bucket.count {
                return Some(RankedBucket { bucket, before });
            }
            before += bucket.count;
        }
        None
    }
}

#[cold]
fn grow(side: &mut Vec<u64>, slot: usize) {
    side.resize(slot + 1, 0);
}

fn add(to: &mut Vec<u64>, from: &[u64]) {
    if to.len() < from.len() {
        to.resize(from.len(), 0);
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}
