//! Comparison of two sides with too few trials: bootstrap with moving blocks inside the trials.
//!
//! H. R. Künsch, The Jackknife and the Bootstrap for General Stationary Observations, Annals of Statistics 17 (1989);
//! the ends of the interval are percentiles (B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap (1993),
//! chapter 13). The method uses the variation between blocks of a trial. It does not know the variation between trials.

use super::random::Random;
use crate::bucket::BucketIndex;
use crate::quantile::Quantile;

/// Largest number of chunks (groups of consecutive slots) into which a trial is divided; a long trial has at least half
/// as many chunks.
const CHUNKS: usize = 256;
/// Number of blocks from which a resampled trial is built.
const BLOCKS: usize = 32;
const DRAWS: usize = 400;

/// Statistic of the values of one trial that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Statistic of a trial: a quantile of the values of all scheduled slots.
    Quantile(Quantile),
    /// Statistic of a trial: the mean of the values of the slots that have a value.
    Mean,
}

/// A group of consecutive slots: counts of values by bucket, number of slots, sum of the values, and number of slots
/// with a value.
#[derive(Debug, Clone, Default)]
struct Chunk {
    /// Indexes of the histogram buckets with values of this group of slots, each with its number of values, in rising
    /// order.
    buckets: Vec<(u32, u32)>,
    slots: u64,
    sum: f64,
    answered: u64,
}

/// One trial, divided into consecutive chunks (groups of slots) of equal length. If there are too many chunks,
/// neighbouring chunks are joined in pairs.
#[derive(Debug, Clone)]
pub struct Chunks {
    closed: Vec<Chunk>,
    /// Histogram buckets of the values in the last chunk of the trial, which is not complete yet.
    open: Vec<u32>,
    current: Chunk,
    slots_each: u64,
}

impl Default for Chunks {
    fn default() -> Self {
        Chunks { closed: Vec::new(), open: Vec::new(), current: Chunk::default(), slots_each: 8 }
    }
}

impl Chunks {
    /// Adds the values of the next slots in order, in nanoseconds. The value `beyond` stands for a slot without an
    /// answer, which is later than every value.
    pub fn push_all(&mut self, mut values: &[i64], beyond: i64) {
        while !values.is_empty() {
            let room = (self.slots_each - self.current.slots).min(values.len() as u64) as usize;
            let (now, later) = values.split_at(room);
            for &value in now.iter().filter(|v| **v != beyond) {
                self.open.push(BucketIndex::of(value).as_usize() as u32);
                self.current.sum += value as f64;
                self.current.answered += 1;
            }
            self.current.slots += now.len() as u64;
            if self.current.slots == self.slots_each {
                self.close();
            }
            values = later;
        }
    }

    fn close(&mut self) {
        self.open.sort_unstable();
        let mut chunk = std::mem::take(&mut self.current);
        for bucket in self.open.drain(..) {
            match chunk.buckets.last_mut() {
                Some((last, count)) if *last == bucket => *count += 1,
                _ => chunk.buckets.push((bucket, 1)),
            }
        }
        self.closed.push(chunk);
        if self.closed.len() == CHUNKS {
            let pairs = std::mem::take(&mut self.closed);
            self.closed = pairs.chunks_exact(2).map(|p| both(&p[0], &p[1])).collect();
            self.slots_each *= 2;
        }
    }
}

fn both(a: &Chunk, b: &Chunk) -> Chunk {
    let mut buckets: Vec<(u32, u32)> = Vec::with_capacity(a.buckets.len() + b.buckets.len());
    let (mut left, mut right) = (a.buckets.iter().peekable(), b.buckets.iter().peekable());
    while let Some((bucket, count)) = match (left.peek(), right.peek()) {
        (Some(l), Some(r)) if r.0 < l.0 => right.next(),
        (None, _) => right.next(),
        _ => left.next(),
    } {
        match buckets.last_mut() {
            Some((last, sum)) if last == bucket => *sum += count,
            _ => buckets.push((*bucket, *count)),
        }
    }
    Chunk { buckets, slots: a.slots + b.slots, sum: a.sum + b.sum, answered: a.answered + b.answered }
}

