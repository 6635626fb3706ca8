//! An e-process from the symmetry of pairs: evidence against "the change does nothing" that may be looked at after each pair.
//!
//! Without an effect, the random order within a pair makes a difference and its negative equally likely, whatever the
//! distribution. Then exp(l d) / cosh(l d) has the mean 1 for every l that depends on earlier pairs only, so that the product
//! over the pairs exceeds 1 / alpha at any time with a probability of at most alpha (J. Ville, Etude critique de la notion de
//! collectif, 1939). Such products go back to V. H. de la Pena, A General Class of Exponential Inequalities for Martingales and
//! Ratios, Annals of Probability 27 (1999).

/// Values of l, in units of one over the size of earlier differences, over which the products are averaged.
const STEPS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// Evidence, as an e-value, that the differences tend to be above zero: the largest value after any number of pairs. It exceeds
/// 1 / alpha with a probability of at most alpha if both signs are equally likely.
pub(crate) fn largest_evidence(differences: impl Iterator<Item = f64>) -> f64 {
    let mut logs = [0.0; STEPS.len()];
    let mut sizes: Vec<f64> = Vec::new();
    let mut largest = 1.0_f64;
    for difference in differences {
        // The size of a difference must not be used for the difference itself.
        let size = middle(&mut sizes).filter(|size| *size > 0.0).unwrap_or(1.0);
        for (log, step) in logs.iter_mut().zip(STEPS) {
            *log += log_factor(step * difference / size);
        }
        sizes.push(difference.abs());
        let mean = logs.iter().map(|log| log.exp()).sum::<f64>() / STEPS.len() as f64;
        largest = largest.max(mean);
    }
    largest
}

/// Logarithm of exp(x) / cosh(x), which no large `x` overflows.
fn log_factor(x: f64) -> f64 {
    std::f64::consts::LN_2 - (-2.0 * x).exp().ln_1p()
}

/// Median of the values; `None` without values.
fn middle(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::{largest_evidence, log_factor};

    #[test]
    fn a_pair_at_most_doubles_the_evidence() {
        let evidence = largest_evidence([5.0; 10].into_iter());
        assert!(evidence > 300.0 && evidence <= 1024.0, "{evidence}");
        assert!((largest_evidence([-5.0; 10].into_iter()) - 1.0).abs() < 1e-9);
        assert!((log_factor(800.0) - std::f64::consts::LN_2).abs() < 1e-12);
        // Far below zero, exp(-2 x) would overflow if it were computed alone.
        assert!(log_factor(-800.0) < -1000.0);
    }

    /// Test: over all signs of the same sizes the mean of the last value would be 1, so that the evidence is not larger than a
    /// fair game allows: at most one in 1 / alpha of all sign patterns exceeds 1 / alpha.
    #[test]
    fn all_sign_patterns_keep_the_error_rate() {
        let sizes = [0.3, 1.0, 0.1, 4.0, 0.8, 0.2, 2.0, 0.7, 0.5, 0.9, 1.1, 0.05];
        for alpha in [0.05, 0.01] {
            let exceeds = |signs: u32| {
                let signed = sizes.iter().enumerate().map(|(i, s)| if signs >> i & 1 == 1 { *s } else { -s });
                largest_evidence(signed) >= 1.0 / alpha
            };
            let patterns = 1_u32 << sizes.len();
            let count = (0..patterns).filter(|signs| exceeds(*signs)).count();
            assert!(count as f64 <= alpha * f64::from(patterns), "{count} of {patterns}");
            assert!(count > 0, "the evidence can never be found");
        }
    }
}
