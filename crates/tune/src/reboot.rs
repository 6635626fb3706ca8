//! The check after a reboot of the host: equal pairs are measured again and compared with the baseline, because all earlier
//! decisions rest on it.

use crate::pair::{MOST_PAIRS, Pair, SMALLEST_GAIN, geometric_mean, needed_for_a_gain};
use serde::{Deserialize, Serialize};
use tailbound_stats::sequential::ratio_of_trials;

/// Error rate of the A/A check.
const ALPHA: f64 = 0.05;

/// A reboot of the host between two pairs of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reboot {
    /// Boot id of the pairs before the reboot.
    pub before: String,
    /// Boot id of the pairs after it.
    pub after: String,
    /// Number of equal pairs that were measured after it.
    pub pairs: usize,
    /// Geometric mean of the figure in these pairs, ns.
    pub figure_ns: f64,
    /// Figure in these pairs divided by the figure in the baseline: value and ends of the 95 % interval.
    pub ratio: [f64; 3],
}

/// Why a run cannot go on after a reboot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AfterReboot {
    /// Equal trials vary so much that a gain of 20 % needs this number of pairs.
    TooNoisy(f64),
    /// The figure is clearly another one: its geometric mean in the baseline and now, ns.
    OtherFigure(f64, f64),
}

/// Compares the equal pairs after a reboot with the baseline.
pub(crate) fn check(
    (before, baseline): (&str, &[Pair]),
    (after, again): (&str, &[Pair]),
) -> Result<Reboot, AfterReboot> {
    let needed = needed_for_a_gain(again, ALPHA);
    if needed > MOST_PAIRS {
        return Err(AfterReboot::TooNoisy(needed));
    }
    let figures = |pairs: &[Pair]| -> Vec<f64> {
        pairs.iter().flat_map(|p| [p.without.figure_ns, p.with.figure_ns]).map(|ns| ns.max(1.0)).collect()
    };
    let mean = |pairs: &[Pair]| geometric_mean(figures(pairs).into_iter());
    let figure_ns = mean(again);
    let logs = |pairs: &[Pair]| -> Vec<f64> { figures(pairs).into_iter().map(f64::ln).collect() };
    let other = AfterReboot::OtherFigure(mean(baseline), figure_ns);
    let found = ratio_of_trials(&logs(baseline), &logs(again)).ok_or(other)?;
    if found.high < SMALLEST_GAIN || found.low > 1.0 / SMALLEST_GAIN {
        return Err(other);
    }
    let (before, after) = (before.to_owned(), after.to_owned());
    Ok(Reboot { before, after, pairs: again.len(), figure_ns, ratio: [found.ratio, found.low, found.high] })
}
