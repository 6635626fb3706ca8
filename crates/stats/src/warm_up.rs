//! Warm-up: messages at the beginning of a trial that are unlike the rest, found by change points of block medians.
//!
//! E. Barrett et al., Virtual Machine Warmup Blows Hot and Cold, OOPSLA 2017, find the end of warm-up so; the change
//! points are those of R. Killick, P. Fearnhead, I. A. Eckley, Optimal Detection of Changepoints With a Linear
//! Computational Cost, JASA 107 (2012). Blocks depend on each other where stalls last long: the penalty grows with
//! their autocorrelation (G. Romano et al., Detecting Abrupt Changes in the Presence of Local Fluctuations and
//! Autocorrelated Noise, JASA 117 (2022)).

/// Messages whose median is one value.
const SHORTEST: usize = 16;
/// Blocks are joined in pairs when there are so many.
const MOST_BLOCKS: usize = 512;
/// Fewer blocks have no beginning.
const FEWEST_BLOCKS: usize = 20;
/// A shorter beginning may be one stall.
const FEWEST_OF_WARM_UP: usize = 3;
/// A beginning that differs less from the rest is no news.
const SHIFT: f64 = 0.05;
/// Distances from the steady level count up to so many standard deviations: a stall is not a level.
const CLIP: f64 = 3.0;
/// Penalty of a change point over ln(blocks): three for one mean each side and the place.
const PENALTY: f64 = 3.0;

/// Medians of consecutive messages of one trial; memory is bounded.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockMedians {
    /// Slots of a block.
    block: u64,
    open: Vec<i64>,
    /// Sum and number of the medians of the block that is not full yet.
    joined: (f64, u64),
    medians: Vec<f64>,
    slots: u64,
}

/// A beginning that is unlike the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUp {
    /// Slots of the beginning.
    pub slots: u64,
    /// Slots of the trial.
    pub of: u64,
    /// The middle of the beginning's block medians, in nanoseconds.
    pub before_ns: f64,
    /// That of the second half of the trial.
    pub after_ns: f64,
}

impl Default for BlockMedians {
    fn default() -> Self {
        BlockMedians { block: SHORTEST as u64, open: Vec::new(), joined: (0.0, 0), medians: Vec::new(), slots: 0 }
    }
}

impl BlockMedians {
    /// The next messages, in nanoseconds, in the order of their slots.
    pub fn push_all(&mut self, values: &[i64]) {
        self.slots += values.len() as u64;
        let mut rest = values;
        while !rest.is_empty() {
            let (taken, left) = rest.split_at(rest.len().min(SHORTEST - self.open.len()));
            self.open.extend_from_slice(taken);
            rest = left;
            if self.open.len() == SHORTEST {
                let median = *self.open.select_nth_unstable(SHORTEST / 2).1;
                self.median(median as f64);
                self.open.clear();
            }
        }
    }

    fn median(&mut self, median: f64) {
        self.joined = (self.joined.0 + median, self.joined.1 + 1);
        if self.joined.1 * (SHORTEST as u64) < self.block {
            return;
        }
        self.medians.push(self.joined.0 / self.joined.1 as f64);
        self.joined = (0.0, 0);
        if self.medians.len() == MOST_BLOCKS {
            self.medians = self.medians.chunks(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
            self.block *= 2;
        }
    }

    /// The beginning that is unlike the rest of the trial, where there is one.
    ///
    /// The level of the second half is the steady one. The warm-up is what comes before the first stretch between
    /// change points that is within 5 % of it, in the first half of the trial.
    pub fn warm_up(&self) -> Option<WarmUp> {
        let blocks = self.medians.len();
        if blocks < FEWEST_BLOCKS {
            return None;
        }
        let rest = &self.medians[blocks / 2..];
        let steady = middle(rest);
        let far: Vec<f64> = rest.iter().map(|m| (m - steady).abs()).collect();
        // 1.4826 median absolute deviations are the standard deviation of a normal distribution.
        let deviation = (1.4826 * middle(&far)).max(SHIFT / 5.0 * steady.abs()).max(1.0);
        let levels: Vec<f64> = self.medians.iter().map(|m| ((m - steady) / deviation).clamp(-CLIP, CLIP)).collect();
        let penalty = PENALTY * (blocks as f64).ln() * time(&levels[blocks / 2..]);
        let mut end = 0;
        for to in change_points(&levels, penalty) {
            let level = middle(&self.medians[end..to]);
            if (level - steady).abs() <= SHIFT * steady.abs() {
                break;
            }
            end = to;
        }
        let found = end >= FEWEST_OF_WARM_UP && end <= blocks / 2;
        found.then(|| WarmUp {
            slots: end as u64 * self.block,
            of: self.slots,
            before_ns: middle(&self.medians[..end]),
            after_ns: steady,
        })
    }
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The variance of a mean over that of independent values, as of a process of order one.
fn time(levels: &[f64]) -> f64 {
    let n = levels.len() as f64;
    let mean = levels.iter().sum::<f64>() / n;
    let squares: f64 = levels.iter().map(|x| (x - mean).powi(2)).sum();
    let products: f64 = levels.windows(2).map(|p| (p[0] - mean) * (p[1] - mean)).sum();
    let lag1 = if squares > 0.0 { (products / squares + 1.0 / n).clamp(0.0, 0.95) } else { 0.0 };
    (squares / n).max(1.0) * (1.0 + lag1) / (1.0 - lag1)
}

/// Where the mean of `levels`, of unit variance, changes, and the end: the least sum of squared distances from the means
/// of stretches plus a penalty for each.
fn change_points(levels: &[f64], penalty: f64) -> Vec<usize> {
    let mut sums = vec![(0.0, 0.0)];
    for x in levels {
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + x, squares + x * x));
    }
    let cost = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        squares - sum * sum / (to - from) as f64
    };
    // The best up to each place, and where its last stretch begins.
    let mut best = vec![(-penalty, 0)];
    let mut candidates = vec![0];
    for to in 1..=levels.len() {
        let with = |from: &usize| (best[*from].0 + cost(*from, to) + penalty, *from);
        let least = candidates.iter().map(with).min_by(|a, b| a.0.total_cmp(&b.0)).expect("the beginning is one");
        candidates.retain(|from| best[*from].0 + cost(*from, to) <= least.0);
        candidates.push(to);
        best.push(least);
    }
    let mut ends = vec![levels.len()];
    while let Some(from) = Some(best[ends[ends.len() - 1]].1).filter(|from| *from > 0) {
        ends.push(from);
    }
    ends.reverse();
    ends
}
