//! Tail estimates: how late the latest of a given number of messages is, for more messages than were measured. Tail
//! estimates are never bounds.
//!
//! Peaks over a threshold follow a generalised Pareto distribution if the threshold is high enough: J. Pickands,
//! Statistical Inference Using Extreme Order Statistics, Annals of Statistics 3 (1975); A. A. Balkema, L. de Haan,
//! Residual Life Time at Great Age, Annals of Probability 2 (1974). An estimate is reported only if nothing in the data
//! contradicts the model: see [`NotApplicable`].
//!
//! * `peaks`: which messages are kept, and which thresholds are tried.
//! * `clusters`: late messages that belong together.
//! * `pareto`: the distribution and its fit. * `goodness`: whether the distribution fits.
//! * `level`: the return level and its interval. * `checks`: other conditions.

mod checks;
mod clusters;
mod goodness;
mod level;
mod pareto;
mod peaks;

pub use peaks::Peaks;

use checks::BackTest;
use clusters::Clusters;
use goodness::{anderson_darling, critical};
use pareto::Pareto;
use peaks::Exceedances;
use std::fmt;

/// Largest rarity that can be estimated, as a multiple of the number of messages.
pub const FARTHEST: u64 = 100;

/// Number of clusters of late messages that an estimate uses. With fewer clusters there is no estimate. More clusters
/// would take more time and include values that do not belong to the tail.
const CLUSTERS: std::ops::RangeInclusive<usize> = 50..=1_000;

/// Share of the messages above one threshold that is also above the next threshold.
const NEXT: f64 = 0.7;

/// Number of return levels between the threshold and the requested level, evenly spaced on a logarithmic scale.
pub const ON_THE_WAY: usize = 4;

/// Return level: one message in `one_in` is later than about `level_ns`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReturnLevel {
    /// Rarity of the messages: one message in this number is later than the return level.
    pub one_in: f64,
    /// The return level: the time than which one message in `one_in` is later, in nanoseconds.
    pub level_ns: f64,
    /// Lower end of the 95 % interval of the return level, in nanoseconds.
    pub low_ns: f64,
    /// Upper end of the 95 % interval of the return level, in nanoseconds.
    pub high_ns: f64,
}

/// A tail estimate: one message in `one_in` is later than about `level_ns`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TailEstimate {
    /// Rarity of the messages: one message in this number is later than the return level.
    pub one_in: u64,
    /// The return level: the time than which one message in `one_in` is later, in nanoseconds.
    pub level_ns: f64,
    /// Lower end of the 95 % interval of the return level of the estimate, in nanoseconds.
    pub low_ns: f64,
    /// Upper end of the 95 % interval of the return level of the estimate, in nanoseconds.
    pub high_ns: f64,
    /// Threshold in nanoseconds: messages later than the threshold belong to the tail.
    pub threshold_ns: i64,
    /// Number of messages later than the threshold of the tail.
    pub exceedances: u64,
    /// Number of clusters that the messages above the threshold form.
    pub clusters: u64,
    /// The extremal index: 1 means that late messages come alone, 0.1 means that about ten come together.
    pub extremal_index: f64,
    /// Shape of the generalised Pareto distribution: above 0 the tail is heavier than exponential, below 0 it is
    /// bounded.
    pub shape: f64,
    /// Scale of the generalised Pareto distribution that is fitted to the tail, in nanoseconds.
    pub scale_ns: f64,
    /// Anderson-Darling statistic: how badly the fitted distribution matches the peaks of the clusters of late
    /// messages.
    pub anderson_darling: f64,
    /// Critical value of the Anderson-Darling statistic: if the distribution fits, the statistic exceeds this value in
    /// one of ten cases.
    pub critical: f64,
    /// Number of clusters above a level that the first half of the record predicts for the second half.
    pub expected_in_held_out: f64,
    /// Number of clusters in the second half of the record above the level that the first half predicts.
    pub found_in_held_out: u64,
    /// Return levels from the threshold up to the requested level, in this order; absent if the data give no upper end.
    pub course: [Option<ReturnLevel>; ON_THE_WAY],
}

/// Reason why no tail estimate can be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NotApplicable {
    /// Messages were lost, and lost messages are later than any time that a tail estimate could give; the caller, which
    /// counts lost messages, reports this reason.
    Unanswered {
        /// Number of messages that were lost.
        count: u64,
    },
    /// No tail estimate: the requested rarity is more than [`FARTHEST`] times the number of messages.
    TooFar {
        /// Largest rarity for which there is a tail estimate: one message in this number.
        most: u64,
    },
    /// No tail estimate: messages of the requested rarity are so common that they lie below every threshold.
    TooNear,
    /// No tail estimate: there are too few late messages, or too few clusters of late messages.
    TooFew {
        /// Number of clusters of late messages that were found.
        clusters: u64,
    },
    /// No tail estimate: the timestamps of the clock have too coarse steps for the tail.
    Steps {
        /// Step between neighbouring timestamps of the clock, in nanoseconds.
        step_ns: i64,
    },
    /// No tail estimate: there is no threshold above which the peaks follow the generalised Pareto distribution.
    NoFit,
    /// No tail estimate: the latest messages lie apart from the other late messages, because they have another cause,
    /// which occurred too rarely for an estimate.
    Apart {
        /// Number of late messages that lie apart from the other late messages.
        count: u64,
    },
    /// No tail estimate: the peaks of consecutive clusters of late messages are correlated.
    Dependent,
    /// No tail estimate: the clusters of late messages are not spread evenly over the record.
    Uneven,
    /// No tail estimate: the peaks of clusters of late messages grow or shrink in the course of the record.
    Trend,
    /// No tail estimate: the second half of the record contradicts the prediction from the first half.
    BackTest {
        /// Number of clusters expected above a level in the second half of the record.
        expected: f64,
        /// Number of clusters found above the predicted level in the second half of the record.
        found: u64,
    },
    /// No tail estimate: the tail is so heavy that the data give no upper end of the interval.
    TooHeavy,
}

