//! Conditions other than the goodness of fit that a tail estimate must satisfy.

use super::NotApplicable;
use super::clusters::{Cluster, Clusters};
use super::pareto::Pareto;
use super::peaks::Exceedances;
use crate::reference::chi_squared;

/// The 0.9975 quantile of the normal distribution: each test wrongly fails in one of 200 good records.
const Z: f64 = 2.807;
/// The 0.995 quantile of the normal distribution, for one-sided tests.
const Z_ONE_SIDE: f64 = 2.576;

/// The back-test fits the tail to one part of the messages and predicts a latency for the rest: the latency above which
/// this number of clusters of late messages is expected.
const EXPECTED: f64 = 10.0;

/// Largest accepted step of the clock, as a share of the mean excess over the threshold.
const STEP: f64 = 0.05;

pub(crate) struct BackTest {
    pub expected: f64,
    pub found: u64,
}

/// Checks that the step of the clock is small enough for a tail estimate. The smallest distance between two values is
/// the step of the clock, or is small by chance.
pub(crate) fn fine_steps(above: &Exceedances) -> Result<(), NotApplicable> {
    let steps = above.excesses.windows(2).map(|p| p[1] - p[0]).filter(|d| *d > 0.0);
    let step = steps.fold(f64::INFINITY, f64::min);
    let mean = above.excesses.iter().sum::<f64>() / above.excesses.len() as f64;
    if step.is_finite() && step <= STEP * mean {
        return Ok(());
    }
    Err(NotApplicable::Steps { step_ns: if step.is_finite() { step as i64 } else { mean as i64 } })
}

/// Checks that consecutive peaks of clusters are not correlated and do not grow: Spearman's rank correlation (1904),
/// whose standard error without correlation is 1 / sqrt(n - 1).
pub(crate) fn independent(clusters: &Clusters) -> Result<(), NotApplicable> {
    let ranks = ranks(clusters);
    let places: Vec<f64> = (0..ranks.len()).map(|i| i as f64).collect();
    if correlation(&ranks, &places) > Z {
        return Err(NotApplicable::Trend);
    }
    if correlation(&ranks[1..], &ranks[..ranks.len() - 1]) > Z {
        return Err(NotApplicable::Dependent);
    }
    Ok(())
}

fn ranks(clusters: &[Cluster]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..clusters.len()).collect();
    order.sort_by(|a, b| clusters[*a].peak.total_cmp(&clusters[*b].peak));
    let mut ranks = vec![0.0; order.len()];
    order.iter().enumerate().for_each(|(rank, at)| ranks[*at] = rank as f64);
    ranks
}

/// Distance of the correlation of two series from zero, in standard errors.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |v: &[f64], w: &[f64], m: f64, o: f64| v.iter().zip(w).map(|(x, y)| (x - m) * (y - o)).sum::<f64>();
    let both = sum(a, a, mean_a, mean_a) * sum(b, b, mean_b, mean_b);
    if both > 0.0 { (sum(a, b, mean_a, mean_b) / both.sqrt()).abs() * (n - 1.0).sqrt() } else { 0.0 }
}

/// Checks that the numbers of clusters in equal parts of the record vary no more than in a Poisson process: the index
/// of dispersion, C. Cunnane, A Note on the Poisson Assumption in Partial Duration Series Models, Water Resources
/// Research 15 (1979).
pub(crate) fn evenly_spread(clusters: &Clusters, n: u64) -> Result<(), NotApplicable> {
    let parts = (clusters.len() / 10).clamp(5, 50);
    let mut counts = vec![0.0f64; parts];
    for cluster in clusters.iter() {
        counts[(cluster.at as u128 * parts as u128 / u128::from(n)) as usize] += 1.0;
    }
    let mean = clusters.len() as f64 / parts as f64;
    let dispersion = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / mean;
    if dispersion > chi_squared(parts as f64 - 1.0, Z_ONE_SIDE) { Err(NotApplicable::Uneven) } else { Ok(()) }
}

/// Checks that there is no gap among the latest values that the distribution would have in less than one of 100
/// records. On the scale of an exponential distribution, j times the gap above the j-th latest value is exponential: A.
/// Rényi, On the Theory of Order Statistics, Acta Math. Hung. 4 (1953).
pub(crate) fn none_apart(clusters: &Clusters, fit: Pareto) -> Result<(), NotApplicable> {
    let depths: Vec<f64> = clusters.peaks().iter().rev().map(|x| fit.depth(*x)).collect();
    let gaps = depths.windows(2).enumerate().map(|(j, d)| ((j + 1) as f64 * (d[0] - d[1]), j as u64 + 1));
    let limit = (100.0 * depths.len() as f64).ln();
    match gaps.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((gap, count)) if gap > limit => Err(NotApplicable::Apart { count }),
        _ => Ok(()),
    }
}

/// Back-test: the first half of the record predicts two things about the second half: a level that ten clusters exceed,
/// and how late the latest message is. The number of clusters is tested with root-transformed Poisson counts (F. J.
/// Anscombe, Biometrika 35 (1948)), where the level is as uncertain as such a count. The latest message is tested with
/// a distribution whose shape is heavier by 2.8 standard errors.
pub(crate) fn back_test(clusters: &Clusters, n: u64) -> Result<BackTest, NotApplicable> {
    let (first, second) = clusters.split_at(clusters.partition_point(|c| c.at < n / 2));
    let mut peaks: Vec<f64> = first.iter().map(|c| c.peak).collect();
    peaks.sort_unstable_by(f64::total_cmp);
    let fit = Pareto::fit(&peaks).filter(|_| peaks.len() as f64 > EXPECTED).ok_or(NotApplicable::Uneven)?;
    let as_many = first.len() as f64;
    let level = fit.level(as_many / EXPECTED);
    let found = second.iter().filter(|c| c.peak > level).count() as u64;
    let root = |count: f64| 2.0 * (count + 0.375).sqrt();
    let latest = second.iter().map(|c| c.peak).fold(0.0, f64::max);
    let heavier = Pareto { shape: fit.shape + Z * (1.0 + fit.shape) / as_many.sqrt(), ..fit };
    let surprise = as_many * (-heavier.depth(latest)).exp() < 0.005;
    if surprise || (root(found as f64) - root(EXPECTED)).abs() > Z * 2f64.sqrt() {
        return Err(NotApplicable::BackTest { expected: EXPECTED, found });
    }
    Ok(BackTest { expected: EXPECTED, found })
}
