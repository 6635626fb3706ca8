//! The return level with its interval.

use super::clusters::Clusters;
use super::pareto::{Pareto, SHAPES, growth, maximise};
use super::peaks::Exceedances;
use crate::reference::student_975;

/// Above the threshold.
pub(crate) struct Level {
    pub level: f64,
    pub low: f64,
    pub high: f64,
}

/// An upper end so many times as far as the lower is none.
const FARTHEST: f64 = 20.0;

/// The level that one excess in `rarity` is above: S. Coles, An Introduction to Statistical Modeling of Extreme Values
/// (2001), section 4.3.3; its interval is that of the profile likelihood. `None` without an upper end.
///
/// Messages of a cluster depend on each other, so the likelihood ratio is that of independent messages times the
/// variance of the level with clusters over the one without: J. T. Kent, Robust Properties of Likelihood Ratio Tests,
/// Biometrika 69 (1982). How many messages are late is uncertain too, and adds to that variance.
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

/// The likelihood of a level with the shape that suits it best.
fn profile(excesses: &[f64], level: f64, rarity: f64) -> f64 {
    let max = excesses.last().copied().unwrap_or(0.0);
    let with = |shape: f64| Pareto { shape, scale: level / growth(shape, rarity) };
    let likelihood = |shape: f64| with(shape).likelihood(excesses);
    // All excesses lie below the end of a bounded distribution.
    let least = if level < max { (1.0 - level / max).ln() / rarity.ln() + 1e-6 } else { f64::NEG_INFINITY };
    let low = SHAPES.start().max(least);
    // A level may be told by heavier tails than a fit is accepted with.
    likelihood(maximise(low, (2.0f64).max(low + 0.1), 20, likelihood))
}

/// The variance of the level with clusters over the one of independent messages whose share above the threshold is
/// known. Messages of a cluster are taken as alike, which is the most that they can depend on each other: the design
/// effect of Kish, Survey Sampling (1965), section 5.4. Sums of scores by cluster would tell less dependence where
/// there is less, but are far too uncertain for as few clusters. The covariance is that of R. L. Smith, Estimating Tails
/// of Probability Distributions, Annals of Statistics 15 (1987).
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
