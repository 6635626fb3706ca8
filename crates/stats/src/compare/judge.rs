//! Verdicts over a whole table.

use super::permutation;
use super::welch::Welch;
use super::{family, permutation::least_share};

/// Trials a side from which Welch's interval is used.
pub const WELCH_TRIALS: usize = 5;
/// Trials a side from which all relabellings are enough to decide something.
pub const EXACT_TRIALS: usize = 4;
/// A table without a difference has a false verdict this often.
const LEVEL: f64 = 0.05;

/// One statistic in every trial of both sides: natural logarithms, infinite where it is later than everything.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Side a.
    pub a: Vec<f64>,
    /// Side b.
    pub b: Vec<f64>,
}

impl Cell {
    fn trials(&self) -> usize {
        self.a.len().min(self.b.len())
    }

    fn is_finite(&self) -> bool {
        self.a.iter().chain(&self.b).all(|v| v.is_finite())
    }
}

/// Statistics of the same trials, which stand in the same order in each cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Group {
    /// The statistics.
    pub cells: Vec<Cell>,
}

/// What is decided about a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Side b is lower.
    Lower,
    /// Side b is higher.
    Higher,
    /// Neither, and the interval reaches beyond the margin, or there is none.
    NoDifference {
        /// About how many trials a side the interval would take to fit into the margin.
        trials_for_margin: Option<usize>,
    },
    /// Neither, and the interval lies within the margin.
    Equal,
    /// Too few trials.
    NotEnough {
        /// How many more a side would have to have.
        more_trials: usize,
    },
}

/// A cell, judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Logarithm of the ratio b to a: difference of the means over trials; absent where a side is later than everything.
    pub log_ratio: Option<f64>,
    /// Its interval, which is one of all intervals of the table.
    pub interval: Option<(f64, f64)>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Judged {
    /// The interval lies inside the margin, whatever the verdict.
    pub fn within(&self, margin: f64) -> bool {
        self.interval.is_some_and(|(low, high)| low >= -margin.ln_1p() && high <= margin.ln_1p())
    }
}

/// Judges all cells at a family-wise level of 5 %. With a `margin` (0.05 for 5 %) a cell can be equal within it.
///
/// The level is shared out by the number of cells: what is decided by relabelling, group by group; cells with values that
/// are later than everything, one by one; all others together by [`family::critical`].
pub fn judge(groups: &[Group], margin: Option<f64>) -> Vec<Vec<Judged>> {
    let told: usize = groups.iter().flat_map(|g| &g.cells).filter(|c| c.trials() >= EXACT_TRIALS).count();
    let level = |cells: usize| LEVEL * cells as f64 / told.max(1) as f64;
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
        let share = shares.next().expect("one for each cell with so few trials");
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

/// The half width falls with the square root of the trials; the estimate itself may stay where it is.
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
