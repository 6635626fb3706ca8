//! Fits a power law to figures of conditions that differ only in the number of subscribers.

/// Name of the factor that varies the number of subscribers.
pub(crate) const FACTOR: &str = "measure.subscribers";

/// Name of the factor that varies the number of publishers.
pub(crate) const PUBLISHERS: &str = "measure.publishers";

/// Smallest number of points for a fit of a power law, because a line through two points always fits.
const FEWEST: usize = 3;

/// Fits ln y = a + b ln x by least squares, and returns b and its standard error.
pub(crate) fn power(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let points: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = points.len() as f64;
    let (mean_x, mean_y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let xx: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let xy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    if points.len() < FEWEST || xx <= 0.0 || points.iter().any(|p| !p.0.is_finite() || !p.1.is_finite()) {
        return None;
    }
    let slope = xy / xx;
    let rest: f64 = points.iter().map(|p| (p.1 - mean_y - slope * (p.0 - mean_x)).powi(2)).sum();
    Some((slope, (rest / (n - 2.0) / xx).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::power;

    #[test]
    fn a_power_law_gives_its_exponent() {
        let points: Vec<(f64, f64)> = [1.0f64, 2.0, 4.0, 8.0].iter().map(|x| (*x, 3.0 * x.powf(1.5))).collect();
        let (exponent, error) = power(&points).unwrap();
        assert!((exponent - 1.5).abs() < 1e-12 && error < 1e-6, "{exponent} {error}");
        // If one point is wrong by the factor e, the slope changes by the leverage of the point: (x - mean) / xx in
        // logarithms.
        let mut off = points.clone();
        off[3].1 *= std::f64::consts::E;
        let (moved, error) = power(&off).unwrap();
        let ln2 = std::f64::consts::LN_2;
        assert!((moved - 1.5 - 1.5 * ln2 / (5.0 * ln2 * ln2)).abs() < 1e-12, "{moved}");
        assert!(error > 0.1);
        assert!(power(&points[..2]).is_none() && power(&[(2.0, 1.0); 5]).is_none());
    }
}
