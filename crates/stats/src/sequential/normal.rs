//! Tails of the standard normal distribution.

/// Probability that a standard normal number is above `z`; accurate far out in the tail.
pub(crate) fn above(z: f64) -> f64 {
    0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}

/// The number that a standard normal number exceeds with probability `p`, with 0 < p < 1.
pub(crate) fn exceeded_with(p: f64) -> f64 {
    root(|z| above(z) > p, -40.0, 40.0)
}

/// The border between the numbers for which `holds` is true (below) and the numbers for which it is false (above).
pub(crate) fn root(holds: impl Fn(f64) -> bool, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Density of the standard normal distribution.
pub(crate) fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::{above, exceeded_with};

    /// Test: the functions agree with tables of the normal distribution.
    #[test]
    fn known_tails() {
        for (z, p) in [(0.0, 0.5), (1.644_854, 0.05), (1.959_964, 0.025), (2.575_829, 0.005), (4.753_424, 1e-6)] {
            assert!((above(z) / p - 1.0).abs() < 1e-5, "{z}: {}", above(z));
            assert!((exceeded_with(p) - z).abs() < 1e-5, "{p}: {}", exceeded_with(p));
        }
    }
}
