//! The values of one statistic on both sides of a comparison, and the numbers of trials that a verdict needs.

/// Minimum number of trials on each side of a comparison for Welch's interval.
pub const WELCH_TRIALS: usize = 5;
/// Minimum number of trials on each side for a verdict by relabelling (permutation test).
pub const EXACT_TRIALS: usize = 4;
/// Values of one statistic in every trial of both sides, as natural logarithms; infinite if the statistic is later than
/// every value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Logarithm of the statistic in each trial of side a of the comparison.
    pub a: Vec<f64>,
    /// Logarithm of the statistic in each trial of side b of the comparison.
    pub b: Vec<f64>,
}

impl Cell {
    /// Number of trials on that side of the comparison which has fewer trials.
    pub(crate) fn trials(&self) -> usize {
        self.a.len().min(self.b.len())
    }

    /// True if the statistic has a finite value in every trial of both sides. A quantile is infinite if it is the latency
    /// of a message without an answer, which counts as later than every answer.
    pub(crate) fn is_finite(&self) -> bool {
        self.a.iter().chain(&self.b).all(|v| v.is_finite())
    }
}
