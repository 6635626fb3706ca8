//! Dependence between the exceedances of a threshold, and the equivalent number of independent slots.
//!
//! Intervals from order statistics assume independent slots, but a stall hits several slots in a row. The number of
//! exceedances then varies more than for independent slots. The factor is the integrated autocorrelation time of 1{x >
//! q}, which is estimated from counts in sufficiently long blocks.

use crate::blocks::Blocks;
use crate::reference::{Z_99, Z_975, chi_squared, student_975};

/// Minimum number of blocks of slots for an estimate of the variance.
const FEWEST_BLOCKS: u64 = 16;

/// Minimum number of sequences of consecutive slots (trials) for an estimate of the variance.
const FEWEST_SEQUENCES: f64 = 5.0;

/// Sums from which the dependence of an indicator follows, updated one slot at a time in the order of the slots.
///
/// A slot without an answer exceeds every threshold. All sums are whole numbers, so the result does not depend on how a
/// long series was split; the sums are large enough for 10^12 slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exceedance {
    n: u64,
    exceeded: u64,
    /// Number of pairs of neighbouring slots that belong to the same sequence of slots (trial).
    pairs: u64,
    /// Numbers of pairs of neighbouring slots in which the first slot, the second slot, and both slots exceeded the
    /// threshold.
    first: u64,
    second: u64,
    both: u64,
    previous: Option<bool>,
    blocks: Blocks,
    sequences: Sequences,
}

/// Sums over the completed sequences (such as trials): of the squared number of slots of each sequence, of the squared
/// number of slots above the threshold, and of the product of both numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sequences {
    ended: u64,
    slots: u128,
    exceeded: u128,
    products: u128,
    /// Number of slots, and number of slots above the threshold, in the sequences before the sequence that is not
    /// complete yet.
    before: (u64, u64),
}

/// The amount of information in slots that depend on each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effective {
    /// Equivalent number of independent slots; never more than there are slots.
    pub slots: u64,
    /// True if even the longest usable blocks of slots depend on each other, or if the trials differ and are too few to
    /// estimate the difference: the true equivalent number is then smaller than `slots`.
    pub unresolved: bool,
}

/// Statistics of the numbers of exceedances in blocks of one length.
struct Scatter {
    blocks: f64,
    /// Variance of the numbers of exceedances divided by the variance for independent slots.
    ratio: f64,
    /// Squared distance of the lag-1 autocorrelation from its value for independent blocks, in standard errors.
    dependence: f64,
}

impl Exceedance {
    /// Creates empty sums, to which no slot was added yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next slot to the sums; `exceeds` says whether the slot exceeded the threshold.
    #[inline]
    pub fn push(&mut self, exceeds: bool) {
        self.pair(exceeds);
        self.blocks.push(exceeds);
    }

    #[inline]
    fn pair(&mut self, exceeds: bool) {
        if let Some(previous) = self.previous {
            self.pairs += 1;
            self.first += u64::from(previous);
            self.second += u64::from(exceeds);
            self.both += u64::from(previous && exceeds);
        }
        self.n += 1;
        self.exceeded += u64::from(exceeds);
        self.previous = Some(exceeds);
    }

    /// Adds the next slots to the sums; a slot exceeds the threshold if its value is above `threshold`. The result is
    /// the same as adding the slots one by one, but this function is several times as fast.
    pub fn push_all(&mut self, values: &[i64], threshold: i64) {
        let (Some(&head), Some(&last)) = (values.first(), values.last()) else { return };
        self.pair(head > threshold);
        let (exceeded, both) = self.blocks.push_all(values, threshold);
        let second = exceeded - u64::from(head > threshold);
        let pairs = values.len() as u64 - 1;
        self.pairs += pairs;
        self.n += pairs;
        self.exceeded += second;
        self.first += second + u64::from(head > threshold) - u64::from(last > threshold);
        self.second += second;
        self.both += both;
        self.previous = Some(last > threshold);
    }

    /// Ends a sequence of slots, such as a trial: the next slot is not a neighbour of the last slot.
    pub fn end_sequence(&mut self) {
        self.previous = None;
        self.blocks.end_sequence();
        self.sequences = self.ended();
    }

    /// Returns the sums over all sequences of consecutive slots (one for each trial), including the sequence whose end
    /// has not been offered yet.
    fn ended(&self) -> Sequences {
        let Sequences { ended, slots, exceeded, products, before } = self.sequences;
        let [n, s] = [self.n - before.0, self.exceeded - before.1].map(u128::from);
        Sequences {
            ended: ended + u64::from(n > 0),
            slots: slots + n * n,
            exceeded: exceeded + s * s,
            products: products + n * s,
            before: (self.n, self.exceeded),
        }
    }

    /// Adds the sums of other sequences of slots (trials). A sequence that is not complete yet in one of the two
    /// objects is ended.
    pub fn merge(&mut self, other: &Exceedance) {
        let (mine, theirs) = (self.ended(), other.ended());
        self.n += other.n;
        self.exceeded += other.exceeded;
        self.pairs += other.pairs;
        self.first += other.first;
        self.second += other.second;
        self.both += other.both;
        self.previous = None;
        self.blocks.merge(&other.blocks);
        self.sequences = Sequences {
            ended: mine.ended + theirs.ended,
            slots: mine.slots + theirs.slots,
            exceeded: mine.exceeded + theirs.exceeded,
            products: mine.products + theirs.products,
            before: (self.n, self.exceeded),
        };
    }

    /// Number of slots that were added.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// Number of added slots that exceeded the threshold.
    pub fn exceeded(&self) -> u64 {
        self.exceeded
    }

