//! Exact order statistics from a second pass, without storing or sorting all values.

use std::fmt;

use crate::bucket::{Bucket, BucketIndex};
use crate::histogram::Histogram;

/// Collects, in a second pass over the same values, the values that determine the wanted ranks exactly.
///
/// The histogram of the first pass gives the bucket of each wanted rank and the number of values below that bucket;
/// only values in these buckets are kept.
///
/// Memory for each wanted bucket is 8 bytes times the smaller of its width and its count: if a bucket has more values
/// than nanoseconds, its values are counted instead of listed. Ten million equal values near 1 ms cost 64 kB, near 1 s
/// 34 MB. A bucket that is one nanosecond wide costs nothing.
#[derive(Debug, Clone)]
pub struct RankPicker {
    wanted: Vec<Wanted>,
    collected: Vec<Collected>,
    /// For each bucket of the histogram from `first` on: 1 plus the index in `collected`, or 0 for a bucket without a wanted
    /// rank. A search among the wanted buckets would take several times as long for each value.
    places: Vec<u16>,
    first: usize,
}

/// A rank among all values whose value the second pass has to find.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    /// Index in `collected` of the values of the bucket that contains the rank.
    place: usize,
    /// The wanted rank, counted from 0 inside its histogram bucket.
    within: u64,
}

/// Values that the second pass has collected for one histogram bucket with a wanted rank.
#[derive(Debug, Clone)]
struct Collected {
    bucket: Bucket,
    seen: u64,
    values: Values,
}

#[derive(Debug, Clone)]
enum Values {
    /// The bucket is one nanosecond wide, so all its values are equal.
    Known(i64),
    /// How often each value occurs, from the lowest value of the bucket upwards.
    Counted(Vec<u64>),
    /// All values of the bucket, in the order in which they were added.
    Listed(Vec<i64>),
}

impl RankPicker {
    /// Prepares the second pass, which finds the values of `ranks`. Each rank is counted from 1 among the values of the
    /// histogram; the ranks may be in any order and may be repeated.
    ///
    /// # Errors
    /// [`RankOutOfRange`] for a rank of 0 or above the number of recorded values.
    pub fn new(histogram: &Histogram, ranks: &[u64]) -> Result<Self, RankOutOfRange> {
        let mut located = Vec::with_capacity(ranks.len());
        for &rank in ranks {
            located.push(histogram.bucket_of_rank(rank).ok_or(RankOutOfRange { rank, count: histogram.count() })?);
        }
        let mut buckets: Vec<Bucket> = located.iter().map(|l| l.bucket).collect();
        buckets.sort_unstable_by_key(|b| b.low);
        buckets.dedup();
        let wanted = ranks
            .iter()
            .zip(&located)
            .map(|(rank, located)| Wanted {
                place: buckets.partition_point(|b| b.low < located.bucket.low),
                within: rank - 1 - located.before,
            })
            .collect();
        let numbers: Vec<usize> = buckets.iter().map(|b| BucketIndex::of(b.low).as_usize()).collect();
        let first = numbers.first().copied().unwrap_or(0);
        let mut places = vec![0; numbers.last().map_or(0, |last| last - first + 1)];
        for (number, place) in numbers.iter().zip(1..) {
            places[number - first] = place;
        }
        let collected = buckets.into_iter().map(Collected::new).collect();
        Ok(RankPicker { wanted, collected, places, first })
    }

    /// Adds one value of the second pass, in nanoseconds. Every value of the first pass must be added again, in any
    /// order.
    #[inline]
    pub fn offer(&mut self, value: i64) {
        let at = BucketIndex::of(value).as_usize().wrapping_sub(self.first);
        if let Some(place @ 1..) = self.places.get(at) {
            self.collected[usize::from(*place) - 1].add(value);
        }
    }

    /// The value of each wanted rank, in the order in which the ranks were given, in nanoseconds.
    ///
    /// # Errors
    /// [`PassesDiffer`] if a wanted bucket got fewer or more values than in the first pass.
    pub fn finish(mut self) -> Result<Vec<i64>, PassesDiffer> {
        for collected in &mut self.collected {
            collected.check()?;
            if let Values::Listed(values) = &mut collected.values {
                values.sort_unstable();
            }
        }
        let value_of = |w: &Wanted| self.collected[w.place].value_of_rank(w.within);
        Ok(self.wanted.iter().map(value_of).collect())
    }
}

impl Collected {
    fn new(bucket: Bucket) -> Self {
        let width = bucket.low.abs_diff(bucket.high) + 1;
        let values = if width == 1 {
            Values::Known(bucket.low)
        } else if width <= bucket.count {
            Values::Counted(vec![0; width as usize])
        } else {
            Values::Listed(Vec::with_capacity(bucket.count as usize))
        };
        Collected { bucket, seen: 0, values }
    }

    fn add(&mut self, value: i64) {
        self.seen += 1;
        if self.seen > self.bucket.count {
            return;
        }
        match &mut self.values {
            Values::Known(_) => {}
            Values::Counted(counts) => counts[value.abs_diff(self.bucket.low) as usize] += 1,
            Values::Listed(values) => values.push(value),
        }
    }

    fn check(&self) -> Result<(), PassesDiffer> {
        if self.seen == self.bucket.count {
            return Ok(());
        }
        Err(PassesDiffer { bucket: self.bucket, seen: self.seen })
    }

    /// The value of a rank, counted from 0 inside the bucket; the bucket must be complete and sorted.
    fn value_of_rank(&self, within: u64) -> i64 {
        match &self.values {
            Values::Known(value) => *value,
            Values::Listed(values) => values[within as usize],
            Values::Counted(counts) => {
                let mut up_to = 0;
                let offset = counts.iter().take_while(|&&count| {
                    up_to += count;
                    up_to <= within
                });
                self.bucket.low + offset.count() as i64
            }
        }
    }
}

/// Error: no value has the requested rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankOutOfRange {
    /// The requested rank, counted from 1.
    pub rank: u64,
    /// Number of recorded values, which is the highest rank.
    pub count: u64,
}

impl fmt::Display for RankOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no value has rank {}, because there are {} values", self.rank, self.count)
    }
}

impl std::error::Error for RankOutOfRange {}

/// Error: the second pass did not contain the values of the first pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassesDiffer {
    /// The bucket in which the passes differ, with its number of values in the first pass.
    pub bucket: Bucket,
    /// Number of values that the second pass found in the bucket.
    pub seen: u64,
}

impl fmt::Display for PassesDiffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bucket { low, high, count } = self.bucket;
        let seen = self.seen;
        write!(f, "from {low} to {high} ns, the second pass found {seen} values, but the first pass found {count}")
    }
}

impl std::error::Error for PassesDiffer {}
