//! Warm-up detection: finds messages at the beginning of a trial that differ from the rest, by change points of block
//! medians.
//!
//! E. Barrett et al., Virtual Machine Warmup Blows Hot and Cold, OOPSLA 2017, find the end of the warm-up this way. The
//! change points are computed as in R. Killick, P. Fearnhead, I. A. Eckley, Optimal Detection of Changepoints With a
//! Linear Computational Cost, JASA 107 (2012). Blocks depend on each other if stalls last long, so the penalty grows
//! with their autocorrelation (G. Romano et al., Detecting Abrupt Changes in the Presence of Local Fluctuations and
//! Autocorrelated Noise, JASA 117 (2022)).

/// Number of messages in the shortest block; one median is computed for each block.
const SHORTEST: usize = 16;
/// Maximum number of blocks of slots; when there are more, neighbouring blocks are joined in pairs.
const MOST_BLOCKS: usize = 512;
/// Minimum number of blocks of slots from which a warm-up can be detected.
const FEWEST_BLOCKS: usize = 20;
/// Minimum number of blocks of slots in a detected warm-up; a shorter slow start may be only one stall.
const FEWEST_OF_WARM_UP: usize = 3;
/// A warm-up is reported only if its median differs by at least this share from the median of the rest of the trial.
const SHIFT: f64 = 0.05;
/// Limit, in standard deviations, to which the distance of a block from the steady level is clipped, because a stall is
/// not a change of the level.
const CLIP: f64 = 3.0;
/// Penalty of a change point in units of ln(number of blocks): one unit for the mean on each side and one unit for the
/// position.
const PENALTY: f64 = 3.0;

/// Medians of consecutive messages of one trial; their memory is bounded.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockMedians {
    /// Number of slots in each block of which the median is taken.
    block: u64,
    open: Vec<i64>,
    /// For the block that is not full yet: the sum of the medians of its parts of [`SHORTEST`] slots, the number of
    /// these parts, and the number of parts that have a median. A part has none if at least half of its slots have no
    /// answer.
    joined: (f64, u64, u64),
    medians: Vec<f64>,
    slots: u64,
}

/// A warm-up that was detected at the beginning of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUp {
    /// Number of slots that belong to the warm-up.
    pub slots: u64,
    /// Number of slots of the whole trial.
    pub of: u64,
    /// Median of the block medians in the warm-up, in nanoseconds.
    pub before_ns: f64,
    /// Median of the block medians in the second half of the trial, in nanoseconds.
    pub after_ns: f64,
}

impl Default for BlockMedians {
    fn default() -> Self {
        BlockMedians { block: SHORTEST as u64, open: Vec::new(), joined: (0.0, 0, 0), medians: Vec::new(), slots: 0 }
    }
}

impl BlockMedians {
    /// Adds the latencies of the next messages, in nanoseconds, in the order of their slots; `i64::MAX` for a message
    /// without an answer.
    pub fn push_all(&mut self, values: &[i64]) {
        self.slots += values.len() as u64;
        let mut rest = values;
        while !rest.is_empty() {
            let (taken, left) = rest.split_at(rest.len().min(SHORTEST - self.open.len()));
            self.open.extend_from_slice(taken);
            rest = left;
            if self.open.len() == SHORTEST {
                let median = *self.open.select_nth_unstable(SHORTEST / 2).1;
                // Where half of the messages of a block have no answer, the block has no median.
                self.median(if median == i64::MAX { f64::NAN } else { median as f64 });
                self.open.clear();
            }
        }
    }

    fn median(&mut self, median: f64) {
        let (sum, blocks, known) = self.joined;
        self.joined = if median.is_nan() { (sum, blocks + 1, known) } else { (sum + median, blocks + 1, known + 1) };
        if self.joined.1 * (SHORTEST as u64) < self.block {
            return;
        }
        // Without a known median the quotient is not a number, as the median itself.
        self.medians.push(self.joined.0 / self.joined.2 as f64);
        self.joined = (0.0, 0, 0);
        if self.medians.len() == MOST_BLOCKS {
            self.medians = self.medians.chunks(2).map(|pair| mean_of_known(pair[0], pair[1])).collect();
            self.block *= 2;
        }
    }

    /// The warm-up of the trial, if there is one.
    ///
    /// The level of the second half is the steady level. The warm-up ends at the first stretch between change points
    /// whose level differs by at most 5 % from the steady level, in the first half of the trial.
    pub fn warm_up(&self) -> Option<WarmUp> {
        let blocks = self.medians.len();
        let unknown = self.medians[blocks / 2..].iter().filter(|m| m.is_nan()).count();
        if blocks < FEWEST_BLOCKS || 2 * unknown > blocks - blocks / 2 {
            return None;
        }
        let medians = filled(&self.medians);
        let rest = &medians[blocks / 2..];
        let steady = middle(rest);
        let far: Vec<f64> = rest.iter().map(|m| (m - steady).abs()).collect();
        // 1.4826 times the median absolute deviation is the standard deviation of a normal distribution.
        let deviation = (1.4826 * middle(&far)).max(SHIFT / 5.0 * steady.abs()).max(1.0);
        let levels: Vec<f64> = medians.iter().map(|m| ((m - steady) / deviation).clamp(-CLIP, CLIP)).collect();
        let penalty = PENALTY * (blocks as f64).ln() * variance_ratio(&levels[blocks / 2..]);
        let mut end = 0;
        for to in change_points(&levels, penalty) {
            let level = middle(&medians[end..to]);
            if (level - steady).abs() <= SHIFT * steady.abs() {
                break;
            }
            end = to;
        }
        let found = end >= FEWEST_OF_WARM_UP && end <= blocks / 2;
        found.then(|| WarmUp {
            slots: end as u64 * self.block,
            of: self.slots,
            before_ns: middle(&medians[..end]),
            after_ns: steady,
        })
    }
}

/// Returns the mean of two medians or, if only one of the medians is known, the known median.
fn mean_of_known(one: f64, other: f64) -> f64 {
    match (one.is_nan(), other.is_nan()) {
        (true, _) => other,
        (_, true) => one,
        _ => (one + other) / 2.0,
    }
}

/// Replaces each unknown median by the last known median before it; unknown medians at the beginning are replaced by
/// the first known median.
fn filled(medians: &[f64]) -> Vec<f64> {
    let mut last = medians.iter().copied().find(|m| !m.is_nan()).unwrap_or(0.0);
    let fill = |m: &f64| {
        last = if m.is_nan() { last } else { *m };
        last
    };
    medians.iter().map(fill).collect()
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Ratio by which autocorrelation increases the variance of a mean, if the values follow a first-order autoregressive
/// process (AR(1)).
fn variance_ratio(levels: &[f64]) -> f64 {
    let n = levels.len() as f64;
    let mean = levels.iter().sum::<f64>() / n;
    let squares: f64 = levels.iter().map(|x| (x - mean).powi(2)).sum();
    let products: f64 = levels.windows(2).map(|p| (p[0] - mean) * (p[1] - mean)).sum();
    let lag1 = if squares > 0.0 { (products / squares + 1.0 / n).clamp(0.0, 0.95) } else { 0.0 };
    (squares / n).max(1.0) * (1.0 + lag1) / (1.0 - lag1)
}

/// Positions at which the mean of `levels` (values with unit variance) changes, and the position of the end. They
/// minimise the sum of squared distances from the means of the stretches between the positions, plus a penalty for each
/// stretch.
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
    // For each position: the least cost up to there, and the begin of the last stretch.
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