impl fmt::Display for NotApplicable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered { count } => {
                write!(f, "unanswered messages ({count}) are later than any time that an estimate could give")
            }
            Self::TooFar { most } => {
                write!(
                    f,
                    "the messages are too few for this rarity: they allow at most 1 in {most}, which is {FARTHEST} \
                     times their number"
                )
            }
            Self::TooNear => {
                f.write_str("messages of this rarity are common enough to be measured: use a quantile instead")
            }
            Self::TooFew { clusters } => {
                let least = CLUSTERS.start();
                write!(f, "late messages came in {clusters} clusters, but an estimate needs at least {least}")
            }
            Self::Steps { step_ns } => {
                write!(f, "measured times have steps of {step_ns} ns, which are too coarse for the tail")
            }
            Self::NoFit => f.write_str(
                "late messages follow no generalised Pareto distribution, perhaps because they have several causes",
            ),
            Self::Apart { count } => {
                write!(
                    f,
                    "the latest {count} messages are much later than all other late messages, perhaps because they have \
                     another cause"
                )
            }
            Self::Dependent => f.write_str("late messages depend on each other, also between clusters"),
            Self::Uneven => f.write_str("late messages are not spread evenly over the record, or over its trials"),
            Self::Trend => f.write_str("the longest latencies grow or shrink in the course of the record"),
            Self::BackTest { expected, found } => write!(
                f,
                "the back-test failed: the first half of the record predicts {expected} late clusters in the second half, \
                 which has {found}"
            ),
            Self::TooHeavy => f.write_str("the tail is so heavy that the interval has no upper end"),
        }
    }
}

impl std::error::Error for NotApplicable {}

/// Computes the tail estimate: how late one message in `one_in` is.
///
/// # Errors
/// [`NotApplicable`] with the first reason found.
pub fn tail_estimate(peaks: &Peaks, one_in: u64) -> Result<TailEstimate, NotApplicable> {
    let n = peaks.count();
    if one_in > n.saturating_mul(FARTHEST) {
        return Err(NotApplicable::TooFar { most: n.saturating_mul(FARTHEST) });
    }
    let Tail { above, clusters, fit } = threshold(peaks)?;
    // The fit of the peaks decides whether the distribution holds. Its parameters come from all late messages, because
    // the parameters of the peaks alone are biased if clusters are long: L. Fawcett, D. Walshaw, Improved Estimation
    // for Temporally Clustered Extremes, Environmetrics 18 (2007).
    checks::independent(&clusters)?;
    checks::evenly_spread(&clusters, n)?;
    checks::none_apart(&clusters, fit)?;
    let BackTest { expected, found } = checks::back_test(&clusters, n)?;
    let all = Pareto::fit(&above.excesses).ok_or(NotApplicable::NoFit)?;
    // Messages of a cluster are similar, so the statistic is larger than for independent messages by the mean cluster
    // size.
    let alike = clusters.mean_size(above.values.len() as f64);
    if anderson_darling(&above.excesses, all) / alike > critical(all.shape, goodness::ONE_PERCENT) {
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
        critical: critical(fit.shape, goodness::TEN_PERCENT),
        expected_in_held_out: expected,
        found_in_held_out: found,
        course,
    })
}

/// A threshold, with the messages above the threshold and the fitted distribution.
struct Tail {
    above: Exceedances,
    clusters: Clusters,
    fit: Pareto,
}

/// Finds the lowest threshold above which the peaks follow the generalised Pareto distribution, and continue to follow
/// it above every higher threshold: the idea of B. Bader, J. Yan, X. Zhang, Automated Threshold Selection for Extreme
/// Value Analysis via Ordered Goodness-of-Fit Tests, Annals of Applied Statistics 12 (2018).
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
            Ok((a2, fit)) if a2 <= critical(fit.shape, goodness::TEN_PERCENT) => {
                found = Ok(Tail { above, clusters, fit });
            }
            Ok((a2, fit)) if a2 <= critical(fit.shape, goodness::ONE_PERCENT) => {
                found = found.or(Err(NotApplicable::NoFit));
            }
            _ => return found.or(Err(NotApplicable::NoFit)),
        }
    }
    found
}
