//! The latest messages, in the order in which they came.

use crate::distribution::Distribution;

/// At most this share of the messages is of the tail, and at most so many are kept.
const SHARE: u64 = 20;
const MOST: u64 = 20_000;

/// The latest messages of a record with their places; memory is bounded, however many messages there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peaks {
    floor_ns: i64,
    n: u64,
    /// Place among all messages, and value in nanoseconds.
    above: Vec<(u64, i64)>,
    /// Where sequences begin.
    starts: Vec<u64>,
}

/// What lies above a threshold.
pub(crate) struct Exceedances {
    pub threshold_ns: i64,
    /// Place, and value less the threshold.
    pub values: Vec<(u64, f64)>,
    /// The excesses alone, rising.
    pub excesses: Vec<f64>,
    pub starts: Vec<u64>,
}

impl Peaks {
    /// Prepares a pass over the values of a first one.
    pub fn of(first: &Distribution) -> Self {
        let wanted = (first.answered() / SHARE).min(MOST);
        let floor_ns =
            first.histogram().bucket_of_rank((first.answered() - wanted).max(1)).map_or(0, |b| b.bucket.high);
        Peaks { floor_ns, n: 0, above: Vec::with_capacity(wanted as usize), starts: vec![0] }
    }

    /// The next messages, in nanoseconds, in the order of their slots: all values of the first pass, and no others.
    pub fn push_all(&mut self, values: &[i64]) {
        let places = self.n..;
        self.above.extend(places.zip(values).filter(|(_, v)| **v > self.floor_ns).map(|(at, v)| (at, *v)));
        self.n += values.len() as u64;
    }

    /// Ends a sequence, such as a trial.
    pub fn end_sequence(&mut self) {
        if self.starts.last() != Some(&self.n) {
            self.starts.push(self.n);
        }
    }

    /// How many messages there were.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// Thresholds to try, rising; each leaves about `share` of what the one before it leaves.
    pub(crate) fn thresholds(&self, share: f64) -> Vec<i64> {
        let mut values: Vec<i64> = self.above.iter().map(|(_, v)| *v).collect();
        values.sort_unstable();
        let mut left = values.len() as f64;
        let mut thresholds = Vec::new();
        while left >= 40.0 {
            let below = values.len() - left as usize;
            thresholds.push(if below == 0 { self.floor_ns } else { values[below - 1] });
            left *= share;
        }
        thresholds.dedup();
        thresholds
    }

    pub(crate) fn above(&self, threshold_ns: i64) -> Exceedances {
        let later = self.above.iter().filter(|(_, v)| *v > threshold_ns);
        let values: Vec<(u64, f64)> = later.map(|(at, v)| (*at, (*v - threshold_ns) as f64)).collect();
        let mut excesses: Vec<f64> = values.iter().map(|(_, x)| *x).collect();
        excesses.sort_unstable_by(f64::total_cmp);
        Exceedances { threshold_ns, values, excesses, starts: self.starts.clone() }
    }
}
