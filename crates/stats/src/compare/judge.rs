//! Judges all cells of a table of comparisons: does side b differ from side a?

use super::cell::{Cell, EXACT_TRIALS, WELCH_TRIALS};
use super::permutation;
use super::welch::Welch;
use super::{family, permutation::least_share};

/// Probability that a table of comparisons gets a false verdict although the sides do not differ.
const LEVEL: f64 = 0.05;

/// Cells of the table of comparisons that are computed from the same trials, each cell from another statistic of these
/// trials, for example the median and p99. All cells list the trials in the same order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Group {
    /// Cells of the table of comparisons: one cell for each statistic.
    pub cells: Vec<Cell>,
}

/// Verdict for one cell of a table: whether the statistic of side b differs from side a.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Verdict of a comparison: the statistic is lower on side b than on side a.
    Lower,
    /// Verdict of a comparison: the statistic is higher on side b than on side a.
    Higher,
    /// Verdict of a comparison: no difference was found, and the interval is not inside the margin or does not exist.
    NoDifference {
        /// Approximate number of trials on each side after which the interval would fit into the margin.
        trials_for_margin: Option<usize>,
    },
    /// Verdict of a comparison: no difference was found, and the interval lies inside the margin.
    Equal,
    /// Verdict of a comparison: there are too few trials to judge.
    NotEnough {
        /// Number of additional trials that each side of the comparison needs.
        more_trials: usize,
    },
}

/// Result for one cell of a table of comparisons: ratio, interval and verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Logarithm of the ratio of side b to side a: difference between the means over the trials; absent if a side is
    /// later than every value.
    pub log_ratio: Option<f64>,
    /// 95 % interval of the logarithm of the ratio, simultaneous with all intervals of the table.
    pub interval: Option<(f64, f64)>,
    /// Verdict for the cell: whether side b of the comparison differs from side a.
    pub verdict: Verdict,
}

impl Judged {
    /// True if the interval of the ratio lies inside the margin, whatever the verdict of the comparison is.
    pub fn within(&self, margin: f64) -> bool {
        self.interval.is_some_and(|(low, high)| low >= -margin.ln_1p() && high <= margin.ln_1p())
    }
}

/// Judges all cells of a table of comparisons with a family-wise error rate of 5 %. With a `margin` (0.05 for 5 %),
/// cells can be equal within the margin.
///
/// The error rate is divided between parts of the table, in proportion to their numbers of cells. The parts are each
/// group that is decided by relabelling, each single cell with values later than every other, and all remaining cells
/// together, which [`family::critical`] handles.
pub fn judge(groups: &[Group], margin: Option<f64>) -> Vec<Vec<Judged>> {
    let tested: usize = groups.iter().flat_map(|g| &g.cells).filter(|c| c.trials() >= EXACT_TRIALS).count();
    let level = |cells: usize| LEVEL * cells as f64 / tested.max(1) as f64;
    let welch = |c: &&Cell| c.is_finite() && c.trials() >= WELCH_TRIALS;
    let by_welch: Vec<Vec<&Cell>> =
        groups.iter().map(|g| g.cells.iter().filter(welch).collect::<Vec<_>>()).filter(|g| !g.is_empty()).collect();
    let critical = family::critical(&by_welch, level(by_welch.iter().map(Vec::len).sum()));
    groups.iter().map(|group| judge_group(group, critical, &level, margin)).collect()
}

fn judge_group(group: &Group, critical: f64, level: &dyn Fn(usize) -> f64, margin: Option<f64>) -> Vec<Judged> {
    let exact = |c: &&Cell| c.is_finite() && c.trials() == EXACT_TRIALS;
    let relabelled: Vec<&Cell> = group.cells.iter().filter(exact).collect();
    let shares = if relabelled.is_empty() { Vec::new() } else { permutation::shares(&relabelled) };
    let mut shares = shares.into_iter();
    let of_cell = |cell: &Cell| {
        let trials = cell.trials();
        if trials < EXACT_TRIALS {
            let more_trials = WELCH_TRIALS - trials;
            return Judged { log_ratio: ratio(cell), interval: None, verdict: Verdict::NotEnough { more_trials } };
        }
        if !cell.is_finite() {
            return by_ranks(cell, level(1));
        }
        let welch = Welch::of(cell.a.iter().copied(), cell.b.iter().copied());
        if trials >= WELCH_TRIALS {
            let interval = welch.interval(critical);
            let decided = welch.z().abs() > critical;
            return verdict(welch, interval, decided, trials, margin);
        }
        let level = level(relabelled.len());
        let share = shares.next().expect("there is no share for a cell with few trials");
        if least_share(cell.a.len(), cell.b.len()) > level {
            return Judged {
                log_ratio: Some(welch.difference),
                interval: None,
                verdict: Verdict::NotEnough { more_trials: WELCH_TRIALS - trials },
            };
        }
        match permutation::interval(cell, level) {
            Some(interval) => {
                let outside = interval.0 > 0.0 || interval.1 < 0.0;
                verdict(welch, interval, share <= level && outside, trials, margin)
            }
            None => Judged {
                log_ratio: Some(welch.difference),
                interval: None,
                verdict: Verdict::NotEnough { more_trials: WELCH_TRIALS - trials },
            },
        }
    };
    group.cells.iter().map(of_cell).collect()
}

fn verdict(welch: Welch, interval: (f64, f64), decided: bool, trials: usize, margin: Option<f64>) -> Judged {
    let mut judged = Judged {
        log_ratio: Some(welch.difference),
        interval: Some(interval),
        verdict: if welch.difference > 0.0 { Verdict::Higher } else { Verdict::Lower },
    };
    if decided {
        return judged;
    }
    judged.verdict = match margin {
        Some(margin) if judged.within(margin) => Verdict::Equal,
        _ => Verdict::NoDifference { trials_for_margin: margin.and_then(|m| trials_for(interval, trials, m)) },
    };
    judged
}

/// Number of trials after which the interval would fit into the margin. The function assumes that the half width falls
/// with the square root of the number of trials, and that the middle of the interval stays the same.
fn trials_for((low, high): (f64, f64), trials: usize, margin: f64) -> Option<usize> {
    let room = margin.ln_1p() - ((low + high) / 2.0).abs();
    let times = (high - low) / 2.0 / room;
    (room > 0.0 && times < 100.0).then(|| (trials as f64 * times * times).ceil() as usize)
}

fn by_ranks(cell: &Cell, level: f64) -> Judged {
    let lost = |side: &[f64]| side.iter().filter(|v| !v.is_finite()).count() as f64 / side.len() as f64;
    let (of_a, of_b) = (lost(&cell.a), lost(&cell.b));
    let decided = permutation::share_by_ranks(cell) <= level;
    let verdict = match decided {
        true if of_b >= of_a => Verdict::Higher,
        true => Verdict::Lower,
        false if least_share(cell.a.len(), cell.b.len()) > level => Verdict::NotEnough { more_trials: 1 },
        false => Verdict::NoDifference { trials_for_margin: None },
    };
    Judged { log_ratio: None, interval: None, verdict }
}

fn ratio(cell: &Cell) -> Option<f64> {
    let mean = |side: &[f64]| (!side.is_empty()).then(|| side.iter().sum::<f64>() / side.len() as f64);
    let (a, b) = (mean(&cell.a)?, mean(&cell.b)?);
    cell.is_finite().then_some(b - a)
}