    /// The lag-1 autocorrelation about the overall mean, between -1 and 1 (Box, Jenkins & Reinsel, Time Series
    /// Analysis, section 2.1).
    ///
    /// `None` for fewer than three slots and if all slots are equal, because the coefficient is then not defined.
    pub fn lag1(&self) -> Option<f64> {
        if self.n < 3 || self.exceeded == 0 || self.exceeded == self.n {
            return None;
        }
        // Both sums of products about the mean, times n^2, which are whole numbers.
        let [n, s] = [self.n, self.exceeded].map(i128::from);
        let [pairs, first, second, both] = [self.pairs, self.first, self.second, self.both].map(i128::from);
        let covariance = n * n * both - n * s * (first + second) + pairs * s * s;
        let variance = n * s * (n - s);
        Some(covariance as f64 / variance as f64)
    }

    /// The equivalent number of independent slots: the number of slots divided by the integrated autocorrelation time,
    /// which is the variance of block counts divided by the variance for independent slots (Flyvbjerg & Petersen 1989).
    ///
    /// The blocks are the shortest blocks that do not depend on their neighbours, and for which this is also true of
    /// all longer blocks: the test of M. Jonsson, Standard Error Estimation by an Automated Blocking Method, Phys. Rev.
    /// E 98 (2018), at 99 %. A variance from few blocks is uncertain. So the time is multiplied by the square of
    /// Student's t divided by the normal quantile, and an interval from it equals the interval of batch means (Law,
    /// Simulation Modeling and Analysis, section 9.5.3).
    ///
    /// Counts are taken about the mean of all sequences, so differences between sequences count as dependence too. If
    /// no block is long enough and there are at least five sequences, each sequence is a block.
    pub fn effective(&self) -> Effective {
        let all = Effective { slots: self.n, unresolved: false };
        let Some(lag1) = self.lag1() else { return all };
        let scatters = self.scatters();
        let mut dependence: f64 = scatters.iter().map(|s| s.dependence).sum();
        for (at, scatter) in scatters.iter().enumerate() {
            if dependence <= chi_squared((scatters.len() - at) as f64, Z_99) {
                // Dependence that is too weak to be detected at this length still adds up; the next level shows part of
                // it.
                let time = longest_time(&scatters[..scatters.len().min(at + 2)]);
                return if at == 0 { all } else { Effective { slots: self.worth(time), ..all } };
            }
            dependence -= scatter.dependence;
        }
        // There are too few slots for blocks, so the dependence is assumed to fade as in a first-order process.
        let time = match &scatters[..] {
            [_slots] => (1.0 + lag1) / (1.0 - lag1).max(1e-9),
            _ => longest_time(&scatters),
        };
        let whole = self.of_sequences();
        let slots = self.worth(whole.as_ref().map_or(time, |s| s.time().max(time)));
        // Slots whose exceedances alternate do not contain less information.
        Effective { slots, unresolved: whole.is_none() && slots < self.n }
    }

    /// Statistics with whole sequences of any length as blocks: the variance of a ratio (Cochran, Sampling Techniques,
    /// section 6.3).
    fn of_sequences(&self) -> Option<Scatter> {
        let Sequences { ended, slots, exceeded, products, .. } = self.ended();
        let (blocks, n) = (ended as f64, self.n as f64);
        let share = self.exceeded as f64 / n;
        let squares = exceeded as f64 - 2.0 * share * products as f64 + share * share * slots as f64;
        let ratio = squares / (n * share * (1.0 - share)) * blocks / (blocks - 1.0);
        (blocks >= FEWEST_SEQUENCES).then_some(Scatter { blocks, ratio, dependence: 0.0 })
    }

    fn worth(&self, time: f64) -> u64 {
        ((self.n as f64 / time.max(1.0)) as u64).max(1)
    }

    /// Returns the statistics for single slots, then for blocks of slots of rising length.
    fn scatters(&self) -> Vec<Scatter> {
        let share = self.exceeded as f64 / self.n as f64;
        let variance = share * (1.0 - share);
        let of = |length: f64, blocks: u64, squares: f64, pairs: u64, products: f64| {
            let [blocks, pairs] = [blocks, pairs].map(|n| n as f64);
            let lag1 = products / squares * blocks / pairs;
            let dependence = if pairs > 0.0 && squares > 0.0 { pairs * (lag1 + 1.0 / blocks).powi(2) } else { 0.0 };
            Scatter { blocks, ratio: squares / (blocks * length * variance), dependence }
        };
        let slots = self.n as f64 * variance;
        let products = self.lag1().unwrap_or(0.0) * slots;
        let mut all = vec![of(1.0, self.n, slots, self.pairs, products)];
        for (length, level) in self.blocks.levels().filter(|(_, l)| l.blocks >= FEWEST_BLOCKS) {
            let mean = length * share;
            let about = |sum: f64, cross: f64, n: f64| sum - mean * cross + n * mean * mean;
            let squares = about(level.squares as f64, 2.0 * level.sum as f64, level.blocks as f64);
            let cross = (level.first + level.second) as f64;
            let products = about(level.products as f64, cross, level.pairs as f64);
            all.push(of(length, level.blocks, squares.max(0.0), level.pairs, products));
        }
        all
    }
}

/// The longest integrated autocorrelation time that any length of blocks gives. Exceedances in the incomplete block at
/// the end of a sequence are missing from the counts of long blocks, but not from the counts of short blocks.
fn longest_time(scatters: &[Scatter]) -> f64 {
    scatters.iter().map(Scatter::time).fold(1.0, f64::max)
}

impl Scatter {
    fn time(&self) -> f64 {
        self.ratio * (student_975(self.blocks - 1.0) / Z_975).powi(2)
    }
}
