//! Counts, in one pass, how many slots exceed a threshold in blocks of 16 slots, 32, 64 and so on.
//!
//! If neighbouring blocks do not depend on each other, the variance of their counts includes all the dependence between
//! slots: the blocking method of H. Flyvbjerg, H. G. Petersen, Error Estimates on Averages of Correlated Data, J. Chem.
//! Phys. 91 (1989).

/// Number of slots in the shortest block for which slots above a threshold are counted.
pub(crate) const SHORTEST: usize = 16;

/// Sums over the counts in all blocks of one length. All sums are whole numbers, so they do not depend on how a series
/// of slots was split.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub blocks: u64,
    pub sum: u64,
    pub squares: u128,
    /// Pairs of neighbouring blocks within one sequence of slots (such as a trial): number of pairs, then the sum of
    /// the counts of the first blocks and the sum of the counts of the second blocks, then the sum of the products of
    /// both counts.
    pub pairs: u64,
    pub first: u64,
    pub second: u64,
    pub products: u128,
    previous: Option<u64>,
    /// Count of a completed block that is the first half of a block twice as long.
    half: Option<u64>,
}

/// All levels of blocks, from [`SHORTEST`] slots on; each level has blocks of twice the length of the previous level.
/// Memory grows with the logarithm of the number of slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    levels: Vec<Level>,
    /// For the block that is not complete yet: number of its slots, and number of these slots that exceeded the
    /// threshold.
    filled: usize,
    exceeded: u64,
}

impl Blocks {
    #[inline]
    pub fn push(&mut self, exceeds: bool) {
        self.exceeded += u64::from(exceeds);
        self.filled += 1;
        if self.filled == SHORTEST {
            let count = std::mem::take(&mut self.exceeded);
            self.filled = 0;
            self.block_of(0, count);
        }
    }

    /// Adds slots. Returns the number of values above the threshold, and the number of neighbours of which both are above.
    pub fn push_all(&mut self, values: &[i64], threshold: i64) -> (u64, u64) {
        if threshold < 0 {
            return self.add(values, |v| u64::from(v > threshold));
        }
        // The sign of the difference, which a CPU computes for several values at once; a comparison of 64-bit numbers it does
        // not. It overflows only for values that are 292 years below zero.
        self.add(values, |v| threshold.wrapping_sub(v) as u64 >> 63)
    }

    /// As [`Blocks::push_all`]; `above` returns 1 for a value above the threshold and 0 for another one.
    #[inline(always)]
    fn add(&mut self, values: &[i64], above: impl Fn(i64) -> u64) -> (u64, u64) {
        let (mut exceeded, mut both) = (0, 0);
        let mut count = |from: usize, to: usize| {
            let sum = values[from..to].iter().map(|v| above(*v)).sum();
            // Few parts have a value above a high quantile, so that most parts are read once.
            if sum > 0 {
                let with_previous = &values[from.saturating_sub(1)..to];
                let neighbours = with_previous.iter().zip(&with_previous[1..]);
                both += neighbours.map(|(a, b)| above(*a) & above(*b)).sum::<u64>();
                exceeded += sum;
            }
            sum
        };
        let head = ((SHORTEST - self.filled) % SHORTEST).min(values.len());
        let tail = values.len() - (values.len() - head) % SHORTEST;
        count(0, head);
        values[..head].iter().for_each(|v| self.push(above(*v) > 0));
        let mut empty = 0;
        for from in (head..tail).step_by(SHORTEST) {
            let sum = count(from, from + SHORTEST);
            if sum == 0 {
                empty += 1;
            } else {
                self.empty_blocks(std::mem::take(&mut empty));
                self.block_of(0, sum);
            }
        }
        self.empty_blocks(empty);
        count(tail, values.len());
        values[tail..].iter().for_each(|v| self.push(above(*v) > 0));
        (exceeded, both)
    }

    pub fn end_sequence(&mut self) {
        (self.filled, self.exceeded) = (0, 0);
        for level in &mut self.levels {
            (level.previous, level.half) = (None, None);
        }
    }

    pub fn merge(&mut self, other: &Blocks) {
        self.end_sequence();
        if self.levels.len() < other.levels.len() {
            self.levels.resize(other.levels.len(), Level::default());
        }
        for (mine, theirs) in self.levels.iter_mut().zip(&other.levels) {
            mine.blocks += theirs.blocks;
            mine.sum += theirs.sum;
            mine.squares += theirs.squares;
            mine.pairs += theirs.pairs;
            mine.first += theirs.first;
            mine.second += theirs.second;
            mine.products += theirs.products;
        }
    }

    /// Returns each level of blocks, with the number of slots in one block of the level.
    pub fn levels(&self) -> impl Iterator<Item = (f64, &Level)> {
        self.levels.iter().enumerate().map(|(k, level)| ((SHORTEST as f64) * (k as f64).exp2(), level))
    }

    /// Adds complete blocks of the shortest level in which no slot exceeds the threshold. The time that this takes grows with
    /// the logarithm of their number.
    fn empty_blocks(&mut self, mut number: u64) {
        let mut k = 0;
        while number > 0 {
            if k == self.levels.len() {
                self.levels.push(Level::default());
            }
            let (completed, empty) = self.levels[k].add_empty(number);
            if let Some(count) = completed {
                self.block_of(k + 1, count);
            }
            number = empty;
            k += 1;
        }
    }

    /// Adds a complete block of level `from`; two blocks of a level form one block of the next level.
    #[inline]
    fn block_of(&mut self, from: usize, mut count: u64) {
        for k in from.. {
            if k == self.levels.len() {
                self.levels.push(Level::default());
            }
            match self.levels[k].add(count) {
                Some(both) => count = both,
                None => return,
            }
        }
    }
}

impl Level {
    /// Adds `number` blocks, at least one, without a slot above the threshold. Returns the count of the block of the next
    /// level that the first of them completes, if its other half was not empty, and the number of empty blocks of the
    /// next level that follow.
    #[inline]
    fn add_empty(&mut self, number: u64) -> (Option<u64>, u64) {
        self.pairs += number - u64::from(self.previous.is_none());
        self.first += self.previous.unwrap_or(0);
        self.previous = Some(0);
        self.blocks += number;
        let halves = number + u64::from(self.half.is_some());
        let completed = self.half.filter(|half| *half > 0);
        self.half = (halves % 2 == 1).then_some(0);
        (completed, halves / 2 - u64::from(completed.is_some()))
    }

    #[inline]
    fn add(&mut self, count: u64) -> Option<u64> {
        if let Some(previous) = self.previous {
            self.pairs += 1;
            self.first += previous;
            self.second += count;
            self.products += u128::from(previous * count);
        }
        self.previous = Some(count);
        self.blocks += 1;
        self.sum += count;
        self.squares += u128::from(count * count);
        match self.half.take() {
            Some(half) => Some(half + count),
            None => {
                self.half = Some(count);
                None
            }
        }
    }
}
