//! One decision: whether a change helps, from the pairs so far.

use super::looks::Looks;
use super::pairs::{ratio, z};
use super::symmetry::largest_evidence;

/// How a decision is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// A paired t test at fixed numbers of pairs.
    Looks(Looks),
    /// The symmetry e-process after each pair, with the two-sided error rate `alpha`, until `most` pairs.
    Symmetry {
        /// Error rate: probability of a verdict *better* or *worse* without an effect.
        alpha: f64,
        /// Number of pairs after which the decision ends as undecided.
        most: usize,
    },
}

/// Order within pairs of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Every second pair has the opposite order of the pair before it (ABBA), so that a drift cancels: the t test would exceed its
    /// error rate if a drift gave few pairs two values.
    Balanced,
    /// Each pair has an order of its own, as the symmetry e-process needs it.
    Independent,
}

impl Order {
    /// True if the trial with the change comes first in pair number `pair` (from 0), given the order of the previous pair and a
    /// fair random choice.
    pub fn with_first(self, pair: usize, previous: bool, random: bool) -> bool {
        match self {
            Order::Balanced if pair % 2 == 1 => !previous,
            _ => random,
        }
    }
}

impl Rule {
    /// The order within pairs that the rule needs.
    pub fn order(&self) -> Order {
        match self {
            Rule::Looks(_) => Order::Balanced,
            Rule::Symmetry { .. } => Order::Independent,
        }
    }
}

/// Sizes of effects that matter, as ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margins {
    /// The smallest gain that is worth the change: if the 95 % interval excludes this ratio, the decision stops as futile.
    pub gain: f64,
    /// The largest ratio that still counts as "no worse".
    pub worse: f64,
}

impl Default for Margins {
    /// A gain of 10 %, and no worse than 5 %.
    fn default() -> Margins {
        Margins { gain: 0.9, worse: 1.05 }
    }
}

/// Result of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The figure is smaller with the change.
    Better,
    /// The figure is larger with the change.
    Worse,
    /// No effect was found at the end, and the 95 % interval excludes a figure that is larger than the margin.
    NoWorse,
    /// The 95 % interval excludes the smallest gain that is worth the change.
    Futile,
    /// No effect was found at the end, and the interval excludes neither.
    Undecided,
}

/// What follows from the pairs so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Measure until this number of pairs is reached.
    Until(usize),
    /// The decision is over.
    Stop(Verdict),
}

/// A rule with its margins.
#[derive(Debug, Clone, PartialEq)]
pub struct Decider {
    /// How the decision is reached.
    pub rule: Rule,
    /// Sizes of effects that matter.
    pub margins: Margins,
}

impl Decider {
    /// What follows from these pairs: the natural logarithm of the ratio of each pair, in the order in which they were
    /// measured. All of them must be finite.
    pub fn step(&self, logs: &[f64]) -> Step {
        match &self.rule {
            Rule::Looks(looks) => match looks.limit(logs.len()) {
                None => looks.after(logs.len()).map_or(Step::Stop(self.at_the_end(logs)), Step::Until),
                Some(limit) => self.by_looks(looks, limit, logs),
            },
            Rule::Symmetry { alpha, most } => self.by_symmetry(*alpha, *most, logs),
        }
    }

    fn by_looks(&self, looks: &Looks, limit: f64, logs: &[f64]) -> Step {
        let deviate = z(logs);
        if deviate < -limit {
            return Step::Stop(Verdict::Better);
        }
        if deviate > looks.limit_of_worse() {
            return Step::Stop(Verdict::Worse);
        }
        if ratio(logs).is_some_and(|r| r.low > self.margins.gain) {
            return Step::Stop(Verdict::Futile);
        }
        looks.after(logs.len()).map_or(Step::Stop(self.at_the_end(logs)), Step::Until)
    }

    fn by_symmetry(&self, alpha: f64, most: usize, logs: &[f64]) -> Step {
        let wanted = 2.0 / alpha;
        if largest_evidence(logs.iter().map(|log| -log)) >= wanted {
            return Step::Stop(Verdict::Better);
        }
        if largest_evidence(logs.iter().copied()) >= wanted {
            return Step::Stop(Verdict::Worse);
        }
        // The same evidence, against a gain of exactly the margin: one side of a 95 % interval.
        let gain = self.margins.gain.ln();
        if largest_evidence(logs.iter().map(|log| log - gain)) >= 2.0 / 0.05 {
            return Step::Stop(Verdict::Futile);
        }
        if logs.len() < most { Step::Until(logs.len() + 1) } else { Step::Stop(self.at_the_end(logs)) }
    }

    /// Verdict if neither an effect nor futility was found.
    fn at_the_end(&self, logs: &[f64]) -> Verdict {
        match ratio(logs) {
            Some(r) if r.high < self.margins.worse => Verdict::NoWorse,
            _ => Verdict::Undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks() -> Decider {
        Decider { rule: Rule::Looks(Looks::new(&Looks::SHORT, 0.05)), margins: Margins::default() }
    }

    fn symmetry() -> Decider {
        Decider { rule: Rule::Symmetry { alpha: 0.05, most: 20 }, margins: Margins::default() }
    }

    /// Log ratios around a mean, alternately above and below it.
    fn pairs(n: usize, mean: f64, spread: f64) -> Vec<f64> {
        (0..n).map(|i| mean + if i % 2 == 0 { spread } else { -spread } * (1.0 + i as f64 / 100.0)).collect()
    }

    #[test]
    fn nothing_is_decided_before_the_first_look_and_between_looks() {
        assert_eq!(looks().step(&[]), Step::Until(4));
        assert_eq!(looks().step(&pairs(3, -3.0, 0.01)), Step::Until(4));
        assert_eq!(looks().step(&pairs(5, -3.0, 0.01)), Step::Until(6));
    }

    #[test]
    fn each_verdict_has_pairs_that_lead_to_it() {
        assert_eq!(looks().step(&pairs(6, -1.0, 0.1)), Step::Stop(Verdict::Better));
        assert_eq!(looks().step(&pairs(6, 1.0, 0.1)), Step::Stop(Verdict::Worse));
        // At the first look too, if the limits of the look exclude 1; otherwise futility stops first.
        assert_eq!(looks().step(&pairs(4, 1.1, 0.1)), Step::Stop(Verdict::Worse));
        assert_eq!(looks().step(&pairs(4, 0.3, 0.15)), Step::Stop(Verdict::Futile));
        assert_eq!(looks().step(&pairs(4, 0.0, 0.01)), Step::Stop(Verdict::Futile));
        assert_eq!(looks().step(&pairs(12, -0.25, 0.4)), Step::Stop(Verdict::NoWorse));
        assert_eq!(looks().step(&pairs(12, 0.0, 0.6)), Step::Stop(Verdict::Undecided));
        assert_eq!(symmetry().step(&pairs(8, -1.0, 0.1)), Step::Stop(Verdict::Better));
        assert_eq!(symmetry().step(&pairs(8, 1.0, 0.1)), Step::Stop(Verdict::Worse));
        assert_eq!(symmetry().step(&pairs(12, 0.05, 0.01)[..]), Step::Stop(Verdict::Worse));
        assert_eq!(symmetry().step(&pairs(9, 0.0, 0.02)), Step::Stop(Verdict::Futile));
        assert_eq!(symmetry().step(&pairs(20, 0.0, 0.6)), Step::Stop(Verdict::Undecided));
    }

    #[test]
    fn equal_trials_of_a_scripted_clock_are_futile() {
        assert_eq!(looks().step(&[0.0; 4]), Step::Stop(Verdict::Futile));
    }
}
