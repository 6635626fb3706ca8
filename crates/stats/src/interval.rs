//! Distribution-free confidence intervals for a quantile, whose ends are order statistics.
//!
//! The number of `n` independent values at or below the true quantile `q` is binomial, whatever the distribution of the
//! values is. So two order statistics enclose the quantile with a known probability: David & Nagaraja, Order
//! Statistics, 3rd ed. (2003), section 7.1; Meeker, Hahn & Escobar, Statistical Intervals, 2nd ed. (2017), section 5.2.
//! Ties only increase this probability.

use std::fmt;

use crate::binomial::Binomial;
use crate::quantile::Quantile;

/// Confidence level of every interval: the interval encloses the true quantile at least this often.
pub const CONFIDENCE: f64 = 0.95;

/// Probability of missing the quantile that is allowed on each side (two-sided, equal tails).
const TAIL: f64 = 0.025;

/// Ranks of the two order statistics that enclose a quantile, counted from 1 among all scheduled slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankInterval {
    /// Rank of the order statistic at the lower end of the quantile's interval, counted from 1.
    pub lower: u64,
    /// Rank of the order statistic at the upper end of the quantile's interval, counted from 1.
    pub upper: u64,
}

/// Error: there are too few slots for an interval, and therefore for the quantile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsMore {
    /// Smallest number of slots for which the quantile has an interval.
    pub needs: u64,
}

impl fmt::Display for NeedsMore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an interval of a quantile needs at least {} slots", self.needs)
    }
}

impl std::error::Error for NeedsMore {}

/// Smallest number of slots for which the quantile has a two-sided 95 % interval.
///
/// The upper end exists if q^n <= 0.025, that is n = ceil(ln 0.025 / ln q): 368 for p99, 3,688 for p99.9. The lower end
/// exists if (1 - q)^n <= 0.025, which needs more slots if q < 0.5.
pub fn needs(q: Quantile) -> u64 {
    let upper = Binomial { n: 1, parts: q.parts() };
    let ln_rarer = upper.ln_success().max(upper.mirrored().ln_success());
    (TAIL.ln() / ln_rarer).ceil() as u64
}

/// The ranks of the two-sided, equal-tailed 95 % interval for quantile `q` among `n` slots.
///
/// With X binomial of `n` and `q`: `lower` is the largest l with P(X <= l - 1) <= 0.025, `upper` the smallest u with
/// P(X >= u) <= 0.025. The rank of the quantile itself lies between them. The time grows with sqrt(n): some
/// milliseconds at n = 10^9.
///
/// # Errors
/// [`NeedsMore`] if `n` is below [`needs`].
pub fn interval_ranks(n: u64, q: Quantile) -> Result<RankInterval, NeedsMore> {
    let needs = needs(q);
    if n < needs {
        return Err(NeedsMore { needs });
    }
    let below = Binomial { n, parts: q.parts() };
    Ok(RankInterval { lower: last_in_tail(below) + 1, upper: n - last_in_tail(below.mirrored()) })
}

/// The ranks of the interval among `n` dependent slots that contain as much information as `effective` independent
/// slots. They are the ranks for `effective` independent slots, stretched to `n` slots, and never closer together than
/// the ranks for `n` independent slots.
///
/// The number of slots below the true quantile has `n / effective` times the variance of independent slots (design
/// effect: L. Kish, Survey Sampling (1965), section 8.2; with order statistics: R. S. Woodruff, Confidence Intervals
/// for Medians and Other Position Measures, JASA 47 (1952)).
///
/// # Errors
/// [`NeedsMore`] if `effective` is below [`needs`]; the error contains the necessary number of slots with the same
/// dependence.
pub fn interval_ranks_of_dependent(n: u64, effective: u64, q: Quantile) -> Result<RankInterval, NeedsMore> {
    let independent = interval_ranks(n, q)?;
    let spread = |rank: u64| (u128::from(rank) * u128::from(n) / u128::from(effective.max(1))) as u64;
    match interval_ranks(effective, q) {
        Ok(ranks) => Ok(RankInterval {
            lower: (1 + spread(ranks.lower - 1)).min(independent.lower),
            upper: (n - spread(effective - ranks.upper)).max(independent.upper),
        }),
        Err(NeedsMore { needs }) => Err(NeedsMore { needs: spread(needs) }),
    }
}

/// Probability that the order statistics of two ranks enclose the true quantile of a continuous distribution:
/// P(X_(lower) <= x_q < X_(upper)) = P(lower <= X < upper), X binomial of `n` and `q`.
///
/// A `lower` of 0 and an `upper` above `n` mean that this end is open.
pub fn exact_coverage(n: u64, ranks: RankInterval, q: Quantile) -> f64 {
    let below = Binomial { n, parts: q.parts() };
    let missed_below = match ranks.lower.checked_sub(1) {
        Some(k) => below.at_most(k),
        None => 0.0,
    };
    (1.0 - missed_below - below.at_least(ranks.upper)).max(0.0)
}

/// The largest k with P(X <= k) <= 0.025 for a binomial distribution, or 0. The search starts at the normal
/// approximation, which is wrong by a few steps at most.
fn last_in_tail(binomial: Binomial) -> u64 {
    let in_tail = |k: u64| binomial.at_most(k) <= TAIL;
    let mut k = (binomial.mean() - 1.96 * binomial.standard_deviation()).max(0.0) as u64;
    while k > 0 && !in_tail(k) {
        k -= 1;
    }
    while in_tail(k + 1) {
        k += 1;
    }
    k
}
