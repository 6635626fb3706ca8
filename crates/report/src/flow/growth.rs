//! How figures grow with the number of subscribers: the exponent of a power law, fitted over conditions that differ in
//! nothing else.

use super::FlowReport;
use crate::condition::ConditionReport;
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use std::collections::BTreeMap;

/// The factor that is the number of subscribers.
pub(super) const FACTOR: &str = "measure.subscribers";
/// The factor that is the number of publishers.
pub(super) const PUBLISHERS: &str = "measure.publishers";
/// A line through two points always fits.
const FEWEST: usize = 3;

/// ln y = a + b ln x by least squares: b and its standard error.
pub(super) fn power(points: &[(f64, f64)]) -> Option<(f64, f64)> {
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

type Figure = (&'static str, fn(&FlowReport) -> Option<f64>);
const FIGURES: [Figure; 4] = [
    ("discovery of all", |f| f.discovery_ns.map(|s| s.median)),
    ("the median until the last has a message", |f| Some(f.slowest.as_ref()?.quantile(0.5)?.value_ns()? as f64)),
    ("samples/s at the slowest", |f| f.samples_per_s.map(|s| s.median)),
    ("CPU time of the publisher per sample", |f| f.publisher_cpu_ns.map(|s| s.median)),
];

/// One sentence for each group of conditions that differ in the number of subscribers only.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let mut groups: BTreeMap<String, Vec<&ConditionReport>> = BTreeMap::new();
    for condition in report.conditions.iter().filter(|c| c.flow.is_some() && c.levels.contains_key(FACTOR)) {
        let others = condition.levels.iter().filter(|(factor, _)| *factor != FACTOR);
        let key: Vec<String> = others.map(|(factor, level)| format!("{factor} {level}")).collect();
        groups.entry(key.join(", ")).or_default().push(condition);
    }
    groups.into_iter().filter_map(|(name, conditions)| told(&name, &conditions)).collect()
}

fn told(name: &str, conditions: &[&ConditionReport]) -> Option<Finding> {
    let flows: Vec<&FlowReport> = conditions.iter().filter_map(|c| c.flow.as_ref()).collect();
    let mut said = Vec::new();
    for (what, of) in FIGURES {
        let points: Vec<(f64, f64)> =
            flows.iter().filter_map(|f| Some((f64::from(f.subscribers), of(f)?))).filter(|p| p.1 > 0.0).collect();
        if let Some((exponent, error)) = power(&points) {
            said.push(format!("{what} as N^{exponent:.2} (standard error {error:.2})"));
        }
    }
    let (least, most) = (flows.iter().map(|f| f.subscribers).min()?, flows.iter().map(|f| f.subscribers).max()?);
    let text = format!("{name}: from {least} to {most} subscribers change {}.", said.join(", "));
    let ids: Vec<usize> = conditions.iter().map(|c| c.id).collect();
    (!said.is_empty()).then(|| finding(FindingLevel::Result, "growth", text, &ids))
}

#[cfg(test)]
mod tests {
    use super::power;

    #[test]
    fn a_power_law_gives_its_exponent() {
        let points: Vec<(f64, f64)> = [1.0f64, 2.0, 4.0, 8.0].iter().map(|x| (*x, 3.0 * x.powf(1.5))).collect();
        let (exponent, error) = power(&points).unwrap();
        assert!((exponent - 1.5).abs() < 1e-12 && error < 1e-6, "{exponent} {error}");
        // One point off by the factor e moves the slope by its leverage: (x - mean) / xx in logarithms.
        let mut off = points.clone();
        off[3].1 *= std::f64::consts::E;
        let (moved, error) = power(&off).unwrap();
        let ln2 = std::f64::consts::LN_2;
        assert!((moved - 1.5 - 1.5 * ln2 / (5.0 * ln2 * ln2)).abs() < 1e-12, "{moved}");
        assert!(error > 0.1);
        assert!(power(&points[..2]).is_none() && power(&[(2.0, 1.0); 5]).is_none());
    }
}
