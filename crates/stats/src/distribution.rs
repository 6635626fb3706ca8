//! The values of one metric in one condition: from scheduled slots to estimates of quantiles.

use crate::estimate::{Bound, Estimate};
use crate::histogram::Histogram;
use crate::interval::{interval_ranks, interval_ranks_of_dependent, needs};
use crate::moments::Moments;
use crate::quantile::Quantile;
use crate::rank_picker::{PassesDiffer, RankPicker};

/// Values of one metric, as the result of the first pass: every scheduled slot has a value or is later than every
/// value.
///
/// Distributions can be merged: trials of one condition can be added one by one or together. A distribution needs the
/// memory of one [`Histogram`], however many slots there are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    histogram: Histogram,
    moments: Moments,
    beyond: u64,
}

impl Distribution {
    /// Creates a distribution that contains no slots yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the value of a slot with an answer, in nanoseconds; the answer may have arrived after the timeout.
    #[inline]
    pub fn value(&mut self, value: i64) {
        self.histogram.record(value);
        self.moments.record(value);
    }

    /// Adds many slots with answers: their values in nanoseconds.
    pub fn values(&mut self, values: &[i64]) {
        values.iter().for_each(|&value| self.histogram.record(value));
        self.moments.record_all(values);
    }

    /// Adds a slot without an answer (lost or not sent): the slot counts as later than every value.
    #[inline]
    pub fn beyond(&mut self) {
        self.beyond += 1;
    }

    /// Adds the slots of another distribution to this distribution.
    pub fn merge(&mut self, other: &Distribution) {
        self.histogram.merge(&other.histogram);
        self.moments.merge(&other.moments);
        self.beyond += other.beyond;
    }

    /// Number of scheduled slots; quantiles are computed over all scheduled slots.
    pub fn scheduled(&self) -> u64 {
        self.answered() + self.beyond
    }

    /// Number of slots in the distribution that have a value.
    pub fn answered(&self) -> u64 {
        self.histogram.count()
    }

    /// Number of slots in the distribution that have no value (lost or not sent).
    pub fn beyond_count(&self) -> u64 {
        self.beyond
    }

    /// The histogram of the values of all slots that have a value.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Mean, standard deviation and extremes of the values of all slots that have a value.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Prepares the second pass, which must get the same values, for these quantiles.
    pub fn plan(&self, quantiles: &[Quantile]) -> SecondPass {
        let mut ranks = Vec::new();
        let planned = quantiles.iter().map(|&q| self.plan_one(q, &mut ranks)).collect();
        let picker = RankPicker::new(&self.histogram, &ranks)
            .expect("the rank of a quantile is above the number of answered slots");
        SecondPass { planned, picker }
    }

    /// Returns the estimate with a wider interval, for slots that contain only as much information as `effective`
    /// independent slots. The interval is never narrower than the interval for independent slots.
    ///
    /// If `effective` is smaller than the number that the quantile [`needs`], no interval has full coverage. The widest
    /// possible interval then reaches to the latest slot, and the report must say that the interval is too narrow.
    pub fn widened(&self, estimate: Estimate, effective: u64) -> Estimate {
        let (Estimate::Value { q, value_ns, .. }, n) = (estimate, self.scheduled()) else { return estimate };
        let Ok(ranks) = interval_ranks_of_dependent(n, effective.max(needs(q)).min(n), q) else { return estimate };
        let bucket = |rank| self.histogram.bucket_of_rank(rank).map(|l| l.bucket);
        let low_ns = bucket(ranks.lower).map_or(value_ns, |b| b.low);
        Estimate::Value { q, value_ns, low_ns, high: bucket(ranks.upper).map_or(Bound::Beyond, |b| Bound::Ns(b.high)) }
    }

    fn plan_one(&self, q: Quantile, ranks: &mut Vec<u64>) -> Planned {
        let n = self.scheduled();
        let interval = match interval_ranks(n, q) {
            Ok(interval) => interval,
            Err(more) => {
                let needs = more.needs;
                return Planned::Known(Estimate::Needs { q, needs });
            }
        };
        let bucket = |rank| self.histogram.bucket_of_rank(rank).map(|l| l.bucket);
        // The lower rank is at most the rank of the quantile, so a quantile with a value has a lower end.
        let rank = q.rank(n);
        let (Some(_), Some(lower)) = (bucket(rank), bucket(interval.lower)) else {
            return Planned::Known(Estimate::Beyond { q });
        };
        ranks.push(rank);
        Planned::Picked {
            q,
            low_ns: lower.low,
            high: bucket(interval.upper).map_or(Bound::Beyond, |b| Bound::Ns(b.high)),
        }
    }
}

/// The second pass over the values of a [`Distribution`]; see [`Distribution::plan`].
#[derive(Debug, Clone)]
pub struct SecondPass {
    planned: Vec<Planned>,
    picker: RankPicker,
}

/// State of the estimate of one quantile after the first and before the second pass over the values.
#[derive(Debug, Clone)]
enum Planned {
    /// The first pass over the values was enough for the estimate of the quantile.
    Known(Estimate),
    /// The estimate still needs the exact value of the quantile, which the second pass finds.
    Picked { q: Quantile, low_ns: i64, high: Bound },
}

impl SecondPass {
    /// True if a quantile still needs the values; otherwise the second pass can be omitted.
    pub fn needs_values(&self) -> bool {
        self.planned.iter().any(|p| matches!(p, Planned::Picked { .. }))
    }

    /// Adds a value of the first pass again, in nanoseconds, in any order.
    #[inline]
    pub fn offer(&mut self, value: i64) {
        self.picker.offer(value);
    }

    /// Returns one estimate for each quantile, in the order in which the quantiles were given.
    ///
    /// # Errors
    /// [`PassesDiffer`] if the values of the second pass differ from the values of the first pass.
    pub fn finish(self) -> Result<Vec<Estimate>, PassesDiffer> {
        let mut values = self.picker.finish()?.into_iter();
        let complete = |planned| match planned {
            Planned::Known(estimate) => estimate,
            Planned::Picked { q, low_ns, high } => Estimate::Value {
                q,
                value_ns: values.next().expect("the second pass found too few values"),
                low_ns,
                high,
            },
        };
        Ok(self.planned.into_iter().map(complete).collect())
    }
}
