//! Single messages: the worst ones, and the one that took the median.

use crate::clocks::Legs;
use crate::series::{BETWEEN_ENDS, Series, is_between_ends, leg_range};
use tailbound_model::{Metric, NO_TIME, counter_of};
use tailbound_record::SlotBatch;

/// A row of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageKey {
    pub trial: usize,
    pub row: u64,
}

/// The highest values seen, with their rows; the earliest wins among equals.
#[derive(Debug, Clone)]
pub(crate) struct Worst {
    keep: usize,
    /// Falling.
    found: Vec<(i64, MessageKey)>,
}

impl Worst {
    pub fn new(keep: usize) -> Self {
        Worst { keep, found: Vec::with_capacity(keep + 1) }
    }

    /// Rows of the batch that begins at `row`.
    pub fn offer(&mut self, trial: usize, row: u64, series: &Series) {
        let mut floor = self.floor();
        for (i, &value) in series.rows().iter().enumerate() {
            if value > floor && value != Series::BEYOND {
                let at = self.found.partition_point(|(v, _)| *v >= value);
                self.found.insert(at, (value, MessageKey { trial, row: row + i as u64 }));
                self.found.truncate(self.keep);
                floor = self.floor();
            }
        }
    }

    fn floor(&self) -> i64 {
        if self.found.len() < self.keep { NO_TIME } else { self.found[self.keep - 1].0 }
    }

    /// From the worst on.
    pub fn keys(&self) -> Vec<MessageKey> {
        self.found.iter().map(|(_, key)| *key).collect()
    }
}

/// What one group's columns tell of a message.
#[derive(Debug, Clone)]
pub(crate) struct MessagePart {
    pub key: MessageKey,
    pub slot: Option<u64>,
    pub intended_ns: Option<i64>,
    pub send_begin_ns: Option<i64>,
    /// When the call that sent the slot before returned.
    pub previous_send_end_ns: Option<i64>,
    /// By [`Metric::ALL`].
    pub values: [Option<i64>; Metric::ALL.len()],
    /// By [`BETWEEN_ENDS`], between two clocks: at least, at most.
    pub ranges: [Option<[i64; 2]>; BETWEEN_ENDS.len()],
}

impl MessagePart {
    /// Reads the row of `key` from the batch that begins at `row`.
    pub fn read(batch: &SlotBatch, key: MessageKey, row: u64, legs: Legs<'_>) -> Self {
        let at = (key.row - row) as usize;
        let time = |column: &[i64], at: Option<usize>| column.get(at?).copied().filter(|t| *t != NO_TIME);
        MessagePart {
            key,
            slot: batch.seq.get(at).map(|s| counter_of(*s)),
            intended_ns: time(&batch.intended_ns, Some(at)),
            send_begin_ns: time(&batch.send_begin_ns, Some(at)),
            previous_send_end_ns: time(&batch.send_end_ns, at.checked_sub(1)),
            values: Metric::ALL.map(|m| batch.metric(m, at).filter(|_| is_known(m, legs))),
            ranges: BETWEEN_ENDS.map(|m| leg_range(batch, m, legs, at)),
        }
    }
}

/// Whether the difference of two stamps is the metric.
fn is_known(metric: Metric, legs: Legs<'_>) -> bool {
    match legs {
        Legs::Exact => true,
        Legs::Bounded(_) => !is_between_ends(metric),
        Legs::Unknown => !is_between_ends(metric) && metric != Metric::Turnaround,
    }
}
