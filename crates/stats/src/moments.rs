//! Computes mean, standard deviation and extremes of values in one pass.

/// Mean, standard deviation and extremes of nanosecond values, updated value by value. They are computed over answered
/// slots only, and count these slots.
///
/// The sum is exact in 128 bits. Squares about the mean are updated as in Youngs & Cramer (1971) and merged as in Chan,
/// Golub & LeVeque (1983), so nothing cancels, however far the mean is from zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    n: u64,
    sum: i128,
    squares: f64,
    min: i64,
    max: i64,
}

impl Default for Moments {
    fn default() -> Self {
        Moments { n: 0, sum: 0, squares: 0.0, min: i64::MAX, max: i64::MIN }
    }
}

impl Moments {
    /// Creates the moments (count, mean, variance, extremes) of no values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one value, in nanoseconds, to the moments.
    #[inline]
    pub fn record(&mut self, value: i64) {
        let before = self.n as f64;
        if self.n > 0 {
            let distance = (i128::from(self.n) * i128::from(value) - self.sum) as f64;
            self.squares += distance / before * (distance / (before + 1.0));
        }
        self.n += 1;
        self.sum += i128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds many values, in nanoseconds. This is faster than adding them one by one: two passes read the values from
    /// the cache.
    pub fn record_all(&mut self, values: &[i64]) {
        for run in values.chunks(4_096) {
            let n = run.len() as u64;
            let (min, max) = run.iter().fold((i64::MAX, i64::MIN), |(low, high), &v| (low.min(v), high.max(v)));
            if max.checked_sub(min).is_none() {
                run.iter().for_each(|&v| self.record(v));
                continue;
            }
            let sum: i128 = run.iter().map(|&v| i128::from(v)).sum();
            // Distances from a whole number near the mean are exact; the remaining part of the mean is below one.
            let pivot = sum.div_euclid(i128::from(n));
            let rest = (sum - pivot * i128::from(n)) as f64 / n as f64;
            let pivot = pivot as i64;
            let squares = run.iter().map(|&v| (v - pivot) as f64).map(|d| d * d).sum::<f64>() - n as f64 * rest * rest;
            self.merge(&Moments { n, sum, squares, min, max });
        }
    }

    /// Adds all values that another object (`Moments`) has summarised.
    pub fn merge(&mut self, other: &Moments) {
        if let (Some(mine), Some(theirs)) = (self.mean(), other.mean()) {
            let (a, b) = (self.n as f64, other.n as f64);
            let distance = theirs - mine;
            self.squares += other.squares + distance * distance * (a / (a + b) * b);
        } else {
            self.squares += other.squares;
        }
        self.n += other.n;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of values from which the moments were computed.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// The mean of the values in nanoseconds; `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }

    /// The sample standard deviation (divisor n - 1) in nanoseconds; `None` for fewer than two values.
    pub fn standard_deviation(&self) -> Option<f64> {
        (self.n > 1).then(|| (self.squares / (self.n - 1) as f64).sqrt())
    }

    /// The lowest value in nanoseconds; `None` if there are no values.
    pub fn min(&self) -> Option<i64> {
        (self.n > 0).then_some(self.min)
    }

    /// The highest value in nanoseconds; `None` if there are no values.
    pub fn max(&self) -> Option<i64> {
        (self.n > 0).then_some(self.max)
    }
}

/// The rule of three: with 95 % confidence, at most this share of all messages is later than the maximum of `n` values.
/// The share is 3 / n, and 1 for fewer than three values.
///
/// Hanley & Lippman-Hand, If Nothing Goes Wrong, Is Everything All Right?, JAMA 249 (1983).
pub fn rule_of_three(n: u64) -> f64 {
    3.0 / n.max(3) as f64
}
