//! A trial slot by slot, in as many columns as a figure has room for: nothing that is late falls out of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{Metric, NO_TIME};
use tailbound_record::SlotBatch;

/// Columns of all trials together, of which a page can carry twice as many.
const COLUMNS_OF_ALL: usize = 6_000;
/// The least and the most of one trial; where it has more slots there are so many columns up to twice as many.
const COLUMNS_OF_ONE: (usize, usize) = (30, 240);

/// The lowest and the highest value of a column's slots; null where none has a value.
pub type Range = Option<(i64, i64)>;

/// The measured slots of one trial in their order; a column holds `slots_per_column` of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// M1: from when the first slot was due (stop-and-wait: begun) until the last answer was received or the last call
    /// that publishes returned, whichever was later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_time_ns: Option<i64>,
    /// What the schedule takes: slots x period; absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_ns: Option<i64>,
    /// Slots.
    pub slots: u64,
    /// Consecutive slots that share a column; the last column may have fewer.
    pub slots_per_column: u64,
    /// Slots of each column that were never answered, or never sent.
    pub unanswered: Vec<u64>,
    /// M2: woken to sent.
    pub wake_to_sent: Vec<Range>,
    /// M3: round trip.
    pub round_trip: Vec<Range>,
    /// M4: wake of the slot before to wake.
    pub wake_period: Vec<Range>,
}

impl Course {
    /// The columns of a metric, where the course has it.
    pub fn columns(&self, metric: Metric) -> &[Range] {
        match metric {
            Metric::WakeToSent => &self.wake_to_sent,
            Metric::RoundTrip => &self.round_trip,
            Metric::WakePeriod => &self.wake_period,
            _ => &[],
        }
    }
}

/// Follows the trials of a condition. Two neighbouring columns become one whenever there are too many, so that memory does
/// not grow with the number of slots.
#[derive(Debug, Clone)]
pub(crate) struct Courses {
    most: usize,
    began_ns: i64,
    ended_ns: i64,
    pub of: BTreeMap<usize, Course>,
}

impl Courses {
    /// For a report over so many trials.
    pub fn new(trials: usize) -> Self {
        let (least, most) = COLUMNS_OF_ONE;
        let most = (COLUMNS_OF_ALL / trials.max(1)).clamp(least, most);
        Courses { most, began_ns: NO_TIME, ended_ns: NO_TIME, of: BTreeMap::new() }
    }

    /// The next rows of `trial`; all columns of times that the sender writes have been read.
    pub fn offer(&mut self, trial: usize, batch: &SlotBatch) {
        let course = self.of.entry(trial).or_insert_with(|| {
            (self.began_ns, self.ended_ns) = (NO_TIME, NO_TIME);
            Course { slots_per_column: 1, ..Course::default() }
        });
        // The warm-up comes first.
        let mut row = batch.warm_up.iter().position(|w| !w).unwrap_or(batch.len());
        if row < batch.len() && self.began_ns == NO_TIME {
            let intended = batch.intended_ns[row];
            self.began_ns = if intended == NO_TIME { batch.wake_ns[row] } else { intended };
        }
        let last = |times: &[i64]| times.iter().copied().max().unwrap_or(NO_TIME);
        self.ended_ns = self.ended_ns.max(last(&batch.receive_ns[row..])).max(last(&batch.send_end_ns[row..]));
        while row < batch.len() {
            if course.slots.is_multiple_of(course.slots_per_column) {
                if course.unanswered.len() == 2 * self.most {
                    halve(course);
                }
                course.unanswered.push(0);
                course.wake_to_sent.push(None);
                course.round_trip.push(None);
                course.wake_period.push(None);
            }
            let room = course.slots_per_column - course.slots % course.slots_per_column;
            let rows = row..batch.len().min(row + room as usize);
            let column = course.unanswered.len() - 1;
            let outcomes = &batch.outcome[rows.clone()];
            course.unanswered[column] += outcomes.iter().filter(|o| !crate::passes::answered(**o)).count() as u64;
            let range = |later: &[i64], earlier: &[i64]| range(&later[rows.clone()], &earlier[rows.clone()]);
            widen(&mut course.wake_to_sent[column], range(&batch.send_end_ns, &batch.wake_ns));
            widen(&mut course.round_trip[column], range(&batch.receive_ns, &batch.send_begin_ns));
            widen(&mut course.wake_period[column], range(&batch.wake_ns, &batch.previous_wake_ns));
            course.slots += rows.len() as u64;
            row = rows.end;
        }
        let both = self.began_ns != NO_TIME && self.ended_ns != NO_TIME;
        course.run_time_ns = both.then(|| self.ended_ns.saturating_sub(self.began_ns));
    }
}

/// The lowest and the highest difference of rows that have both times. Without a branch for each row: a record may have
/// tens of millions.
fn range(later: &[i64], earlier: &[i64]) -> Range {
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for (later, earlier) in later.iter().zip(earlier) {
        let there = (*later != NO_TIME) & (*earlier != NO_TIME);
        let value = later.saturating_sub(*earlier);
        low = low.min(if there { value } else { i64::MAX });
        high = high.max(if there { value } else { i64::MIN });
    }
    (low <= high).then_some((low, high))
}

fn widen(range: &mut Range, more: Range) {
    let both = [*range, more];
    let low = both.iter().flatten().map(|r| r.0).min();
    *range = low.zip(both.iter().flatten().map(|r| r.1).max());
}

fn halve(course: &mut Course) {
    course.slots_per_column *= 2;
    course.unanswered = course.unanswered.chunks(2).map(|c| c.iter().sum()).collect();
    for columns in [&mut course.wake_to_sent, &mut course.round_trip, &mut course.wake_period] {
        let join = |pair: &[Range]| {
            let mut joined = None;
            pair.iter().for_each(|r| widen(&mut joined, *r));
            joined
        };
        *columns = columns.chunks(2).map(join).collect();
    }
}
