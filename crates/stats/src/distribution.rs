//! The values of one metric under one condition, from scheduled slots to estimates.

use crate::estimate::{Bound, Estimate};
use crate::histogram::Histogram;
use crate::interval::{interval_ranks, interval_ranks_of_dependent, needs};
use crate::moments::Moments;
use crate::quantile::Quantile;
use crate::rank_picker::{PassesDiffer, RankPicker};

/// The first pass: every scheduled slot is either a value or beyond all values.
///
/// Mergeable: trials of one condition can be taken in one by one or together. Memory is that of a
/// [`Histogram`], however many slots there are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    histogram: Histogram,
    moments: Moments,
    beyond: u64,
}

impl Distribution {
    /// No slot yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A slot with an answer, also one after the timeout: its value in nanoseconds.
    #[inline]
    pub fn value(&mut self, value: i64) {
        self.histogram.record(value);
        self.moments.record(value);
    }

    /// Slots with an answer, many at once.
    pub fn values(&mut self, values: &[i64]) {
        values.iter().for_each(|&value| self.histogram.record(value));
        self.moments.record_all(values);
    }

    /// A slot that never got an answer (lost, or not sent): later than every value.
    #[inline]
    pub fn beyond(&mut self) {
        self.beyond += 1;
    }

    /// Adds the slots of another distribution.
    pub fn merge(&mut self, other: &Distribution) {
        self.histogram.merge(&other.histogram);
        self.moments.merge(&other.moments);
        self.beyond += other.beyond;
    }

    /// How many slots there are: what quantiles are taken over.
    pub fn scheduled(&self) -> u64 {
        self.answered() + self.beyond
    }

    /// How many slots have a value.
    pub fn answered(&self) -> u64 {
        self.histogram.count()
    }

    /// How many slots have none.
    pub fn beyond_count(&self) -> u64 {
        self.beyond
    }

    /// The values by bucket.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Mean, standard deviation and extremes of the values.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Prepares the second pass, which must be offered the same values, for these quantiles.
    pub fn plan(&self, quantiles: &[Quantile]) -> SecondPass {
        let mut ranks = Vec::new();
        let planned = quantiles.iter().map(|&q| self.plan_one(q, &mut ranks)).collect();
        let picker = RankPicker::new(&self.histogram, &ranks).expect("only ranks of answered slots are picked");
        SecondPass { planned, picker }
    }

    /// The estimate with the interval that slots worth only `effective` independent ones support. Never narrower than the
    /// interval of independent slots.
    ///
    /// Slots that are worth fewer than the quantile [`needs`] have no interval of full coverage: the widest that there is
    /// then reaches to the latest slot, and whoever shows it must say that it is too narrow.
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
        // The lower rank is at most the quantile's own: a value comes with a lower end.
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

/// A quantile between the passes.
#[derive(Debug, Clone)]
enum Planned {
    /// The first pass was enough.
    Known(Estimate),
    /// The next value of the picker completes it.
    Picked { q: Quantile, low_ns: i64, high: Bound },
}

impl SecondPass {
    /// Whether any quantile still needs the values; without one the pass can be left out.
    pub fn needs_values(&self) -> bool {
        self.planned.iter().any(|p| matches!(p, Planned::Picked { .. }))
    }

    /// Shows a value of the first pass again, in nanoseconds, in any order.
    #[inline]
    pub fn offer(&mut self, value: i64) {
        self.picker.offer(value);
    }

    /// One estimate for each quantile, in the order in which they were given.
    ///
    /// # Errors
    /// [`PassesDiffer`] when the values offered were not those of the first pass.
    pub fn finish(self) -> Result<Vec<Estimate>, PassesDiffer> {
        let mut values = self.picker.finish()?.into_iter();
        let complete = |planned| match planned {
            Planned::Known(estimate) => estimate,
            Planned::Picked { q, low_ns, high } => {
                Estimate::Value { q, value_ns: values.next().expect("one value for each rank picked"), low_ns, high }
            }
        };
        Ok(self.planned.into_iter().map(complete).collect())
    }
}
