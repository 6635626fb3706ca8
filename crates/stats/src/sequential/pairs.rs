//! The ratio of a figure with a change to the figure without it, over pairs of trials.

use super::normal::exceeded_with;
use crate::compare::{Welch, deviate, student};

/// Geometric mean of the ratios of the pairs, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Geometric mean of the ratios.
    pub ratio: f64,
    /// Lower end of the 95 % interval of the ratio.
    pub low: f64,
    /// Upper end of the 95 % interval of the ratio.
    pub high: f64,
}

/// Mean and standard error of log ratios; `None` for fewer than two pairs.
pub(crate) fn mean_and_error(logs: &[f64]) -> Option<(f64, f64)> {
    let n = logs.len() as f64;
    if logs.len() < 2 {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / n;
    let squares = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>();
    Some((mean, (squares / (n - 1.0) / n).sqrt()))
}

/// Ratio over the pairs, from the natural logarithm of each pair's ratio, with Student's interval for one look; `None` for
/// fewer than two pairs.
pub fn ratio(logs: &[f64]) -> Option<Ratio> {
    let (mean, error) = mean_and_error(logs)?;
    let half = error * student(exceeded_with(0.025), logs.len() as f64 - 1.0);
    Some(Ratio { ratio: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
}

/// Ratio of the figure in the trials `b` to the figure in the trials `a`, which are no pairs, from the natural logarithms of the
/// figure in each trial, with Welch's 95 % interval; `None` for fewer than two trials on one side.
pub fn ratio_of_trials(a: &[f64], b: &[f64]) -> Option<Ratio> {
    if a.len().min(b.len()) < 2 {
        return None;
    }
    let found = Welch::of(a.iter().copied(), b.iter().copied());
    let (low, high) = found.interval(exceeded_with(0.025));
    Some(Ratio { ratio: found.difference.exp(), low: low.exp(), high: high.exp() })
}

/// Distance of the mean of the log ratios from zero as a standard normal deviate, from a paired t test; 0 for fewer than two
/// pairs. It is infinite if all pairs have the same ratio and it is not 1.
pub(crate) fn z(logs: &[f64]) -> f64 {
    match mean_and_error(logs) {
        Some((0.0, _)) => 0.0,
        Some((mean, error)) => deviate(mean / error, logs.len() as f64 - 1.0),
        None => 0.0,
    }
}

/// Number of pairs with which a test with the two-sided error rate `alpha` finds the ratio `ratio` in four of five cases, from
/// the log ratios of equal pairs; `None` for fewer than two pairs, or if the ratio is 1.
///
/// n = ((z(alpha / 2) + z(0.2)) s / ln(ratio))^2, where s is the standard deviation of the log ratios.
pub fn needed_pairs(equal_pairs: &[f64], alpha: f64, ratio: f64) -> Option<f64> {
    let (_, error) = mean_and_error(equal_pairs)?;
    let spread = error * (equal_pairs.len() as f64).sqrt();
    let distances = (exceeded_with(alpha / 2.0) + exceeded_with(0.2)) * spread / ratio.ln();
    (ratio != 1.0).then_some(distances * distances)
}

#[cfg(test)]
mod tests {
    use super::{needed_pairs, ratio, ratio_of_trials, z};

    #[test]
    fn interval_of_a_known_sample() {
        // Mean 0.1, standard deviation 0.1, n 5; the 97.5 % quantile of Student's t with 4 degrees of freedom is 2.776.
        let logs = [0.1 - 0.126_491, 0.1 - 0.063_246, 0.1, 0.1 + 0.063_246, 0.1 + 0.126_491];
        let found = ratio(&logs).map(|r| (r.ratio.ln(), r.low.ln(), r.high.ln())).unwrap_or_default();
        assert!((found.0 - 0.1).abs() < 1e-9);
        assert!((found.1 - (0.1 - 2.776 * 0.1 / 5.0_f64.sqrt())).abs() < 0.002, "{found:?}");
        assert!((found.2 - (0.1 + 2.776 * 0.1 / 5.0_f64.sqrt())).abs() < 0.002, "{found:?}");
    }

    /// Test: two sides of three trials, computed by hand: difference 1, standard error sqrt(2 / 3), 4 degrees of freedom.
    #[test]
    fn ratio_of_trials_that_are_no_pairs() {
        let found =
            ratio_of_trials(&[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0]).map(|r| (r.ratio.ln(), r.low.ln(), r.high.ln()));
        let (ratio, low, high) = found.unwrap_or_default();
        let half = 2.776 * (2.0_f64 / 3.0).sqrt();
        assert!((ratio - 1.0).abs() < 1e-9 && (high - 1.0 - half).abs() < 0.02, "{ratio} {high}");
        assert!((low - 1.0 + half).abs() < 0.02, "{low}");
        assert!(ratio_of_trials(&[1.0], &[1.0, 2.0]).is_none());
    }

    #[test]
    fn pairs_without_spread() {
        assert!(z(&[0.5; 4]).is_infinite());
        assert!(z(&[0.0; 4]).abs() < 1e-12);
        assert!(ratio(&[0.5]).is_none());
    }

    #[test]
    fn needed_pairs_grow_with_the_square_of_the_spread() {
        let narrow: Vec<f64> = [-0.1, 0.1, -0.1, 0.1, -0.1, 0.1].to_vec();
        let wide: Vec<f64> = narrow.iter().map(|x| 3.0 * x).collect();
        let (few, many) = (needed_pairs(&narrow, 0.05, 0.8).unwrap(), needed_pairs(&wide, 0.05, 0.8).unwrap());
        assert!((many / few - 9.0).abs() < 1e-9);
        // (1.96 + 0.842)^2 * 0.012 / ln(0.8)^2
        assert!((few - 1.892).abs() < 0.01, "{few}");
        assert_eq!(needed_pairs(&narrow, 0.05, 1.0), None);
    }
}
