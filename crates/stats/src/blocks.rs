//! Counts of an indicator by blocks of 16 slots, 32, 64 and so on, in one pass.
//!
//! Where neighbouring blocks no longer depend on each other, the scatter of their counts holds all the dependence
//! there is: the blocking of H. Flyvbjerg, H. G. Petersen, Error Estimates on Averages of Correlated Data, J. Chem.
//! Phys. 91 (1989).

/// Slots of the shortest block.
pub(crate) const SHORTEST: usize = 16;

/// Sums over the blocks of one length. All are whole numbers: nothing depends on how a series was split.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub blocks: u64,
    pub sum: u64,
    pub squares: u128,
    /// Neighbouring blocks of one sequence: how many, the sums of both sides, and of the products.
    pub pairs: u64,
    pub first: u64,
    pub second: u64,
    pub products: u128,
    previous: Option<u64>,
    /// The first half of a block of the next level.
    half: Option<u64>,
}

/// The levels, from [`SHORTEST`] slots upwards by doubling; memory grows with the logarithm of the slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    levels: Vec<Level>,
    /// Slots of the block that is not full yet, and how many of them exceeded.
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
            self.block(count);
        }
    }

    pub fn push_all(&mut self, values: &[i64], threshold: i64) {
        let open = (SHORTEST - self.filled) % SHORTEST;
        let (head, rest) = values.split_at(open.min(values.len()));
        head.iter().for_each(|v| self.push(*v > threshold));
        let chunks = rest.chunks_exact(SHORTEST);
        let tail = chunks.remainder();
        for chunk in chunks {
            self.block(chunk.iter().map(|v| u64::from(*v > threshold)).sum());
        }
        tail.iter().for_each(|v| self.push(*v > threshold));
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

    /// Each level with the slots of its blocks.
    pub fn levels(&self) -> impl Iterator<Item = (f64, &Level)> {
        self.levels.iter().enumerate().map(|(k, level)| ((SHORTEST as f64) * (k as f64).exp2(), level))
    }

    /// A full block of the shortest level; two of a level are one of the next.
    #[inline]
    fn block(&mut self, mut count: u64) {
        for k in 0.. {
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
