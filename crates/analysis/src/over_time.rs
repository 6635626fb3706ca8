//! The course of a trial over time, in columns. Each column contains the lowest, the median and the highest value of
//! consecutive slots, so that no late message is missing.

use std::collections::BTreeMap;
use tailbound_document::{ColumnValues, OverTime};
use tailbound_model::{Metric, NO_TIME};
use tailbound_record::SlotBatch;

/// Largest number of columns of all trials together that an HTML page can contain for each of its two metrics.
const COLUMNS_OF_ALL: u64 = 60_000;

/// Smallest and largest number of columns for one trial, in which its slots are summarised over time.
const COLUMNS_OF_ONE: (u64, u64) = (60, 8_000);

/// Number of slots of a trial, as counted by the first pass over the samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub slots: u64,
    pub warm_up: u64,
}

impl Extent {
    pub fn add(&mut self, batch: &SlotBatch) {
        self.slots += batch.len() as u64;
        self.warm_up += batch.warm_up.iter().filter(|w| **w).count() as u64;
    }
}

/// Collects the values of one metric over time for the trials of a condition.
pub(crate) struct Follow {
    metric: Metric,
    with_begin: bool,
    most: u64,
    extents: BTreeMap<usize, Extent>,
    /// Values of the slots, in ns, that belong to the last column of the chart over time, which is not complete yet.
    column: Vec<i64>,
    values: Vec<i64>,
    pub of: BTreeMap<usize, OverTime>,
}

impl Follow {
    /// Makes an object that collects columns for trials with the given numbers of slots, in a report with `trials`
    /// trials. The metric must be `round_trip` or `from_intended`.
    pub fn new(metric: Metric, with_begin: bool, extents: &BTreeMap<usize, Extent>, trials: usize) -> Follow {
        let (least, most) = COLUMNS_OF_ONE;
        Follow {
            metric,
            with_begin,
            most: (COLUMNS_OF_ALL / trials.max(1) as u64).clamp(least, most),
            extents: extents.clone(),
            column: Vec::new(),
            values: Vec::new(),
            of: BTreeMap::new(),
        }
    }

    /// Adds the next rows of samples of `trial`, which begin at the row number `row`.
    pub fn offer(&mut self, trial: usize, row: u64, batch: &SlotBatch) {
        let Some(&Extent { slots, warm_up }) = self.extents.get(&trial) else { return };
        let over_time = self.of.entry(trial).or_insert_with(|| OverTime {
            warm_up_slots: warm_up,
            slots,
            slots_per_column: slots.div_ceil(self.most).max(1),
            ..OverTime::default()
        });
        batch.metric_column(self.metric, &mut self.values);
        if self.values.is_empty() {
            return;
        }
        for i in 0..batch.len() {
            let at = row + i as u64;
            let in_part = if at < warm_up { at } else { at - warm_up };
            if in_part.is_multiple_of(over_time.slots_per_column) && self.with_begin {
                over_time.begin_ns.push(batch.send_begin_ns[i]);
            }
            if self.values[i] != NO_TIME {
                self.column.push(self.values[i]);
            }
            if !crate::series::answered(batch.outcome[i]) {
                let column = over_time.round_trip.max_ns.len();
                match over_time.unanswered.last_mut() {
                    Some((last, n)) if *last == column => *n += 1,
                    _ => over_time.unanswered.push((column, 1)),
                }
            }
            let ends = (in_part + 1).is_multiple_of(over_time.slots_per_column);
            if ends || at + 1 == warm_up || at + 1 == slots {
                push(&mut over_time.round_trip, &mut self.column);
            }
        }
    }

    /// Returns the columns of each trial; their times are relative to the first column.
    pub fn finish(mut self) -> BTreeMap<usize, OverTime> {
        for over_time in self.of.values_mut() {
            let first = over_time.begin_ns.iter().copied().find(|t| *t != NO_TIME).unwrap_or(0);
            let mut last = 0;
            for begin in &mut over_time.begin_ns {
                // A slot that was not sent has no time of its own.
                last = if *begin == NO_TIME { last } else { begin.saturating_sub(first) };
                *begin = last;
            }
        }
        self.of
    }
}

/// Completes a column of the chart over time: stores the minimum, median and maximum of `values`, and empties `values`.
fn push(columns: &mut ColumnValues, values: &mut Vec<i64>) {
    let range = values.iter().min().copied().zip(values.iter().max().copied());
    columns.min_ns.push(range.map(|r| r.0));
    columns.max_ns.push(range.map(|r| r.1));
    let middle = values.len().div_ceil(2).saturating_sub(1);
    columns.median_ns.push(range.map(|_| *values.select_nth_unstable(middle).1));
    values.clear();
}

/// Joins the columns of the round trip of each trial with the columns of `from_intended` of the same trial.
pub(crate) fn join(
    round_trip: BTreeMap<usize, OverTime>,
    mut from_intended: BTreeMap<usize, OverTime>,
) -> impl Iterator<Item = (usize, OverTime)> {
    round_trip.into_iter().map(move |(trial, mut over_time)| {
        let intended = from_intended.remove(&trial).map(|o| o.round_trip);
        over_time.from_intended = intended.filter(|c| c.max_ns.iter().any(Option::is_some));
        (trial, over_time)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests 91 slots, of which 11 are the warm-up, with 2 slots per column: no column contains both warm-up and
    /// measured slots, and no slot is left out.
    #[test]
    fn columns_hold_every_slot_once_and_keep_the_maximum() {
        let slots = 91_u64;
        let extents = BTreeMap::from([(3, Extent { slots, warm_up: 11 })]);
        let mut follow = Follow::new(Metric::RoundTrip, true, &extents, 1_000_000);
        let value = |k: u64| 1_000 + ((k * 37) % 91) as i64;
        for part in [0..40, 40..91] {
            let rows: Vec<u64> = part.clone().collect();
            let batch = SlotBatch {
                send_begin_ns: rows.iter().map(|k| *k as i64 * 10_000).collect(),
                receive_ns: rows
                    .iter()
                    .map(|k| if *k == 50 { NO_TIME } else { *k as i64 * 10_000 + value(*k) })
                    .collect(),
                outcome: rows.iter().map(|k| if *k == 50 { 2 } else { 0 }).collect(),
                warm_up: rows.iter().map(|k| *k < 11).collect(),
                ..SlotBatch::default()
            };
            follow.offer(3, part.start, &batch);
        }
        let over_time = &follow.finish()[&3];
        assert_eq!((over_time.warm_up_slots, over_time.slots_per_column), (11, 2));
        let columns: Vec<Vec<u64>> = [0..11, 11..slots]
            .into_iter()
            .flat_map(|part: std::ops::Range<u64>| {
                part.collect::<Vec<_>>().chunks(2).map(<[u64]>::to_vec).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(columns.len(), over_time.round_trip.max_ns.len());
        for (i, slots) in columns.iter().enumerate() {
            let mut values: Vec<i64> = slots.iter().filter(|k| **k != 50).map(|k| value(*k)).collect();
            values.sort_unstable();
            let found = &over_time.round_trip;
            assert_eq!((found.min_ns[i], found.max_ns[i]), (values.first().copied(), values.last().copied()), "{i}");
            assert_eq!(found.median_ns[i], values.get(values.len().div_ceil(2) - 1).copied(), "{i}");
            assert_eq!(over_time.begin_ns[i], slots[0] as i64 * 10_000);
        }
        let lost = columns.iter().position(|c| c.contains(&50)).unwrap();
        assert_eq!(over_time.unanswered, [(lost, 1)]);
    }
}
