//! Mean, quantiles and maximum of many durations.

use crate::coarse_buckets::coarse;
use tailbound_stats::{Bucket, Histogram};

/// Durations in ns that are not kept one by one.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    histogram: Histogram,
    sum_ns: i128,
    pub max_ns: i64,
}

impl Durations {
    /// Adds a duration, ns, not negative.
    pub fn add(&mut self, ns: i64) {
        self.histogram.record(ns);
        self.sum_ns += i128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn count(&self) -> u64 {
        self.histogram.count()
    }

    /// The histogram with the buckets of the document: smallest and largest value, ns, and number of durations.
    pub fn buckets(&self) -> Vec<(i64, i64, u64)> {
        coarse(&self.histogram)
    }

    /// Mean, ns; not a number if there is none.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count() as f64
    }

    /// The duration that this share of them does not exceed, ns: rounded up to a bucket of the histogram, and at most the longest.
    pub fn at(&self, share: f64) -> i64 {
        self.bucket(share).map_or(self.max_ns, |bucket| bucket.high.min(self.max_ns))
    }

    /// As [`Durations::at`], but rounded down to a bucket of the histogram.
    pub fn at_least(&self, share: f64) -> i64 {
        self.bucket(share).map_or(0, |bucket| bucket.low)
    }

    fn bucket(&self, share: f64) -> Option<Bucket> {
        let rank = ((self.count() as f64 * share).ceil() as u64).max(1);
        self.histogram.bucket_of_rank(rank).map(|ranked| ranked.bucket)
    }
}
