//! Confidence intervals for the share of events: an event happened in `k` of `n` cases.

use crate::binomial::Binomial;
use crate::quantile::WHOLE;

/// Probability, on each side, that the interval misses the true share.
const TAIL: f64 = 0.025;

/// The two-sided, equal-tailed 95 % interval of a share, if an event happened in `k` of `n` independent cases. If the
/// true share is the lower end, `k` or more events have a probability of 2.5 %. If it is the upper end, `k` or fewer
/// events have a probability of 2.5 %.
///
/// C. J. Clopper, E. S. Pearson, The Use of Confidence or Fiducial Limits, Biometrika 26 (1934).
pub fn share_interval(k: u64, n: u64) -> (f64, f64) {
    let share = |parts: u64| parts as f64 / WHOLE as f64;
    let low = match k {
        0 => 0.0,
        _ => share(last(|parts| Binomial { n, parts }.at_least(k) <= TAIL)),
    };
    let high = match k >= n {
        true => 1.0,
        false => share(last(|parts| Binomial { n, parts }.at_most(k) > TAIL) + 1),
    };
    (low, high)
}

/// The 95 % interval of the share on side `b` minus the share on side `a`; each side is given as `k` of `n`.
///
/// Method 10 of R. G. Newcombe, Interval Estimation for the Difference between Independent Proportions, Statistics in
/// Medicine 17 (1998), with the intervals of [`share_interval`] in place of Wilson's intervals. The result is not
/// narrower than Newcombe's.
pub fn share_difference(a: (u64, u64), b: (u64, u64)) -> (f64, f64) {
    let share = |(k, n): (u64, u64)| k as f64 / n.max(1) as f64;
    let (of_a, of_b) = (share(a), share(b));
    let ((low_a, high_a), (low_b, high_b)) = (share_interval(a.0, a.1), share_interval(b.0, b.1));
    let difference = of_b - of_a;
    (difference - (of_b - low_b).hypot(high_a - of_a), difference + (high_b - of_b).hypot(of_a - low_a))
}

/// The largest share for which `holds` is true, as a number of parts per 10^15; `holds` must be true for all smaller
/// shares and false for all larger shares.
fn last(holds: impl Fn(u64) -> bool) -> u64 {
    let (mut yes, mut no) = (0, WHOLE);
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) { yes = middle } else { no = middle }
    }
    yes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test: the ends of the interval equal values from tables; if no event happened in n cases, the upper end of the
    /// interval is 1 - 0.025^(1/n).
    #[test]
    fn known_intervals() {
        for (k, n, low, high) in
            [(0, 10, 0.0, 0.30850), (1, 10, 0.00253, 0.44502), (5, 10, 0.18709, 0.81291), (10, 10, 0.69150, 1.0)]
        {
            let (found_low, found_high) = share_interval(k, n);
            assert!(
                (found_low - low).abs() < 1e-5 && (found_high - high).abs() < 1e-5,
                "{k} of {n}: {found_low} {found_high}"
            );
        }
        let (low, high) = share_interval(0, 1_000_000);
        assert!(low == 0.0 && (high - 3.689e-6).abs() < 1e-9, "{high}");
        assert_eq!(share_interval(0, 0), (0.0, 1.0));
    }

    /// Test: the interval agrees with Newcombe's example (his table II), 56 of 70 and 48 of 80, for which his method
    /// gives 0.0524 to 0.3339.
    #[test]
    fn a_known_difference() {
        let (low, high) = share_difference((48, 80), (56, 70));
        assert!((0.035..=0.0524).contains(&low) && (0.3339..0.350).contains(&high), "{low} {high}");
        let (low, high) = share_difference((0, 100_000), (0, 100_000));
        assert!(low < 0.0 && (-low - high).abs() < 1e-12 && high < 5e-5, "{low} {high}");
    }
}
