//! Welch's two-sample t, on a scale that does not depend on the degrees of freedom.

/// The difference of two means with its standard error.
///
/// B. L. Welch, The Generalization of Student's Problem when Several Different Population Variances are Involved,
/// Biometrika 34 (1947); degrees of freedom by F. E. Satterthwaite, Biometrics Bulletin 2 (1946).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Welch {
    /// Mean of b less mean of a.
    pub difference: f64,
    pub standard_error: f64,
    pub freedom: f64,
}

/// Mean and the square of its standard error.
fn mean_and_error(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let squares = values.map(|v| (v - mean) * (v - mean)).sum::<f64>();
    (mean, squares / (n - 1.0) / n)
}

impl Welch {
    /// Of two sides with at least two finite values each.
    pub fn of(a: impl ExactSizeIterator<Item = f64> + Clone, b: impl ExactSizeIterator<Item = f64> + Clone) -> Welch {
        let (of_a, of_b) = (a.len() as f64 - 1.0, b.len() as f64 - 1.0);
        let ((mean_a, error_a), (mean_b, error_b)) = (mean_and_error(a), mean_and_error(b));
        let sum = error_a + error_b;
        let freedom = sum * sum / (error_a * error_a / of_a + error_b * error_b / of_b);
        // Trials that are all alike (a scripted clock) have no error, and the quotient no value.
        let freedom = if freedom.is_finite() { freedom } else { of_a.min(of_b) };
        Welch { difference: mean_b - mean_a, standard_error: sum.sqrt(), freedom }
    }

    /// How far from no difference, as a standard normal deviate: infinite where trials do not vary and sides differ.
    pub fn z(&self) -> f64 {
        if self.difference == 0.0 {
            return 0.0;
        }
        deviate(self.difference / self.standard_error, self.freedom)
    }

    /// The ends of the interval whose half width is this deviate.
    pub fn interval(&self, z: f64) -> (f64, f64) {
        let half = self.standard_error * student(z, self.freedom);
        (self.difference - half, self.difference + half)
    }
}

/// The standard normal deviate beside a Student t: D. L. Wallace, Bounds on Normal Approximations to Student's and the
/// Chi-Square Distributions, Annals of Mathematical Statistics 30 (1959). Within 0.02 for the tails used here; the
/// critical value is found on this very scale, so what is left cancels.
fn deviate(t: f64, freedom: f64) -> f64 {
    let z = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) * (freedom * (t * t / freedom).ln_1p()).sqrt();
    z.copysign(t)
}

/// The reverse of [`deviate`].
fn student(z: f64, freedom: f64) -> f64 {
    let scaled = z * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * (scaled * scaled / freedom).exp_m1()).sqrt()
}

/// The two-sided 95 % point of the standard normal distribution.
const NORMAL: f64 = 1.959_964;

/// The 95 % interval of a mean over trials (Student, The Probable Error of a Mean, Biometrika 6, 1908); `None` for fewer
/// than [`WELCH_TRIALS`](super::WELCH_TRIALS), whose spread says too little.
pub fn mean_interval(trials: &[f64]) -> Option<(f64, f64)> {
    if trials.len() < super::WELCH_TRIALS {
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

    /// Worked by hand: 3 and 2.776 times the square root of 2.5 / 5.
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

    /// Two-sided 5 % and 1 % points of Student's t, from any table.
    #[test]
    fn the_scale_is_that_of_the_normal_distribution() {
        for (freedom, five, one) in [(4.0, 2.776, 4.604), (8.0, 2.306, 3.355), (30.0, 2.042, 2.750)] {
            assert!((deviate(five, freedom) - 1.960).abs() < 0.02, "{}", deviate(five, freedom));
            assert!((deviate(one, freedom) - 2.576).abs() < 0.02, "{}", deviate(one, freedom));
            assert!((student(deviate(five, freedom), freedom) - five).abs() < 1e-9);
        }
    }

    /// Worked by hand: means 2 and 5, squared errors 1/3 and 4/3, freedom (5/3)^2 / (1/18 + 16/18).
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
