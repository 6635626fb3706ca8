//! Whether two sides differ: verdicts over a whole table of statistics, with the trial as the unit.
//!
//! In go natural logarithms of per-trial statistics ([`Cell`]), grouped by the trials that they share ([`Group`]); out
//! come ratios of side b to side a with intervals and verdicts ([`judge`]). Messages of one trial share its luck, so
//! however many there are, one trial is one observation.
//!
//! * From [`WELCH_TRIALS`] trials a side: Welch's interval. The critical value is that of the largest |z| of the table
//!   under no difference (`family`), so all intervals of a table hold together in 95 % of tables, and a verdict is
//!   whether 1 lies outside.
//! * With [`EXACT_TRIALS`]: all relabellings of the trials (`permutation`).
//! * Below: no verdict. [`Chunks`] and [`within_runs`] tell what can be said about these very runs.

mod blocks;
mod family;
mod judge;
mod permutation;
mod random;
mod welch;

pub use blocks::{Chunks, Statistic, within_runs};
pub use judge::{Cell, EXACT_TRIALS, Group, Judged, Verdict, WELCH_TRIALS, judge};
pub use welch::mean_interval;
