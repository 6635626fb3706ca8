//! Pure mathematics of the instrument: histograms, exact quantiles, and intervals that can be stood behind.
//!
//! In go plain numbers: times as `i64` nanoseconds (negative ones too: lateness can be), counts and
//! ranks as `u64`. Out come numbers again. Nothing here reads a file, knows a record or prints.
//!
//! # From samples to an estimate
//!
//! Quantiles are defined over *scheduled* slots: a slot that never got an answer is later than
//! every answered one. [`Distribution`] is the whole way, in two passes over the same samples, so
//! that ten million of them never have to be in memory at once:
//!
//! ```
//! use tailbound_stats::{Bound, Distribution, Estimate, Quantile};
//!
//! let answered: Vec<i64> = (0..1_000).map(|k| 50_000 + k).collect();
//! let mut distribution = Distribution::new();
//! for &value in &answered {
//!     distribution.value(value);
//! }
//! distribution.beyond(); // one slot was lost
//!
//! let mut second = distribution.plan(&[Quantile::P99, Quantile::P99_9]);
//! for &value in &answered {
//!     second.offer(value);
//! }
//! let estimates = second.finish()?;
//! assert!(matches!(
//!     estimates[0],
//!     Estimate::Value { value_ns: 50_990, low_ns: ..=50_990, high: Bound::Ns(50_990..), .. }
//! ));
//! assert_eq!(estimates[1], Estimate::Needs { q: Quantile::P99_9, needs: 3_688 });
//! # Ok::<(), tailbound_stats::PassesDiffer>(())
//! ```
//!
//! # The parts
//!
//! * [`Quantile`]: a decimal fraction kept exactly, and its rank among `n` slots.
//! * [`interval_ranks`], [`needs`], [`exact_coverage`]: distribution-free intervals.
//! * [`Histogram`], [`BucketIndex`], [`Bucket`]: log-linear buckets over all of `i64`.
//! * [`RankPicker`]: exact order statistics from a second pass.
//! * [`Exceedance`], [`Effective`]: how dependent slots are, and how many independent ones they are worth;
//!   [`Distribution::widened`]: the interval that follows.
//! * [`compare`]: whether two sides differ, with the trial as the unit.
//! * [`share_interval`], [`share_difference`]: how often something happens that was counted, and how much oftener.
//! * [`Peaks`], [`tail_estimate`]: how late one message in so many is, beyond what was measured.
//! * [`TwoClocks`]: what two clocks prove of each other, so that one way of a round trip has a least and a most.
//! * [`BlockMedians`], [`WarmUp`]: a beginning that is unlike the rest.
//! * [`Moments`], [`rule_of_three`]: mean, standard deviation, extremes, and what the maximum says.

mod binomial;
mod blocks;
mod bucket;
pub mod compare;
mod distribution;
mod estimate;
mod exceedance;
mod histogram;
mod interval;
mod moments;
mod proportion;
mod quantile;
mod rank_picker;
mod reference;
mod tail;
mod two_clocks;
mod warm_up;

pub use bucket::{Bucket, BucketIndex, round_outward};
pub use distribution::{Distribution, SecondPass};
pub use estimate::{Bound, Estimate};
pub use exceedance::{Effective, Exceedance};
pub use histogram::{Histogram, RankedBucket};
pub use interval::{
    CONFIDENCE, NeedsMore, RankInterval, exact_coverage, interval_ranks, interval_ranks_of_dependent, needs,
};
pub use moments::{Moments, rule_of_three};
pub use proportion::{share_difference, share_interval};
pub use quantile::{Quantile, QuantileError};
pub use rank_picker::{PassesDiffer, RankOutOfRange, RankPicker};
pub use tail::{FARTHEST, NotApplicable, Peaks, ReturnLevel, TailEstimate, tail_estimate};
pub use two_clocks::{ClockBounds, NoBounds, TwoClocks};
pub use warm_up::{BlockMedians, WarmUp};
