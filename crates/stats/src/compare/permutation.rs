//! All relabellings of a few trials: the values that the statistic has if the labels of the sides are exchanged at
//! random.
//!
//! R. A. Fisher, The Design of Experiments (1935), section 21; intervals by inversion as in P. Good, Permutation,
//! Parametric, and Bootstrap Tests of Hypotheses, 3rd ed. (2005), section 3.3.

use super::cell::Cell;
use super::random::Random;
use super::welch::Welch;

/// Largest number of relabellings that are all computed; if there are more, a random sample of relabellings is used.
const LISTED: u64 = 20_000;
const DRAWN: usize = 9_999;

/// All ways to choose which trials belong to side a, the real choice first; a random sample of these ways if there are
/// too many.
fn relabellings(of_a: usize, of_b: usize) -> Vec<Vec<bool>> {
    let n = of_a + of_b;
    let real: Vec<bool> = (0..n).map(|i| i < of_a).collect();
    let mut all = vec![real.clone()];
    if choices(n, of_a).is_some_and(|c| c <= LISTED) {
        let mut bits: u64 = (1 << of_a) - 1;
        loop {
            // Gosper's step: the next number with the same number of set bits.
            let low = bits & bits.wrapping_neg();
            let carried = bits + low;
            bits = (((carried ^ bits) >> 2) / low) | carried;
            if bits >> n != 0 {
                return all;
            }
            all.push((0..n).map(|i| bits >> i & 1 == 1).collect());
        }
    }
    let mut random = Random::seeded(n as u64);
    let mut shuffled = real;
    for _ in 0..DRAWN {
        for i in (1..n).rev() {
            shuffled.swap(i, random.below(i + 1));
        }
        all.push(shuffled.clone());
    }
    all
}

/// Number of ways to choose `k` of `n` items; `None` if the number is large.
fn choices(n: usize, k: usize) -> Option<u64> {
    let mut ways: u64 = 1;
    for i in 0..k as u64 {
        ways = ways.checked_mul(n as u64 - i)? / (i + 1);
        if ways > 1 << 32 {
            return None;
        }
    }
    (n < 64).then_some(ways)
}

fn split(cell: &Cell, of_a: &[bool]) -> (Vec<f64>, Vec<f64>) {
    let side = |wanted: bool| {
        let all = cell.a.iter().chain(&cell.b).zip(of_a);
        all.filter(|(_, is_a)| **is_a == wanted).map(|(v, _)| *v).collect()
    };
    (side(true), side(false))
}

/// For each cell of a group: the share of relabellings for which the largest |z| of the group is at least the |z| that
/// the cell has with the real labels. Single-step max-T, exact (Westfall & Young 1993, section 2.3).
pub(crate) fn shares(cells: &[&Cell]) -> Vec<f64> {
    let largest = |of_a: &Vec<bool>| {
        let z = |c: &&Cell| {
            let (a, b) = split(c, of_a);
            Welch::of(a.into_iter(), b.into_iter()).z().abs()
        };
        cells.iter().map(z).fold(0.0, f64::max)
    };
    let all: Vec<f64> = relabellings(cells[0].a.len(), cells[0].b.len()).iter().map(largest).collect();
    let share = |c: &&Cell| {
        let real = Welch::of(c.a.iter().copied(), c.b.iter().copied()).z().abs();
        all.iter().filter(|z| **z >= real * (1.0 - 1e-9)).count() as f64 / all.len() as f64
    };
    cells.iter().map(share).collect()
}

/// The smallest value that [`shares`] can return: the share of relabellings that are the real labels or, if the sides
/// are equally large, the exchanged labels.
pub(crate) fn least_share(of_a: usize, of_b: usize) -> f64 {
    let alike = if of_a == of_b { 2.0 } else { 1.0 };
    choices(of_a + of_b, of_a).map_or(1.0 / DRAWN as f64, |c| alike / c as f64)
}

