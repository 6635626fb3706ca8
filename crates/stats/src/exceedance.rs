//! How dependent the exceedances of a threshold are: the lag-1 autocorrelation of 1{x > q}.
//!
//! Order-statistic intervals take slots as independent. Stalls hit several slots in a row, which
//! shows in this coefficient; the estimator is the usual r_1 = c_1 / c_0 about the overall mean
//! (Box, Jenkins & Reinsel, Time Series Analysis, section 2.1).

/// Above this lag-1 autocorrelation an interval is marked "too narrow".
pub const TOO_NARROW: f64 = 0.1;

/// Streaming lag-1 autocorrelation of an indicator, one slot at a time in the order of the slots.
///
/// A slot without an answer exceeds every threshold. All sums are whole numbers, so the result does
/// not depend on how a long series was split; they hold 10^12 slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
}

impl Exceedance {
    /// No slot yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next slot: did it exceed the threshold?
    #[inline]
    pub fn push(&mut self, exceeds: bool) {
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
        self.push(head > threshold);
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
    }

    /// Ends a sequence, such as a trial: the next slot is not a neighbour of the last.
    pub fn end_sequence(&mut self) {
        self.previous = None;
    }

    /// Adds other sequences; both this one and the other end.
    pub fn merge(&mut self, other: &Exceedance) {
        *self = Exceedance {
            n: self.n + other.n,
            exceeded: self.exceeded + other.exceeded,
            pairs: self.pairs + other.pairs,
            first: self.first + other.first,
            second: self.second + other.second,
            both: self.both + other.both,
            previous: None,
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

    /// The lag-1 autocorrelation about the overall mean, between -1 and 1.
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

    /// Whether an interval about this threshold is to be marked "too narrow": the coefficient is
    /// above [`TOO_NARROW`].
    pub fn is_too_narrow(&self) -> bool {
        self.lag1().is_some_and(|r| r > TOO_NARROW)
    }
}
