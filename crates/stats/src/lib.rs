//! Pure mathematics of the instrument: histograms, exact quantiles, and confidence intervals.
//!
//! Input and output are plain numbers: times as `i64` nanoseconds, which may be negative (a lateness can be), counts
//! and ranks as `u64`. Nothing here reads a file, knows a record or prints.
//!
//! # From samples to an estimate
//!
//! Quantiles are defined over *scheduled* slots: a slot without an answer is later than every answered slot.
//! [`Distribution`] computes them in two passes over the same samples, so that ten million samples never have to be in
//! memory at the same time:
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
//! # Contents
//!
//! * [`Quantile`]: a decimal fraction without rounding, and its rank among `n` slots.
//! * [`interval_ranks`], [`needs`], [`exact_coverage`]: distribution-free intervals.
//! * [`Histogram`], [`BucketIndex`], [`Bucket`]: log-linear buckets over all of `i64`.
//! * [`RankPicker`]: exact order statistics from a second pass.
//! * [`Exceedance`], [`Effective`]: dependence between slots, and the equivalent number of independent slots;
//!   [`Distribution::widened`]: the interval that follows.
//! * [`compare`]: whether two sides differ, where one trial is one observation.
//! * [`sequential`]: whether a change helps, decided while pairs of trials arrive.
//! * [`share_interval`], [`share_difference`]: intervals for the share of events, and for the difference of two shares.
//! * [`Peaks`], [`tail_estimate`]: how late the latest message in a given number is, beyond what was measured.
//! * [`TwoClocks`]: bounds between two clocks, so that one direction of a round trip has a minimum and a maximum.
//!   [`SteadySearch`]: the parts of a trial in which both clocks were steady.
//! * [`IncidentFinder`], [`LateRule`], [`Misses`]: late and lost messages that overlap in time, and runs of them.
//! * [`HeldSearch`]: messages that were held on their way and released together.
//! * [`movement`]: whether a phase that sweeps through a gate cycle or a wrong clock moved the times on both ways.
//! * [`BlockMedians`], [`WarmUp`]: detection of a warm-up.
//! * [`Moments`], [`rule_of_three`]: mean, standard deviation, extremes, and the meaning of the maximum.

mod binomial;
mod blocks;
mod bucket;
pub mod compare;
mod distribution;
mod estimate;
mod exceedance;
mod held;
mod histogram;
mod incidents;
mod interval;
mod misses;
mod moments;
mod proportion;
mod quantile;
mod ramps;
mod rank_picker;
mod reference;
pub mod sequential;
mod split_mix;
mod steady_parts;
mod tail;
mod two_clocks;
mod warm_up;

pub use bucket::{Bucket, BucketIndex, round_outward};
pub use distribution::{Distribution, SecondPass};
pub use estimate::{Bound, Estimate};
pub use exceedance::{Effective, Exceedance};
pub use held::{HeldBurst, HeldBursts, HeldSearch, Passage};
pub use histogram::{Histogram, RankedBucket};
pub use incidents::{ExcessPart, Incident, IncidentFinder, Incidents, LateRule};
pub use interval::{
    CONFIDENCE, NeedsMore, RankInterval, exact_coverage, interval_ranks, interval_ranks_of_dependent, needs,
};
pub use misses::Misses;
pub use moments::{Moments, rule_of_three};
pub use proportion::{share_difference, share_interval};
pub use quantile::{Quantile, QuantileError};
pub use ramps::{Movement, WaySpan, movement};
pub use rank_picker::{PassesDiffer, RankOutOfRange, RankPicker};
pub use split_mix::SplitMix64;
pub use steady_parts::{ClockChange, ClockMessage, ClockReading, SteadyParts, SteadySearch};
pub use tail::{FARTHEST, NotApplicable, Peaks, ReturnLevel, TailEstimate, tail_estimate};
pub use two_clocks::{ClockBounds, ClockLine, MOST_DRIFT, NoBounds, TwoClocks};
pub use warm_up::{BlockMedians, WarmUp};
