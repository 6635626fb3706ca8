//! Computes the return level (the value that one message in a given number exceeds) and its interval.

use super::clusters::Clusters;
use super::pareto::{Pareto, SHAPES, growth, maximise};
use super::peaks::Exceedances;
use crate::reference::student_975;

/// A return level and its interval, as distances above the threshold in ns.
pub(crate) struct Level {
    pub level: f64,
    pub low: f64,
    pub high: f64,
}

/// Largest accepted ratio of the upper end of an interval to its lower end; if the ratio is larger, the interval has no
/// upper end.
const FARTHEST: f64 = 20.0;

/// The level that one in `rarity` messages above the threshold exceeds: S. Coles, An Introduction to Statistical
/// Modeling of Extreme Values (2001), section 4.3.3. The interval of the level follows from the profile likelihood.
/// `None` if the interval has no upper end.
///
/// Messages of a cluster depend on each other. So the likelihood ratio of independent messages is scaled by the
/// variance of the level with clusters divided by the variance without: J. T. Kent, Robust Properties of Likelihood
/// Ratio Tests, Biometrika 69 (1982). The number of late messages is uncertain too, which increases that variance.
pub(crate) fn return_level(above: &Exceedances, clusters: &Clusters, fit: Pareto, rarity: f64) -> Option<Level> {
    let level = fit.level(rarity);
    let excesses = &above.excesses;
    let most = fit.likelihood(excesses);
    let t = student_975(clusters.len() as f64 - 2.0);
    let allowed = 0.5 * t * t * inflation(above, clusters, fit, rarity);
    let inside = |level: f64| most - profile(excesses, level, rarity) <= allowed;
    let mut outside = level;
    while inside(outside) && outside > level / FARTHEST {
        outside /= 1.25;
    }
    let low = border((outside * 1.25).min(level), outside, inside);
    outside = level;
    while inside(outside) && outside < FARTHEST * low {
        outside *= 1.25;
    }
    let high = border((outside / 1.25).max(level), outside, inside);
    (high < FARTHEST * low).then_some(Level { level, low, high })
}

fn border(mut within: f64, mut beyond: f64, inside: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..12 {
        let middle = (within + beyond) / 2.0;
        *(if inside(middle) { &mut within } else { &mut beyond }) = middle;
    }
    beyond
}

/// The largest likelihood that a return level has with any shape of the distribution.
fn profile(excesses: &[f64], level: f64, rarity: f64) -> f64 {
    let max = excesses.last().copied().unwrap_or(0.0);
    let with = |shape: f64| Pareto { shape, scale: level / growth(shape, rarity) };
    let likelihood = |shape: f64| with(shape).likelihood(excesses);
    // All excesses lie below the upper end of a bounded distribution.
    let least = if level < max { (1.0 - level / max).ln() / rarity.ln() + 1e-6 } else { f64::NEG_INFINITY };
    let low = SHAPES.start().max(least);
    // The interval may use heavier tails than an accepted fit has.
    likelihood(maximise(low, (2.0f64).max(low + 0.1), 20, likelihood))
}

/// The variance of the level with clusters, divided by the variance for independent messages whose share above the
/// threshold is known. Messages of a cluster are taken as equal, which is the strongest possible dependence: the design
/// effect of Kish, Survey Sampling (1965), section 5.4. Sums of scores by cluster would show weaker dependence, but are
/// far too uncertain for so few clusters. The covariance is from R. L. Smith, Estimating Tails of Probability
/// Distributions, Annals of Statistics 15 (1987).
fn inflation(above: &Exceedances, clusters: &Clusters, fit: Pareto, rarity: f64) -> f64 {
    let Pareto { shape, scale } = fit;
    let n = above.values.len() as f64;
    let h = 1e-5;
    let of_shape = scale * (growth(shape + h, rarity) - growth(shape - h, rarity)) / (2.0 * h);
    let of_scale = growth(shape, rarity);
    let of_share = scale * rarity.powf(shape);
    let variance = (1.0 + shape)
        * (2.0 * (scale * of_scale).powi(2) - 2.0 * scale * of_scale * of_shape + (1.0 + shape) * of_shape.powi(2));
    clusters.mean_size(n) * (1.0 + of_share * of_share / variance)
}
