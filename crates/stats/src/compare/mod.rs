//! Comparison of two sides: verdicts over a whole table of statistics, with the trial as the unit.
//!
//! Input: natural logarithms of per-trial statistics ([`Cell`]), grouped by the trials that they share ([`Group`]).
//! Output: ratios of side b to side a with intervals and verdicts ([`judge`]). Messages of one trial have common
//! causes of delay, so one trial is one observation, however many messages it has.
//!
//! * With [`WELCH_TRIALS`] trials on each side: Welch's interval. The critical value is the quantile of the largest |z|
//!   of the table if there is no difference (`family`). So all intervals of a table are correct together in 95 % of the
//!   tables. The verdict is whether 1 lies outside the interval.
//! * With [`EXACT_TRIALS`] trials: all relabellings of the trials (`permutation`).
//! * With fewer trials: no verdict. [`within_runs`] compares the sides by the variation inside each trial ([`Chunks`]).

mod blocks;
mod cell;
mod family;
mod judge;
mod permutation;
mod random;
mod welch;

pub use blocks::{Chunks, Statistic, within_runs};
pub use cell::{Cell, EXACT_TRIALS, WELCH_TRIALS};
pub use judge::{Group, Judged, Verdict, judge};
#[cfg(test)]
pub(crate) use random::Random;
pub use welch::mean_interval;
pub(crate) use welch::{Welch, deviate, student};
