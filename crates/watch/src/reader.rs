//! What one reader of a writer has, asked for, and never acknowledged.

use std::collections::BTreeMap;
use tailbound_rtps::SequenceSet;

/// Largest number of requests of one reader that are remembered.
const MOST_REQUESTS: usize = 10_000;
/// A request that is younger at the end of the capture may still be answered, ns.
const ANSWERED_WITHIN_NS: i64 = 1_000_000_000;

/// A reader, as its writer hears from it.
#[derive(Default)]
pub struct Reader {
    /// The largest sample that the writer had sent when the reader was first heard: older ones are history.
    joined_at: i64,
    /// The samples that the reader asked for and has not acknowledged, with the time of the first request.
    open: BTreeMap<i64, i64>,
}

impl Reader {
    /// A reader that is heard for the first time when `highest` is the largest sample of its writer.
    pub fn new(highest: i64) -> Reader {
        Reader { joined_at: highest, open: BTreeMap::new() }
    }

    /// The reader has all samples before the first one of the set, and asks for the ones in it. Returns how many of them it asks
    /// for the first time. Samples up to `history_to` are history.
    pub fn hears(&mut self, missing: &SequenceSet, history_to: i64, stamp_ns: i64) -> u64 {
        self.open = self.open.split_off(&missing.base);
        missing.iter().filter(|number| self.asks(*number, history_to, stamp_ns)).count() as u64
    }

    /// The reader asks for a sample. Returns whether it does so for the first time.
    pub fn asks(&mut self, number: i64, history_to: i64, stamp_ns: i64) -> bool {
        if number <= self.joined_at.max(history_to)
            || self.open.len() >= MOST_REQUESTS
            || self.open.contains_key(&number)
        {
            return false;
        }
        self.open.insert(number, stamp_ns);
        true
    }

    /// The samples that the reader asked for and has not acknowledged.
    pub fn asked(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.keys().copied()
    }

    /// Whether the reader waits for a sample.
    pub fn waits_for(&self, number: i64) -> bool {
        self.open.contains_key(&number)
    }

    /// The writer no longer has a sample; returns whether the reader had asked for it.
    pub fn gives_up(&mut self, number: i64) -> bool {
        self.open.remove(&number).is_some()
    }

    /// The writer no longer has the samples before a number; returns how many of them the reader had asked for.
    pub fn gives_up_before(&mut self, number: i64) -> u64 {
        let kept = self.open.split_off(&number);
        std::mem::replace(&mut self.open, kept).len() as u64
    }

    /// Number of samples that the reader asked for too shortly before the end for an answer, and has not acknowledged.
    pub fn open(&self, end_ns: i64) -> u64 {
        self.open.len() as u64 - self.lost(end_ns)
    }

    /// Number of samples that the reader asked for long enough before the end, and never acknowledged.
    pub fn lost(&self, end_ns: i64) -> u64 {
        self.open.values().filter(|asked_ns| end_ns - **asked_ns >= ANSWERED_WITHIN_NS).count() as u64
    }
}
