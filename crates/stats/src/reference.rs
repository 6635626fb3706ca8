//! Quantiles of the reference distributions of tests, computed from quantiles of the normal distribution.

/// The 0.975 quantile of the standard normal distribution.
pub(crate) const Z_975: f64 = 1.959_963_984_540_054;
/// The 0.99 quantile of the standard normal distribution.
pub(crate) const Z_99: f64 = 2.326_347_874_040_841;

/// The quantile of the chi-squared distribution with the same probability as the normal quantile `z`: E. B. Wilson, M.
/// M. Hilferty, The Distribution of Chi-Square, PNAS 17 (1931).
pub(crate) fn chi_squared(degrees: f64, z: f64) -> f64 {
    let ninth = 2.0 / (9.0 * degrees);
    degrees * (1.0 - ninth + z * ninth.sqrt()).powi(3)
}

/// The 0.975 quantile of Student's t, for four degrees of freedom or more: the expansion of Abramowitz & Stegun 26.7.5.
pub(crate) fn student_975(degrees: f64) -> f64 {
    let z = Z_975;
    z + (z.powi(3) + z) / (4.0 * degrees)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * degrees.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * degrees.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests quantiles against the values in printed tables of Student's and the chi-squared distribution.
    #[test]
    fn printed_tables() {
        for (degrees, t) in [(4.0, 2.776), (9.0, 2.262), (15.0, 2.131), (30.0, 2.042), (100.0, 1.984)] {
            assert!((student_975(degrees) - t).abs() < 0.008, "{degrees}");
        }
        for (degrees, x) in [(1.0, 6.635), (2.0, 9.210), (5.0, 15.086), (10.0, 23.209), (50.0, 76.154)] {
            assert!((chi_squared(degrees, Z_99) - x).abs() < 0.08, "{degrees}");
        }
    }
}
