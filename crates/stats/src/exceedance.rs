//! How dependent the exceedances of a threshold are, and how many independent slots they are worth.
//!
//! Order-statistic intervals take slots as independent. Stalls hit several slots in a row. What counts is how much more
//! the number of exceedances scatters than that of independent slots: the integrated autocorrelation time of 1{x > q},
//! seen in the counts of blocks that are long enough.

use crate::blocks::Blocks;
use crate::reference::{Z_99, Z_975, chi_squared, student_975};

/// Fewer blocks do not tell a scatter.
const FEWEST_BLOCKS: u64 = 16;

/// Nor do fewer sequences.
const FEWEST_SEQUENCES: f64 = 5.0;

/// Streaming dependence of an indicator, one slot at a time in the order of the slots.
///
/// A slot without an answer exceeds every threshold. All sums are whole numbers, so the result does
/// not depend on how a long series was split; they hold 10^12 slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exceedance {
    n: u64,
    exceeded: u64,
    /// Neighbouring slots of one sequence.
    pairs: u64,
    /// Pairs whose first slot exceeded, whose second did, and where both did.
    first: u64,
    second: u64,
    both: u64,
    previous: Option<bool>,
    blocks: Blocks,
    sequences: Sequences,
}

/// Sums over sequences: of their slots, squared; of their exceedances, squared; of the products. The last one is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sequences {
    ended: u64,
    slots: u128,
    exceeded: u128,
    products: u128,
    /// Slots and exceedances before the open one.
    before: (u64, u64),
}

/// What slots that depend on each other are worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effective {
    /// How many independent slots tell as much; never more than there are.
    pub slots: u64,
    /// Blocks still depend on each other when they are as long as can be told, or sequences differ and are too few to tell
    /// how much: the slots are worth even less.
    pub unresolved: bool,
}

/// A block length on trial.
struct Scatter {
    blocks: f64,
    /// Variance of the counts over that of independent slots.
    ratio: f64,
    /// Squared distance of the lag-1 autocorrelation from that of independent blocks, in standard errors.
    dependence: f64,
}

impl Exceedance {
    /// No slot yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next slot: did it exceed the threshold?
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

    /// The next slots: which of their values are above `threshold`? The same as pushing them one by one, and several
    /// times as fast.
    pub fn push_all(&mut self, values: &[i64], threshold: i64) {
        let (Some(&head), Some(&last)) = (values.first(), values.last()) else { return };
        self.pair(head > threshold);
        let (mut second, mut both) = (0, 0);
        for (a, b) in values.iter().zip(&values[1..]) {
            second += u64::from(*b > threshold);
            both += u64::from((*a).min(*b) > threshold);
        }
        let pairs = values.len() as u64 - 1;
        self.pairs += pairs;
        self.n += pairs;
        self.exceeded += second;
        self.first += second + u64::from(head > threshold) - u64::from(last > threshold);
        self.second += second;
        self.both += both;
        self.previous = Some(last > threshold);
        self.blocks.push_all(values, threshold);
    }

    /// Ends a sequence, such as a trial: the next slot is not a neighbour of the last.
    pub fn end_sequence(&mut self) {
        self.previous = None;
        self.blocks.end_sequence();
        self.sequences = self.ended();
    }

    /// The sums with the open sequence.
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

    /// Adds other sequences; both this one and the other end.
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

    /// How many slots were pushed.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// How many of them exceeded.
    pub fn exceeded(&self) -> u64 {
        self.exceeded
    }

    /// The lag-1 autocorrelation about the overall mean, between -1 and 1 (Box, Jenkins & Reinsel, Time Series
    /// Analysis, section 2.1).
    ///
    /// `None` below three slots and when all slots are alike: the coefficient is not defined then.
    pub fn lag1(&self) -> Option<f64> {
        if self.n < 3 || self.exceeded == 0 || self.exceeded == self.n {
            return None;
        }
        // Both sums of products about the mean, times n^2: whole numbers.
        let [n, s] = [self.n, self.exceeded].map(i128::from);
        let [pairs, first, second, both] = [self.pairs, self.first, self.second, self.both].map(i128::from);
        let covariance = n * n * both - n * s * (first + second) + pairs * s * s;
        let variance = n * s * (n - s);
        Some(covariance as f64 / variance as f64)
    }

    /// How many independent slots these are worth: their number over the integrated autocorrelation time, which is the
    /// variance of block counts over that of independent slots (Flyvbjerg & Petersen 1989).
    ///
    /// The blocks are the shortest whose neighbours, and those of all longer ones, do not depend on each other: the
    /// test of M. Jonsson, Standard Error Estimation by an Automated Blocking Method, Phys. Rev. E 98 (2018), at 99 %.
    /// Few blocks tell their variance badly; the time is longer by Student's t over the normal quantile, squared, so
    /// that an interval from it is that of batch means (Law, Simulation Modeling and Analysis, section 9.5.3).
    ///
    /// Counts are taken about the mean of all sequences, so sequences that differ from each other are dependence too. Where
    /// no block is long enough and there are five sequences or more, each of them is a block.
    pub fn effective(&self) -> Effective {
        let all = Effective { slots: self.n, unresolved: false };
        let Some(lag1) = self.lag1() else { return all };
        let scatters = self.scatters();
        let mut dependence: f64 = scatters.iter().map(|s| s.dependence).sum();
        for (at, scatter) in scatters.iter().enumerate() {
            if dependence <= chi_squared((scatters.len() - at) as f64, Z_99) {
                // What is too weak to be seen at this length still adds up: the next one tells some of it.
                let time = longest_time(&scatters[..scatters.len().min(at + 2)]);
                return if at == 0 { all } else { Effective { slots: self.worth(time), ..all } };
            }
            dependence -= scatter.dependence;
        }
        // Too few slots for blocks: as if dependence faded like that of a process of order one.
        let time = match &scatters[..] {
            [_slots] => (1.0 + lag1) / (1.0 - lag1).max(1e-9),
            _ => longest_time(&scatters),
        };
        let whole = self.of_sequences();
        let slots = self.worth(whole.as_ref().map_or(time, |s| s.time().max(time)));
        // Slots that take turns are not worth less.
        Effective { slots, unresolved: whole.is_none() && slots < self.n }
    }

    /// Whole sequences as blocks, of any length: the variance of a ratio (Cochran, Sampling Techniques, section 6.3).
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

    /// Slots themselves, then blocks of them.
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

/// A cluster in what is left over at the end of a sequence is missing from long blocks, not from short ones.
fn longest_time(scatters: &[Scatter]) -> f64 {
    scatters.iter().map(Scatter::time).fold(1.0, f64::max)
}

impl Scatter {
    fn time(&self) -> f64 {
        self.ratio * (student_975(self.blocks - 1.0) / Z_975).powi(2)
    }
}