/// Interval of the shifts (differences between the sides) that the relabelling test does not reject, two-sided at
/// `level`.
///
/// After a shift d is subtracted from b, a relabelling is more extreme than the real labels exactly if the exchanged
/// values of b exceed the exchanged values of a by at most d on average. So the ends are order statistics of these
/// differences. `None` if there are too few relabellings for the level.
pub(crate) fn interval(cell: &Cell, level: f64) -> Option<(f64, f64)> {
    let all = relabellings(cell.a.len(), cell.b.len());
    let of_a = cell.a.len();
    let difference = |labels: &Vec<bool>| {
        let left = cell.a.iter().zip(labels).filter(|(_, is_a)| !**is_a).map(|(v, _)| v);
        let came = cell.b.iter().zip(&labels[of_a..]).filter(|(_, is_a)| **is_a).map(|(v, _)| v);
        let changed = left.clone().count();
        (changed > 0).then(|| (came.sum::<f64>() - left.sum::<f64>()) / changed as f64)
    };
    let mut differences: Vec<f64> = all.iter().filter_map(difference).collect();
    differences.sort_unstable_by(f64::total_cmp);
    let allowed = (level / 2.0 * all.len() as f64 + 1e-9).floor() as usize;
    let low = differences.get(allowed.checked_sub(1)?)?;
    Some((*low, differences[differences.len() - allowed]))
}

/// The share of relabellings for which the rank sums of the sides are at least as far apart as for the real labels.
/// Values later than every other share the last rank: F. Wilcoxon, Individual Comparisons by Ranking Methods,
/// Biometrics Bulletin 1 (1945).
pub(crate) fn share_by_ranks(cell: &Cell) -> f64 {
    let values: Vec<f64> = cell.a.iter().chain(&cell.b).copied().collect();
    // Twice the mean rank among equal values, minus n + 1: these are whole numbers around zero.
    let rank = |v: &f64| {
        let below = values.iter().filter(|o| *o < v).count() as i64;
        let above = values.iter().filter(|o| *o > v).count() as i64;
        below - above
    };
    let ranks: Vec<i64> = values.iter().map(rank).collect();
    let sum = |labels: &Vec<bool>| {
        ranks.iter().zip(labels).filter(|(_, is_a)| **is_a).map(|(r, _)| r).sum::<i64>().unsigned_abs()
    };
    let all = relabellings(cell.a.len(), cell.b.len());
    let real = sum(&all[0]);
    all.iter().filter(|labels| sum(labels) >= real).count() as f64 / all.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_relabellings_are_there_once() {
        let mut all = relabellings(4, 4);
        assert_eq!(all.len(), 70);
        assert!(all.iter().all(|l| l.iter().filter(|a| **a).count() == 4));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 70);
    }

    #[test]
    fn sides_that_do_not_overlap() {
        let cell = Cell { a: vec![1.0, 1.1, 1.2, 1.3], b: vec![2.0, 2.1, 2.2, 2.4] };
        assert_eq!(shares(&[&cell])[0], 2.0 / 70.0);
        assert_eq!(share_by_ranks(&cell), 2.0 / 70.0);
        // One relabelling on each side is rejected: the ends are the closest and the farthest pair.
        let (low, high) = interval(&cell, 0.05).unwrap();
        assert!((low - 0.7).abs() < 1e-12 && (high - 1.4).abs() < 1e-12, "{low} {high}");
        assert_eq!(interval(&cell, 0.02), None);
    }

    /// Tests that the interval between the sides contains exactly those shifts that the relabelling test does not
    /// reject.
    #[test]
    fn the_interval_is_the_test_turned_round() {
        let mut random = Random::seeded(3);
        for _ in 0..50 {
            let mut side = |n: usize| (0..n).map(|_| random.normal()).collect::<Vec<f64>>();
            let cell = Cell { a: side(4), b: side(5) };
            let (low, high) = interval(&cell, 0.05).unwrap();
            for shift in [low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6] {
                let b: Vec<f64> = cell.b.iter().map(|v| v - shift).collect();
                let labels = relabellings(4, 5);
                let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
                let moved = Cell { a: cell.a.clone(), b };
                let off = |l: &Vec<bool>| {
                    let (a, b) = split(&moved, l);
                    mean(&b) - mean(&a)
                };
                let real = off(&labels[0]);
                let up = labels.iter().filter(|l| off(l) >= real - 1e-12).count() as f64 / 126.0;
                let down = labels.iter().filter(|l| off(l) <= real + 1e-12).count() as f64 / 126.0;
                assert_eq!(up > 0.025 && down > 0.025, (low..=high).contains(&shift), "{shift} {low} {high}");
            }
        }
    }

    #[test]
    fn lost_is_the_last_rank() {
        let lost = f64::INFINITY;
        let cell = Cell { a: vec![1.0, 1.1, 1.2, 1.3], b: vec![lost; 4] };
        assert_eq!(share_by_ranks(&cell), 2.0 / 70.0);
        let both = Cell { a: vec![lost; 4], b: vec![lost; 4] };
        assert_eq!(share_by_ranks(&both), 1.0);
    }
}
