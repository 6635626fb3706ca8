//! Decides, while pairs of trials arrive, whether a change makes a figure smaller.
//!
//! Input: one number for each pair of trials, the natural logarithm of the figure with the change divided by the figure
//! without it; the order within a pair is random. Output: [`Step`], that is, whether to measure more pairs or to stop with a
//! [`Verdict`]. A pair is one observation, however many messages its trials have.
//!
//! [`Decider`] has two rules ([`Rule`]):
//!
//! * [`Looks`]: a paired t test at numbers of pairs that are fixed beforehand, with limits by which all looks together have
//!   the error rate that was asked for. It needs the smallest number of pairs, and is approximate for small samples that are
//!   not normal.
//! * The symmetry e-process ([`symmetry`]): exact for every distribution, because without an effect the random order within a
//!   pair makes both signs equally likely. It may be looked at after each pair, and stopped or extended at will.
//!
//! If K changes are tried, each one gets the error rate alpha / K (Bonferroni). This is valid with both rules; with e-processes
//! that are looked at more than once, the less strict rule e-BH is not (arXiv 2501.19360).

mod decider;
mod looks;
mod normal;
mod pairs;
mod symmetry;

pub use decider::{Decider, Margins, Order, Rule, Step, Verdict};
pub use looks::Looks;
pub use pairs::{Ratio, needed_pairs, ratio, ratio_of_trials};

#[cfg(test)]
mod error_rates;
