//! Figures of a pair of trials, and the guards that a change must not break.

use serde::{Deserialize, Serialize};
use tailbound_stats::sequential::{needed_pairs, ratio};
use tailbound_stats::share_difference;

/// Number of equal pairs of the baseline.
pub(crate) const BASELINE_PAIRS: usize = 6;

/// The gain that the A/A check must be able to find, as a ratio.
pub(crate) const SMALLEST_GAIN: f64 = 0.8;

/// Largest number of pairs that the A/A check may need for this gain.
pub(crate) const MOST_PAIRS: f64 = 20.0;

/// Largest ratio of the medians that a kept change may have: the lower end of its interval must not be above it.
const MEDIAN_MOST: f64 = 1.05;

/// The A/A check: number of pairs that would find the smallest gain in four of five cases, from equal pairs.
pub(crate) fn needed_for_a_gain(equal_pairs: &[Pair], alpha: f64) -> f64 {
    let logs: Vec<f64> = equal_pairs.iter().map(Pair::log_ratio).collect();
    needed_pairs(&logs, alpha, SMALLEST_GAIN).unwrap_or(f64::INFINITY)
}

/// Figures of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The declared figure, ns. If it falls among the messages without an answer, it is the timeout, which is a lower bound.
    pub figure_ns: f64,
    /// Median of the same metric, ns.
    pub median_ns: f64,
    /// Number of scheduled messages.
    pub slots: u64,
    /// Number of messages that were lost, not sent, or answered after the timeout.
    pub missed: u64,
    /// CPU time that the threads of the ends used, ns; absent if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
}

/// Figures of a trial without a change and of a trial with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Figures of the trial without the change.
    pub without: Figures,
    /// Figures of the trial with the change.
    pub with: Figures,
}

impl Pair {
    /// Natural logarithm of the figure with the change divided by the figure without it.
    pub fn log_ratio(&self) -> f64 {
        log_ratio(self.with.figure_ns, self.without.figure_ns)
    }
}

/// A time is at least 1 ns here, so that a scripted driver without delay has a logarithm.
fn log_ratio(with_ns: f64, without_ns: f64) -> f64 {
    (with_ns.max(1.0) / without_ns.max(1.0)).ln()
}

/// Geometric mean of a figure over trials, ns.
pub(crate) fn geometric_mean(values_ns: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values_ns.map(|ns| ns.max(1.0).ln()).collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

/// A figure that a change made worse, although it made the declared figure better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// The median is larger with the change.
    Median,
    /// More messages are lost, not sent, or answered after the timeout with the change.
    Missed,
    /// The ends use more CPU time per message than the user permits, or their CPU time was not read.
    CpuTime,
}

/// The first guard that a change breaks: the 95 % interval of the ratio of the medians lies above 1.05, or the interval of the
/// difference of the shares of missed messages lies above 0, or the interval of the ratio of the CPU times lies above `cpu_most`.
pub fn guard(pairs: &[Pair], cpu_most: Option<f64>) -> Option<Guard> {
    let medians: Vec<f64> = pairs.iter().map(|p| log_ratio(p.with.median_ns, p.without.median_ns)).collect();
    if ratio(&medians).is_some_and(|r| r.low > MEDIAN_MOST) {
        return Some(Guard::Median);
    }
    let sum = |of: fn(&Pair) -> Figures| {
        pairs.iter().map(of).fold((0, 0), |(missed, slots), f| (missed + f.missed, slots + f.slots))
    };
    if share_difference(sum(|p| p.without), sum(|p| p.with)).0 > 0.0 {
        return Some(Guard::Missed);
    }
    let uses_more = |most: f64| cpu_time(pairs).is_none_or(|[_, low, _]| low > most);
    cpu_most.is_some_and(uses_more).then_some(Guard::CpuTime)
}

/// CPU time of the ends per scheduled message with the change divided by the one without it: value and ends of the 95 % interval;
/// `None` if it was not read in each trial.
pub(crate) fn cpu_time(pairs: &[Pair]) -> Option<[f64; 3]> {
    let each = |of: &Figures| Some(of.cpu_ns? as f64 / of.slots.max(1) as f64);
    let log = |pair: &Pair| Some(log_ratio(each(&pair.with)?, each(&pair.without)?));
    let logs: Vec<f64> = pairs.iter().map(log).collect::<Option<_>>()?;
    ratio(&logs).map(|found| [found.ratio, found.low, found.high])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(medians_ns: (f64, f64), missed: (u64, u64)) -> Pair {
        let figures =
            |median_ns, missed| Figures { figure_ns: 1e6, median_ns, slots: 1000, missed, cpu_ns: Some(missed + 1000) };
        Pair { without: figures(medians_ns.0, missed.0), with: figures(medians_ns.1, missed.1) }
    }

    #[test]
    fn guards_find_a_larger_median_and_more_missed_messages() {
        let few = |medians, missed| (0..6).map(|_| pair(medians, missed)).collect::<Vec<_>>();
        assert_eq!(guard(&few((100.0, 103.0), (0, 0)), None), None);
        assert_eq!(guard(&few((100.0, 120.0), (0, 0)), None), Some(Guard::Median));
        assert_eq!(guard(&few((100.0, 90.0), (0, 20)), None), Some(Guard::Missed));
        assert_eq!(guard(&few((100.0, 90.0), (20, 0)), None), None);
    }

    #[test]
    fn the_cpu_time_is_a_guard_only_if_it_is_declared() {
        let mut pairs: Vec<Pair> = (0..4).map(|_| pair((1.0, 1.0), (1000, 0))).collect();
        for (most, broken) in [(None, None), (Some(1.5), None), (Some(1.2), None)] {
            assert_eq!(guard(&pairs, most), broken);
        }
        pairs.iter_mut().for_each(|pair| pair.with.cpu_ns = Some(2_600));
        for (most, broken) in [(None, None), (Some(1.5), None), (Some(1.2), Some(Guard::CpuTime))] {
            assert_eq!(guard(&pairs, most), broken);
        }
        pairs[0].without.cpu_ns = None;
        assert_eq!(guard(&pairs, Some(1.5)), Some(Guard::CpuTime));
    }

    #[test]
    fn the_cpu_time_is_a_ratio_unless_a_trial_lacks_it() {
        let mut pairs: Vec<Pair> = (0..4).map(|_| pair((1.0, 1.0), (0, 1000))).collect();
        assert!(cpu_time(&pairs).unwrap().iter().all(|ratio| (ratio - 2.0).abs() < 1e-9));
        // Twice the CPU time for twice the messages is no change.
        pairs.iter_mut().for_each(|pair| pair.with.slots *= 2);
        assert!(cpu_time(&pairs).unwrap().iter().all(|ratio| (ratio - 1.0).abs() < 1e-9));
        pairs[1].with.cpu_ns = None;
        assert_eq!(cpu_time(&pairs), None);
    }
}
