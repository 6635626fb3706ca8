//! The critical value for a whole table of comparisons: a limit that the largest |z| of the table rarely exceeds if the
//! sides do not differ.
//!
//! The single-step max-T of P. H. Westfall & S. S. Young, Resampling-Based Multiple Testing (1993), section 2.3. The
//! null distribution is drawn, not permuted: the trials of a condition are normal on the log scale, with the
//! correlations that the statistics have within the sides. Permuting does not work here: five trials have 252
//! relabellings, too few for a table of ten conditions, and relabelling trials that differ would make the critical
//! value grow with the difference.

use super::cell::Cell;
use super::random::Random;
use super::welch::Welch;

/// Number of random draws of the largest |z|: the error rate of a table of comparisons is then 5 % with a standard
/// error of 0.3 %.
const DRAWS: usize = 5_000;

/// The value that the largest |z| of all `groups` exceeds with probability `level` if there is no difference.
///
/// Groups share no trial, so their largest values are independent: the distribution for the table is the product of the
/// groups' distributions.
pub(crate) fn critical(groups: &[Vec<&Cell>], level: f64) -> f64 {
    let largest: Vec<Vec<f64>> = (1..).zip(groups).map(|(seed, g)| largest_of(g, seed)).collect();
    let below =
        |z: f64| -> f64 { largest.iter().map(|l| l.partition_point(|m| *m <= z) as f64 / l.len() as f64).product() };
    let mut all: Vec<f64> = largest.concat();
    all.sort_unstable_by(f64::total_cmp);
    let at = all.partition_point(|z| below(*z) < 1.0 - level);
    all.get(at).copied().unwrap_or(f64::INFINITY)
}

/// Random draws of the largest |z| of a group of cells, in rising order. Each group has its own seed, so that the
/// errors of the groups cancel.
fn largest_of(cells: &[&Cell], seed: u64) -> Vec<f64> {
    let root = root_of_correlations(cells);
    let (of_a, of_b, m) = (cells[0].a.len(), cells[0].b.len(), cells.len());
    let mut random = Random::seeded(seed);
    let mut raw = vec![0.0; m];
    // For each statistic: the trials of side a, then the trials of side b.
    let mut trials = vec![0.0; (of_a + of_b) * m];
    let mut draws: Vec<f64> = (0..DRAWS)
        .map(|_| {
            for trial in 0..of_a + of_b {
                raw.fill_with(|| random.normal());
                for (cell, row) in root.iter().enumerate() {
                    let value: f64 = row.iter().zip(&raw).map(|(r, x)| r * x).sum();
                    trials[cell * (of_a + of_b) + trial] = value;
                }
            }
            let z = |cell: &[f64]| {
                let (a, b) = cell.split_at(of_a);
                Welch::of(a.iter().copied(), b.iter().copied()).z().abs()
            };
            trials.chunks_exact(of_a + of_b).map(z).fold(0.0, f64::max)
        })
        .collect();
    draws.sort_unstable_by(f64::total_cmp);
    draws
}

/// The lower triangular matrix L with L L^T = the correlations of the statistics within the sides. A statistic that is
/// a multiple of others, or that does not vary, has a pivot of zero: its column stays zero.
fn root_of_correlations(cells: &[&Cell]) -> Vec<Vec<f64>> {
    let residuals: Vec<Vec<f64>> = cells.iter().map(|c| residuals(c)).collect();
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let m = cells.len();
    let mut root: Vec<Vec<f64>> = (0..m).map(|i| vec![0.0; i + 1]).collect();
    for i in 0..m {
        for j in 0..=i {
            let scale = (product(&residuals[i], &residuals[i]) * product(&residuals[j], &residuals[j])).sqrt();
            let correlation = match i == j {
                true => 1.0,
                false if scale > 0.0 => product(&residuals[i], &residuals[j]) / scale,
                false => 0.0,
            };
            let rest = correlation - product(&root[i][..j], &root[j][..j]);
            root[i][j] = if i == j {
                rest.max(0.0).sqrt()
            } else if root[j][j] > 1e-6 {
                rest / root[j][j]
            } else {
                0.0
            };
        }
    }
    root
}

/// Difference between the value of each trial and the mean of its side.
fn residuals(cell: &Cell) -> Vec<f64> {
    let off = |side: &[f64]| {
        let mean = side.iter().sum::<f64>() / side.len() as f64;
        side.iter().map(move |v| v - mean).collect::<Vec<f64>>()
    };
    [off(&cell.a), off(&cell.b)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(random: &mut Random, shared: &[f64], own: f64) -> Cell {
        let values: Vec<f64> = shared.iter().map(|s| s + own * random.normal()).collect();
        let (a, b) = values.split_at(shared.len() / 2);
        Cell { a: a.to_vec(), b: b.to_vec() }
    }

    /// Known critical values: for one statistic, the two-sided 5 % quantile of the normal distribution; for several
    /// independent statistics, Sidak's value; for several equal statistics, the value for one statistic.
    #[test]
    fn known_critical_values() {
        let mut random = Random::seeded(5);
        let shared: Vec<f64> = (0..60).map(|_| random.normal()).collect();
        let one = cell(&mut random, &shared, 0.0);
        let close = |groups: &[Vec<&Cell>], expected: f64| {
            let found = critical(groups, 0.05);
            assert!((found - expected).abs() < 0.06, "{found} where {expected} is known");
        };
        close(&[vec![&one]], 1.960);
        close(&[vec![&one, &one, &one]], 1.960);
        close(&[vec![&one], vec![&one], vec![&one], vec![&one], vec![&one]], 2.569);
        let apart: Vec<Cell> = (0..5).map(|_| cell(&mut random, &[0.0; 2_000], 1.0)).collect();
        let few: Vec<Cell> = apart.iter().map(|c| Cell { a: c.a[..40].to_vec(), b: c.b[..40].to_vec() }).collect();
        close(&[few.iter().collect()], 2.55);
    }
}
