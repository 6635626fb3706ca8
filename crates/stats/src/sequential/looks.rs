//! Limits for a test that is repeated at numbers of pairs that are fixed beforehand.

use super::normal::{above, density, exceeded_with, root};

/// Number of intervals of the grid on which the distribution of the sum of the pairs is computed.
const GRID: usize = 300;

/// Distance from the middle, in standard deviations of the final sum, beyond which the grid carries no probability that matters.
const FARTHEST: f64 = 9.0;

/// Numbers of pairs at which a group-sequential test looks at the data, with the limit of each look.
///
/// The limits for a smaller figure spend half of the error rate alpha, as one side of a two-sided test, as K. K. G. Lan and
/// D. L. DeMets proposed (Discrete Sequential Boundaries for Clinical Trials, Biometrika 70, 1983), with a spending function like the
/// limits of P. C. O'Brien and T. R. Fleming (A Multiple Testing Procedure for Clinical Trials, Biometrics 35, 1979): little early,
/// most of it at the last look. They are computed by the recursion of P. Armitage, C. K. McPherson and B. C. Rowe (Repeated
/// Significance Tests on Accumulating Data, Journal of the Royal Statistical Society A 132, 1969).
///
/// The limit for a larger figure is another one ([`Looks::limit_of_worse`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    pairs: Vec<usize>,
    limits: Vec<f64>,
    limit_of_worse: f64,
}

impl Looks {
    /// The numbers of pairs that are usual for a change with a large effect.
    pub const SHORT: [usize; 4] = [4, 6, 9, 12];
    /// The numbers of pairs that also find a small effect.
    pub const LONG: [usize; 5] = [6, 9, 12, 16, 20];

    /// Looks after these numbers of pairs, in rising order and from 2, with the two-sided error rate `alpha` of all looks
    /// together.
    ///
    /// # Panics
    ///
    /// If `pairs` is empty or does not rise, or if `alpha` is not between 0 and 1: the caller has checked both.
    pub fn new(pairs: &[usize], alpha: f64) -> Looks {
        assert!(pairs.first().is_some_and(|first| *first >= 2) && pairs.windows(2).all(|two| two[0] < two[1]));
        assert!(alpha > 0.0 && alpha < 1.0);
        let last = pairs[pairs.len() - 1] as f64;
        let times: Vec<f64> = pairs.iter().map(|n| *n as f64 / last).collect();
        let limit_of_worse = exceeded_with(alpha / 2.0 / pairs.len() as f64);
        Looks { pairs: pairs.to_vec(), limits: limits(&times, alpha), limit_of_worse }
    }

    /// Largest number of pairs: after it the test ends.
    pub fn last(&self) -> usize {
        self.pairs[self.pairs.len() - 1]
    }

    /// The next number of pairs at which the test looks, after `pairs` pairs; `None` after the last look.
    pub fn after(&self, pairs: usize) -> Option<usize> {
        self.pairs.iter().copied().find(|n| *n > pairs)
    }

    /// The limit below whose negative the standard normal deviate must lie after `pairs` pairs for the figure to be smaller;
    /// `None` if the test does not look at this number of pairs.
    pub fn limit(&self, pairs: usize) -> Option<f64> {
        let at = self.pairs.iter().position(|n| *n == pairs)?;
        Some(self.limits[at])
    }

    /// The limit that the standard normal deviate must exceed at a look for the figure to be larger.
    ///
    /// The limits of [`Looks::limit`] spend so little of the error rate at early looks that a test for futility always stops
    /// before them. Here each look has an equal part of alpha / 2 (Bonferroni), so that a large effect is found at the first one.
    pub fn limit_of_worse(&self) -> f64 {
        self.limit_of_worse
    }
}

/// Probability of a false verdict that is spent until the share `time` of all pairs has been measured.
fn spent(time: f64, alpha: f64) -> f64 {
    // Each side has alpha / 2, and spends 2 (1 - Phi(z(alpha / 4) / sqrt(time))) of it.
    4.0 * above(exceeded_with(alpha / 4.0) / time.sqrt())
}

/// Limits of the deviates at these times, of which the last is 1.
fn limits(times: &[f64], alpha: f64) -> Vec<f64> {
    let step = 2.0 * FARTHEST / GRID as f64;
    let sums: Vec<f64> = (0..=GRID).map(|i| i as f64 * step - FARTHEST).collect();
    // Density of the sum of all pairs so far, without the records that were stopped at an earlier look.
    let mut going: Option<Vec<f64>> = None;
    let mut limits = Vec::new();
    let (mut before, mut spent_before) = (0.0, 0.0);
    for &time in times {
        let spread = (time - before).sqrt();
        let outside = |limit: f64| match &going {
            None => 2.0 * above(limit),
            Some(going) => {
                let bound = limit * time.sqrt();
                let beyond = |s: f64| above((bound - s) / spread) + above((bound + s) / spread);
                sums.iter().zip(going).map(|(s, p)| p * beyond(*s) * step).sum()
            }
        };
        let spend = spent(time, alpha) - spent_before;
        let limit = root(|limit| outside(limit) > spend, 0.0, 40.0);
        going = Some(continued(&sums, going.as_deref(), step, spread, limit * time.sqrt()));
        limits.push(limit);
        (before, spent_before) = (time, spent(time, alpha));
    }
    limits
}

/// Density of the sum after the next look, for the records that this look did not stop: the sum stayed within `bound`.
fn continued(sums: &[f64], going: Option<&[f64]>, step: f64, spread: f64, bound: f64) -> Vec<f64> {
    let at = |s: f64| match going {
        None => density(s / spread) / spread,
        Some(going) => {
            let from = |(before, p): (&f64, &f64)| p * density((s - before) / spread) / spread * step;
            sums.iter().zip(going).filter(|(_, p)| **p > 0.0).map(from).sum()
        }
    };
    // A grid point near the bound stands for an interval of which only a part is inside.
    let inside = |s: f64| ((bound - s.abs()) / step + 0.5).clamp(0.0, 1.0);
    sums.iter().map(|&s| if inside(s) > 0.0 { at(s) * inside(s) } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::Looks;

    /// Test: the limits equal the published ones of five equal looks with a two-sided error rate of 5 % (C. Jennison, B. W.
    /// Turnbull, Group Sequential Methods with Applications to Clinical Trials, 1999; also computed by the R package ldbounds).
    #[test]
    fn limits_of_five_equal_looks() {
        let looks = Looks::new(&[4, 8, 12, 16, 20], 0.05);
        for (pairs, limit) in [(4, 4.877), (8, 3.357), (12, 2.680), (16, 2.290), (20, 2.031)] {
            let found = looks.limit(pairs).unwrap_or_default();
            assert!((found - limit).abs() < 0.006, "after {pairs}: {found}, not {limit}");
        }
    }

    #[test]
    fn looks_are_in_order_and_end() {
        let looks = Looks::new(&Looks::SHORT, 0.05 / 8.0);
        assert_eq!(looks.after(0), Some(4));
        assert_eq!(looks.after(4), Some(6));
        assert_eq!(looks.after(12), None);
        assert_eq!(looks.last(), 12);
        assert_eq!(looks.limit(5), None);
        // 0.05 / 8 / 2 / 4 of the normal distribution.
        assert!((looks.limit_of_worse() - 3.162).abs() < 0.001, "{}", looks.limit_of_worse());
    }
}
