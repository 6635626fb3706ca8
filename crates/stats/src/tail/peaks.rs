//! Collects the latest messages of a record, in the order of their slots.

use crate::distribution::Distribution;

/// Limits of the number of messages that belong to the tail: at most one message in `SHARE`, and at most `MOST`
/// messages.
const SHARE: u64 = 20;
const MOST: u64 = 20_000;

/// The latest messages of a record with their positions. The memory is bounded, however many messages there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peaks {
    floor_ns: i64,
    n: u64,
    /// Position of each collected message among all messages, and the value of the message in nanoseconds.
    above: Vec<(u64, i64)>,
    /// Positions, among all messages, at which sequences such as trials begin.
    starts: Vec<u64>,
}

/// The messages that are later than the threshold of the tail.
pub(crate) struct Exceedances {
    pub threshold_ns: i64,
    /// Position of each message, and its value minus the threshold in ns.
    pub values: Vec<(u64, f64)>,
    /// The values minus the threshold in ns, in rising order.
    pub excesses: Vec<f64>,
    pub starts: Vec<u64>,
}

impl Peaks {
    /// Prepares to collect the latest messages in a second pass over the values of the first pass.
    pub fn of(first: &Distribution) -> Self {
        let wanted = (first.answered() / SHARE).min(MOST);
        let floor_ns =
            first.histogram().bucket_of_rank((first.answered() - wanted).max(1)).map_or(0, |b| b.bucket.high);
        Peaks { floor_ns, n: 0, above: Vec::with_capacity(wanted as usize), starts: vec![0] }
    }

    /// Adds the next messages, in nanoseconds, in the order of their slots. Exactly the values of the first pass must
    /// be added.
    pub fn push_all(&mut self, values: &[i64]) {
        let places = self.n..;
        self.above.extend(places.zip(values).filter(|(_, v)| **v > self.floor_ns).map(|(at, v)| (at, *v)));
        self.n += values.len() as u64;
    }

    /// Marks the end of a sequence of messages, such as a trial.
    pub fn end_sequence(&mut self) {
        if self.starts.last() != Some(&self.n) {
            self.starts.push(self.n);
        }
    }

    /// Number of messages that were added in the second pass.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// The thresholds that a tail estimate tries, in rising order. The messages above a threshold are about the part
    /// `share` of the messages above the previous threshold.
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
