//! The times at which the executor took messages, kept until they are asked for.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize};

use serde_json::{Value, json};

/// Largest number of times that are kept: 16 MB.
const MOST: usize = 1 << 20;
/// Largest number of times in one answer.
const IN_ONE_ANSWER: usize = 20_000;

/// Memory for the times. It is touched before the first message.
pub struct Taken {
    /// Sequence number and time (monotonic ns, 0 = not written).
    cells: Box<[(AtomicU64, AtomicI64)]>,
    /// Number of times, also those for which there is no cell.
    count: AtomicUsize,
    /// Number of times that were asked for.
    answered: AtomicUsize,
    is_reported: AtomicBool,
}

impl Default for Taken {
    fn default() -> Taken {
        let zero = AtomicUsize::new;
        // The stores touch the pages.
        let cells = (0..MOST).map(|_| (AtomicU64::new(u64::MAX), AtomicI64::new(0)));
        Taken { cells: cells.collect(), count: zero(0), answered: zero(0), is_reported: AtomicBool::new(false) }
    }
}

impl Taken {
    /// Keeps the time of a message, monotonic ns; 0 = it is not known.
    #[inline]
    pub fn add(&self, seq: u64, at_ns: i64) {
        if at_ns == 0 {
            return;
        }
        if let Some((of, ns)) = self.cells.get(self.count.fetch_add(1, Relaxed)) {
            of.store(seq, Relaxed);
            ns.store(at_ns, Release);
        }
    }

    /// Answers the query `stamps`: the next times; an answer without times is the last one.
    pub fn stamps(&self) -> Value {
        let from = self.answered.fetch_add(IN_ONE_ANSWER, AcqRel).min(MOST);
        let cells = self.cells[from..].iter().take(IN_ONE_ANSWER);
        let written = cells.map(|(seq, ns)| (seq.load(Relaxed), ns.load(Acquire))).filter(|(_, ns)| *ns != 0);
        let stamps: Vec<Value> = written.map(|(seq, ns)| json!([seq, "taken", ns])).collect();
        let is_last = stamps.is_empty() && !self.is_reported.swap(true, AcqRel);
        let left_out = self.count.load(Relaxed).saturating_sub(MOST);
        json!({"stamps": stamps, "unread": 0, "left_out": if is_last { left_out } else { 0 }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_answered_once() {
        let taken = Taken::default();
        (0..20_001).for_each(|seq| taken.add(seq, if seq == 5 { 0 } else { 1_000 + seq as i64 }));
        let lengths: Vec<usize> = (0..2).map(|_| taken.stamps()["stamps"].as_array().unwrap().len()).collect();
        assert_eq!(lengths, [20_000, 0]);
        let few = Taken::default();
        few.add(7, 70);
        assert_eq!(few.stamps(), json!({"stamps": [[7, "taken", 70]], "unread": 0, "left_out": 0}));
        (0..MOST as u64 + 2).for_each(|seq| few.add(seq, 1));
        let left_out: Vec<u64> = std::iter::repeat_with(|| few.stamps())
            .take(MOST / IN_ONE_ANSWER + 3)
            .map(|answer| answer["left_out"].as_u64().unwrap())
            .filter(|left_out| *left_out > 0)
            .collect();
        assert_eq!(left_out, [3]);
    }
}