/// 95 % intervals of the logarithm of the ratio of side b to side a, one for each statistic, from moving blocks inside
/// the trials of both sides. `None` if a trial is too short, or if a statistic is later than every value or is not
/// above zero.
pub fn within_runs(a: &[Chunks], b: &[Chunks], statistics: &[Statistic]) -> Vec<Option<(f64, f64)>> {
    let short = |t: &Chunks| t.closed.len() < BLOCKS;
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(short) {
        return vec![None; statistics.len()];
    }
    let mut random = Random::seeded(a.len() as u64);
    let mut laid = Laid::new(a.iter().chain(b));
    let mut draws = vec![Vec::with_capacity(DRAWS); statistics.len()];
    for _ in 0..DRAWS {
        let mut difference = vec![0.0; statistics.len()];
        for (side, sign) in [(a, -1.0), (b, 1.0)] {
            for trial in side {
                laid.draw(trial, &mut random);
                for (sum, statistic) in difference.iter_mut().zip(statistics) {
                    *sum += sign * laid.log_of(*statistic) / side.len() as f64;
                }
            }
        }
        draws.iter_mut().zip(difference).for_each(|(all, d)| all.push(d));
    }
    let ends = |mut all: Vec<f64>| {
        all.sort_unstable_by(f64::total_cmp);
        let (low, high) = (all[DRAWS / 40], all[DRAWS - 1 - DRAWS / 40]);
        (all.iter().all(|d| d.is_finite())).then_some((low, high))
    };
    draws.into_iter().map(ends).collect()
}

/// A resampled trial of the bootstrap: numbers of values by bucket, and sums.
struct Laid {
    /// Index of the histogram bucket to which the first number in `counts` belongs.
    first: usize,
    counts: Vec<u64>,
    slots: u64,
    sum: f64,
    answered: u64,
}

impl Laid {
    fn new<'a>(trials: impl Iterator<Item = &'a Chunks>) -> Laid {
        let (mut first, mut last) = (BucketIndex::COUNT, 0);
        for (bucket, _) in trials.flat_map(|t| &t.closed).flat_map(|c| &c.buckets) {
            first = first.min(*bucket as usize);
            last = last.max(*bucket as usize);
        }
        Laid { first, counts: vec![0; (last + 1).saturating_sub(first)], slots: 0, sum: 0.0, answered: 0 }
    }

    fn draw(&mut self, trial: &Chunks, random: &mut Random) {
        self.counts.fill(0);
        (self.slots, self.sum, self.answered) = (0, 0.0, 0);
        let length = trial.closed.len() / BLOCKS;
        for _ in 0..BLOCKS {
            let begin = random.below(trial.closed.len() - length + 1);
            for chunk in &trial.closed[begin..begin + length] {
                for (bucket, count) in &chunk.buckets {
                    self.counts[*bucket as usize - self.first] += u64::from(*count);
                }
                self.slots += chunk.slots;
                self.sum += chunk.sum;
                self.answered += chunk.answered;
            }
        }
    }

    /// Natural logarithm of a statistic of the resampled trial; NaN if the logarithm does not exist.
    fn log_of(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Mean => (self.sum / self.answered as f64).ln(),
            Statistic::Quantile(q) => self.quantile(q).ln(),
        }
    }

    /// A quantile of the resampled trial, in ns, interpolated within its bucket by the share of the bucket's values
    /// below the quantile.
    fn quantile(&self, q: Quantile) -> f64 {
        let rank = q.rank(self.slots);
        let mut before = 0;
        for (slot, &count) in self.counts.iter().enumerate() {
            if before + count >= rank {
                let bucket = BucketIndex::at(self.first + slot);
                let within = (rank - before) as f64 / (count + 1) as f64;
                return bucket.low() as f64 + within * (bucket.high() - bucket.low() + 1) as f64;
            }
            before += count;
        }
        f64::INFINITY
    }
}
