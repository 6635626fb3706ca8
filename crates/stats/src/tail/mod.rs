//! Tail estimates: how late one message in so many is, beyond what was measured. An estimate, never a bound.
//!
//! Peaks over a threshold follow a generalised Pareto distribution when the threshold is high enough: J. Pickands,
//! Statistical Inference Using Extreme Order Statistics, Annals of Statistics 3 (1975); A. A. Balkema, L. de Haan,
//! Residual Life Time at Great Age, Annals of Probability 2 (1974). What follows from it is told only when nothing in
//! the data speaks against it: see [`NotApplicable`].
//!
//! * `peaks`: what is kept of the messages, and which thresholds are tried.
//! * `clusters`: late messages that belong together.
//! * `pareto`: the distribution and its fit. * `fit_test`: whether it fits.
//! * `level`: the return level and its interval. * `checks`: what must hold besides.

mod checks;
mod clusters;
mod fit_test;
mod level;
mod pareto;
mod peaks;

pub use peaks::Peaks;

use checks::BackTest;
use clusters::Clusters;
use fit_test::{anderson_darling, critical};
use pareto::Pareto;
use peaks::Exceedances;
use std::fmt;

/// At most so many times as many messages as there are.
pub const FARTHEST: u64 = 100;

/// Fewer clusters of late messages tell no tail; more than the most add work, and values that are not of the tail.
const CLUSTERS: std::ops::RangeInclusive<usize> = 50..=1_000;

/// The next threshold leaves this share of the messages above the one before.
const NEXT: f64 = 0.7;

/// Return levels on the way from the threshold to the one that is asked for, evenly on a scale of logarithms.
pub const ON_THE_WAY: usize = 4;

/// One message in `one_in` is later than about `level_ns`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReturnLevel {
    /// How rare.
    pub one_in: f64,
    /// The level in nanoseconds.
    pub level_ns: f64,
    /// Lower end of its 95 % interval.
    pub low_ns: f64,
    /// The upper end.
    pub high_ns: f64,
}

/// A tail estimate: one message in `one_in` is later than about `level_ns`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TailEstimate {
    /// How rare.
    pub one_in: u64,
    /// The return level in nanoseconds.
    pub level_ns: f64,
    /// Both ends of its 95 % interval.
    pub low_ns: f64,
    /// The upper end.
    pub high_ns: f64,
    /// Messages later than this are the tail.
    pub threshold_ns: i64,
    /// How many they are.
    pub exceedances: u64,
    /// In how many clusters they come.
    pub clusters: u64,
    /// The extremal index: 1 = late messages come one by one, 0.1 = about ten at a time.
    pub extremal_index: f64,
    /// Shape of the generalised Pareto distribution: above 0 heavier than exponential, below 0 bounded.
    pub shape: f64,
    /// Its scale, in nanoseconds.
    pub scale_ns: f64,
    /// Anderson-Darling statistic of the peaks of the clusters.
    pub anderson_darling: f64,
    /// What it exceeds in one of ten cases although the distribution fits.
    pub critical: f64,
    /// Clusters beyond a level that the first half expects in the second.
    pub expected_in_held_out: f64,
    /// Clusters that the second half has there.
    pub found_in_held_out: u64,
    /// The course of the tail up to the level, which is the last; absent where data tell no upper end.
    pub course: [Option<ReturnLevel>; ON_THE_WAY],
}

/// Why there is no tail estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NotApplicable {
    /// Messages that never came back are later than everything that a tail could tell: said by who counts them.
    Unanswered {
        /// How many.
        count: u64,
    },
    /// Beyond [`FARTHEST`] times the messages.
    TooFar {
        /// The rarest that can be told.
        most: u64,
    },
    /// So common that it lies below any threshold.
    TooNear,
    /// Too few late messages, or too few clusters of them.
    TooFew {
        /// How many there are.
        clusters: u64,
    },
    /// The clock steps too coarsely for the tail.
    Steps {
        /// The step in nanoseconds.
        step_ns: i64,
    },
    /// No threshold from which on the peaks follow the distribution.
    NoFit,
    /// The latest messages lie apart from the others: another cause, of which too little was seen.
    Apart {
        /// How many lie apart.
        count: u64,
    },
    /// A late peak tells something of the next one.
    Dependent,
    /// Clusters are not spread evenly over the record.
    Uneven,
    /// Peaks grow or shrink in the course of the record.
    Trend,
    /// What the first half tells is not what the second half has.
    BackTest {
        /// Clusters expected beyond a level.
        expected: f64,
        /// Clusters found there.
        found: u64,
    },
    /// So heavy a tail that data tell no upper end.
    TooHeavy,
}

impl fmt::Display for NotApplicable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered { count } => {
                write!(f, "unanswered messages ({count}) are later than any time")
            }
            Self::TooFar { most } => {
                write!(f, "these messages tell at most 1 in {most}, {FARTHEST} times their number")
            }
            Self::TooNear => f.write_str("it is common enough to be measured: ask for the quantile"),
            Self::TooFew { clusters } => {
                write!(f, "late messages came in {clusters} clusters; it takes {}", CLUSTERS.start())
            }
            Self::Steps { step_ns } => write!(f, "times come in steps of {step_ns} ns, too coarse for the tail"),
            Self::NoFit => {
                f.write_str("late messages follow no generalised Pareto distribution, as those of mixed causes")
            }
            Self::Apart { count } => {
                write!(f, "the latest {count} messages lie apart from the others, as those of another cause")
            }
            Self::Dependent => f.write_str("one late message tells something of the next, also of other clusters"),
            Self::Uneven => f.write_str("late messages are not spread evenly over the record, or over its trials"),
            Self::Trend => f.write_str("the latest messages grow or shrink in the course of the record"),
            Self::BackTest { expected, found } => write!(
                f,
                "the back-test failed: the first half expects {expected} late clusters in the second, which has {found}"
            ),
            Self::TooHeavy => f.write_str("the tail is so heavy that these messages tell no upper end"),
        }
    }
}

