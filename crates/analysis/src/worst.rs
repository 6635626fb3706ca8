//! Finds single messages: the worst messages, and the message whose round trip is the median.

use crate::clocks::Legs;
use crate::series::{BETWEEN_ENDS, Series, is_between_ends, leg_range};
use tailbound_model::{Metric, NO_TIME, counter_of};
use tailbound_record::SlotBatch;

/// Identifier of a message: the trial, and the number of the message's row of samples in the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageKey {
    pub trial: usize,
    pub row: u64,
}

/// The highest values of a metric, with their messages. If values are equal, the earliest one is kept.
#[derive(Debug, Clone)]
pub(crate) struct Worst {
    keep: usize,
    /// The highest values of the metric with their messages, in falling order.
    found: Vec<(i64, MessageKey)>,
}

impl Worst {
    pub fn new(keep: usize) -> Self {
        Worst { keep, found: Vec::with_capacity(keep + 1) }
    }

    /// Adds the values of a batch of rows of samples that begins at the row number `row`.
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

    /// The messages with the highest values of the metric, the highest value first.
    pub fn keys(&self) -> Vec<MessageKey> {
        self.found.iter().map(|(_, key)| *key).collect()
    }
}

/// Data about one message that were read from the columns of one group of metrics.
#[derive(Debug, Clone)]
pub(crate) struct MessagePart {
    pub key: MessageKey,
    pub slot: Option<u64>,
    pub intended_ns: Option<i64>,
    pub send_begin_ns: Option<i64>,
    /// Time at which the send call of the previous slot returned, in ns.
    pub previous_send_end_ns: Option<i64>,
    /// Values of the metrics in ns, in the order of [`Metric::ALL`].
    pub values: [Option<i64>; Metric::ALL.len()],
    /// Minimum and maximum, in ns, of each leg between two clocks, in the order of [`BETWEEN_ENDS`].
    pub ranges: [Option<[i64; 2]>; BETWEEN_ENDS.len()],
}

impl MessagePart {
    /// Reads the row of samples that `key` identifies from the batch that begins at the row number `row`.
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

/// True if the value of the metric is known exactly. If the ends have different clocks, the legs between the ends are
/// known as ranges or not at all; if the legs are unknown, the turnaround is unknown too.
fn is_known(metric: Metric, legs: Legs<'_>) -> bool {
    match legs {
        Legs::Exact => true,
        Legs::Bounded(_) => !is_between_ends(metric),
        Legs::Unknown => !is_between_ends(metric) && metric != Metric::Turnaround,
    }
}
