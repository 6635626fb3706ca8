//! Welch's two-sample t test, on a scale that does not depend on the degrees of freedom.

use super::cell::WELCH_TRIALS;

/// The difference of two means with its standard error.
///
/// B. L. Welch, The Generalization of Student's Problem when Several Different Population Variances are Involved,
/// Biometrika 34 (1947); degrees of freedom by F. E. Satterthwaite, Biometrics Bulletin 2 (1946).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Welch {
    /// Mean over the trials of side b minus mean over the trials of side a of the comparison.
    pub difference: f64,
    pub standard_error: f64,
    pub freedom: f64,
}

/// Computes the mean of the values, and the square of the mean's standard error.
fn mean_and_error(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let squares = values.map(|v| (v - mean) * (v - mean)).sum::<f64>();
    (mean, squares / (n - 1.0) / n)
}

impl Welch {
    /// Computes the difference between two sides of a comparison with at least two finite values each.
    pub fn of(a: impl ExactSizeIterator<Item = f64> + Clone, b: impl ExactSizeIterator<Item = f64> + Clone) -> Welch {
        let (of_a, of_b) = (a.len() as f64 - 1.0, b.len() as f64 - 1.0);
        let ((mean_a, error_a), (mean_b, error_b)) = (mean_and_error(a), mean_and_error(b));
        let sum = error_a + error_b;
        let freedom = sum * sum / (error_a * error_a / of_a + error_b * error_b / of_b);
        // If all trials are equal (a scripted clock), the error is zero and the quotient is not defined.
        let freedom = if freedom.is_finite() { freedom } else { of_a.min(of_b) };
        Welch { difference: mean_b - mean_a, standard_error: sum.sqrt(), freedom }
    }

    /// Distance of the difference of two means from zero, as a standard normal deviate; infinite if the trials do not
    /// vary and the sides differ.
    pub fn z(&self) -> f64 {
        if self.difference == 0.0 {
            return 0.0;
        }
        deviate(self.difference / self.standard_error, self.freedom)
    }

    /// Both ends of the interval of the difference whose half width corresponds to the standard normal deviate `z`.
    pub fn interval(&self, z: f64) -> (f64, f64) {
        let half = self.standard_error * student(z, self.freedom);
        (self.difference - half, self.difference + half)
    }
}

/// The standard normal deviate that corresponds to a Student t: D. L. Wallace, Bounds on Normal Approximations to
/// Student's and the Chi-Square Distributions, Annals of Mathematical Statistics 30 (1959). The error is below 0.02 for
/// the tails used here. The critical value is computed on the same scale, so the remaining error cancels.
pub(crate) fn deviate(t: f64, freedom: f64) -> f64 {
    let z = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) * (freedom * (t * t / freedom).ln_1p()).sqrt();
    z.copysign(t)
}

/// The Student t that corresponds to a standard normal deviate: the inverse of [`deviate`].
pub(crate) fn student(z: f64, freedom: f64) -> f64 {
    let scaled = z * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * (scaled * scaled / freedom).exp_m1()).sqrt()
}

/// 97.5 % quantile of the standard normal distribution, for two-sided 95 % intervals.
const NORMAL: f64 = 1.959_964;

/// The 95 % interval of a mean over trials (Student, The Probable Error of a Mean, Biometrika 6, 1908); `None` for
/// fewer than [`WELCH_TRIALS`] trials, because their variance is too uncertain.
pub fn mean_interval(trials: &[f64]) -> Option<(f64, f64)> {
    if trials.len() < WELCH_TRIALS {
        return None;
    }
    let (mean, error) = mean_and_error(trials.iter().copied());
    let half = error.sqrt() * student(NORMAL, trials.len() as f64 - 1.0);
    Some((mean - half, mean + half))
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    /// Test: the interval of the mean equals a result computed by hand: 3 plus and minus 2.776 times the square root of
    /// 2.5 / 5.
    #[test]
    fn the_interval_of_a_mean() {
        assert_eq!(mean_interval(&[1.0, 2.0, 3.0, 4.0]), None);
        let (low, high) = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((low - 1.037).abs() < 0.02 && (high - 4.963).abs() < 0.02, "{low} {high}");
        let mut random = Random::seeded(11);
        let holds = (0..4_000).filter(|_| {
            let trials: Vec<f64> = (0..6).map(|_| 7.0 + random.normal()).collect();
            mean_interval(&trials).is_some_and(|(low, high)| low <= 7.0 && 7.0 <= high)
        });
        let share = holds.count() as f64 / 4_000.0;
        assert!((0.94..=0.965).contains(&share), "{share}");
    }

    /// Test: the two-sided 5 % and 1 % quantiles of Student's t from printed tables give the normal deviates of 5 % and
    /// 1 %.
    #[test]
    fn the_scale_is_that_of_the_normal_distribution() {
        for (freedom, five, one) in [(4.0, 2.776, 4.604), (8.0, 2.306, 3.355), (30.0, 2.042, 2.750)] {
            assert!((deviate(five, freedom) - 1.960).abs() < 0.02, "{}", deviate(five, freedom));
            assert!((deviate(one, freedom) - 2.576).abs() < 0.02, "{}", deviate(one, freedom));
            assert!((student(deviate(five, freedom), freedom) - five).abs() < 1e-9);
        }
    }

    /// Test: the result equals values computed by hand: means 2 and 5, squared standard errors 1/3 and 4/3, degrees of
    /// freedom (5/3)^2 / (1/18 + 16/18).
    #[test]
    fn a_small_example() {
        let w = Welch::of([1.0, 2.0, 3.0].into_iter(), [3.0, 5.0, 7.0].into_iter());
        assert_eq!(w.difference, 3.0);
        assert!((w.standard_error - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((w.freedom - 25.0 / 9.0 * 18.0 / 17.0).abs() < 1e-12);
    }

    #[test]
    fn trials_that_do_not_vary() {
        let same = [1.5; 5];
        assert_eq!(Welch::of(same.into_iter(), same.into_iter()).z(), 0.0);
        let apart = Welch::of(same.into_iter(), [1.6; 5].into_iter());
        assert!(apart.z() > 1e6, "{}", apart.z());
    }
}