impl std::error::Error for NotApplicable {}

/// How late one message in `one_in` is.
///
/// # Errors
/// [`NotApplicable`] with the first reason found.
pub fn tail_estimate(peaks: &Peaks, one_in: u64) -> Result<TailEstimate, NotApplicable> {
    let n = peaks.count();
    if one_in > n.saturating_mul(FARTHEST) {
        return Err(NotApplicable::TooFar { most: n.saturating_mul(FARTHEST) });
    }
    let Tail { above, clusters, fit } = threshold(peaks)?;
    // The fit of the peaks tells whether the distribution holds; its parameters come from all late messages, because
    // those of the peaks alone are biased where clusters are long: L. Fawcett, D. Walshaw, Improved Estimation for
    // Temporally Clustered Extremes, Environmetrics 18 (2007).
    checks::independent(&clusters)?;
    checks::evenly_spread(&clusters, n)?;
    checks::none_apart(&clusters, fit)?;
    let BackTest { expected, found } = checks::back_test(&clusters, n)?;
    let all = Pareto::fit(&above.excesses).ok_or(NotApplicable::NoFit)?;
    // Messages of a cluster are alike, and the statistic is so many times that of independent ones.
    let alike = clusters.mean_size(above.values.len() as f64);
    if anderson_darling(&above.excesses, all) / alike > critical(all.shape, fit_test::ONE_PERCENT) {
        return Err(NotApplicable::NoFit);
    }
    let rarity = one_in as f64 * above.values.len() as f64 / n as f64;
    if rarity <= 1.0 {
        return Err(NotApplicable::TooNear);
    }
    let threshold = above.threshold_ns as f64;
    let course = std::array::from_fn(|i| {
        let rarity = rarity.powf((i + 1) as f64 / ON_THE_WAY as f64);
        level::return_level(&above, &clusters, all, rarity).map(|l| ReturnLevel {
            one_in: rarity * n as f64 / above.values.len() as f64,
            level_ns: threshold + l.level,
            low_ns: threshold + l.low,
            high_ns: threshold + l.high,
        })
    });
    let level = course[ON_THE_WAY - 1].ok_or(NotApplicable::TooHeavy)?;
    Ok(TailEstimate {
        one_in,
        level_ns: level.level_ns,
        low_ns: level.low_ns,
        high_ns: level.high_ns,
        threshold_ns: above.threshold_ns,
        exceedances: above.values.len() as u64,
        clusters: clusters.len() as u64,
        extremal_index: clusters.extremal_index,
        shape: all.shape,
        scale_ns: all.scale,
        anderson_darling: anderson_darling(&clusters.peaks(), fit),
        critical: critical(fit.shape, fit_test::TEN_PERCENT),
        expected_in_held_out: expected,
        found_in_held_out: found,
        course,
    })
}

/// A threshold with what lies above it.
struct Tail {
    above: Exceedances,
    clusters: Clusters,
    fit: Pareto,
}

/// The lowest threshold above which peaks follow the distribution, and go on doing so above every higher one: the idea
/// of B. Bader, J. Yan, X. Zhang, Automated Threshold Selection for Extreme Value Analysis via Ordered Goodness-of-Fit
/// Tests, Annals of Applied Statistics 12 (2018).
fn threshold(peaks: &Peaks) -> Result<Tail, NotApplicable> {
    let mut found = Err(NotApplicable::TooFew { clusters: 0 });
    let mut most = 0;
    let thresholds = peaks.thresholds(NEXT);
    for threshold in thresholds.into_iter().rev() {
        let above = peaks.above(threshold);
        let clusters = Clusters::of(&above);
        if clusters.len() < *CLUSTERS.start() {
            most = most.max(clusters.len() as u64);
            if found.is_err() {
                found = Err(NotApplicable::TooFew { clusters: most });
            }
            continue;
        }
        if clusters.len() > *CLUSTERS.end() {
            break;
        }
        if let Err(reason) = checks::fine_steps(&above) {
            return found.or(Err(reason));
        }
        let excesses = clusters.peaks();
        let fit = Pareto::fit(&excesses).ok_or(NotApplicable::NoFit);
        let statistic = fit.map(|fit| (anderson_darling(&excesses, fit), fit));
        match statistic {
            Ok((a2, fit)) if a2 <= critical(fit.shape, fit_test::TEN_PERCENT) => {
                found = Ok(Tail { above, clusters, fit });
            }
            Ok((a2, fit)) if a2 <= critical(fit.shape, fit_test::ONE_PERCENT) => {
                found = found.or(Err(NotApplicable::NoFit));
            }
            _ => return found.or(Err(NotApplicable::NoFit)),
        }
    }
    found
}
