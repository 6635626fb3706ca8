//! Binomial tail probabilities that stay accurate from n = 1 to beyond 10^9.
//!
//! One term is computed in the saddle-point form, which has no cancellation between large logarithms: C. Loader, Fast
//! and Accurate Computation of Binomial Probabilities (2000). A tail is this term times a sum of falling ratios. All
//! ratios are positive, and the sum ends where a term no longer changes it.

use crate::quantile::WHOLE;
use std::f64::consts::TAU;

/// Distribution of the number of successes among `n` trials. The success probability is `parts` parts per 10^15,
/// neither 0 nor 1. It is a whole number, so distances from the mean are exact.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binomial {
    pub n: u64,
    pub parts: u64,
}

impl Binomial {
    /// Distribution of the number of failures: a binomial distribution with the two probabilities exchanged.
    pub fn mirrored(self) -> Self {
        Binomial { n: self.n, parts: WHOLE - self.parts }
    }

    pub fn mean(self) -> f64 {
        self.n as f64 * self.success()
    }

    pub fn standard_deviation(self) -> f64 {
        (self.mean() * self.mirrored().success()).sqrt()
    }

    /// Probability P(X <= k) that the binomial variable X has at most `k` successes.
    pub fn at_most(self, k: u64) -> f64 {
        if k >= self.n {
            1.0
        } else if k as f64 <= self.mean() {
            self.lower_tail(k)
        } else {
            1.0 - self.mirrored().lower_tail(self.n - k - 1)
        }
    }

    /// Probability P(X >= k) that the binomial variable X has at least `k` successes.
    pub fn at_least(self, k: u64) -> f64 {
        if k > self.n { 0.0 } else { self.mirrored().at_most(self.n - k) }
    }

    /// Probability of at most `k` successes, P(X <= k), for k up to the mean, where the terms of the sum fall towards
    /// zero.
    fn lower_tail(self, k: u64) -> f64 {
        let odds_against = (WHOLE - self.parts) as f64 / self.parts as f64;
        let (mut term, mut sum) = (1.0, 1.0);
        for j in (1..=k).rev() {
            term *= j as f64 / (self.n - j + 1) as f64 * odds_against;
            sum += term;
            if term < sum * 1e-18 {
                break;
            }
        }
        sum * self.probability(k)
    }

    /// Probability P(X = k) that the binomial variable X has exactly `k` successes.
    fn probability(self, k: u64) -> f64 {
        let failures = self.mirrored();
        let n = self.n as f64;
        if k == 0 {
            return (n * failures.ln_success()).exp();
        }
        if k == self.n {
            return (n * self.ln_success()).exp();
        }
        let (x, y) = (k as f64, (self.n - k) as f64);
        // The distance from the mean is computed in whole parts, because a float would lose digits at n = 10^9.
        let excess = i128::from(k) * i128::from(WHOLE) - i128::from(self.n) * i128::from(self.parts);
        let excess = excess as f64 / WHOLE as f64;
        let exponent = stirling_error(self.n)
            - stirling_error(k)
            - stirling_error(self.n - k)
            - deviance(x, self.mean(), excess)
            - deviance(y, failures.mean(), -excess);
        (n / (TAU * x * y)).sqrt() * exponent.exp()
    }

    fn success(self) -> f64 {
        self.parts as f64 / WHOLE as f64
    }

    /// Natural logarithm of the success probability, computed from the failure probability, which is the small number
    /// in a tail.
    pub fn ln_success(self) -> f64 {
        (-self.mirrored().success()).ln_1p()
    }
}

/// ln(n!) minus Stirling's approximation: from the factorial up to 20! (exact in `f64`), then by the asymptotic series
/// DLMF 5.11.1, whose next term is below 10^-17 from there on.
fn stirling_error(n: u64) -> f64 {
    let x = n as f64;
    if n <= 20 {
        let factorial: f64 = (1..=n).map(|k| k as f64).product();
        return factorial.ln() - 0.5 * (TAU * x).ln() - x * x.ln() + x;
    }
    let inverse_square = 1.0 / (x * x);
    let series = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0];
    series.iter().rev().fold(0.0, |sum, term| sum * inverse_square + term) / x
}

/// x ln(x / mean) + mean - x, where `excess` is x - mean: Loader's deviance. Where the direct form would cancel, its
/// series is used.
fn deviance(x: f64, mean: f64, excess: f64) -> f64 {
    if excess.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() - excess;
    }
    let v = excess / (x + mean);
    let mut sum = excess * v;
    let mut power = 2.0 * x * v;
    for j in 1.. {
        power *= v * v;
        let next = sum + power / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}
