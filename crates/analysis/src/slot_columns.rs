//! Time from wake-up to sent, round trip and wake period of the sender over a trial, in as many columns as fit into a
//! chart. Each column summarises consecutive slots by their lowest and highest values, so that no late message is missing.

use std::collections::BTreeMap;
use tailbound_document::{Course, Range};
use tailbound_model::NO_TIME;
use tailbound_record::SlotBatch;

/// Target for the number of columns of all trials together; the actual number can be twice as large.
const COLUMNS_OF_ALL: usize = 6_000;

/// Smallest and largest target for the number of columns of one trial. A trial with more slots has between one and two
/// times the target.
const COLUMNS_OF_ONE: (usize, usize) = (30, 240);

/// Collects these times of the sender in each trial of a condition. If there are too many columns, neighbouring columns
/// are joined in pairs, so that the memory does not grow with the number of slots.
#[derive(Debug, Clone)]
pub(crate) struct Courses {
    most: usize,
    began_ns: i64,
    ended_ns: i64,
    pub of: BTreeMap<usize, Course>,
}

impl Courses {
    /// Makes an object that collects the times of the sender, for a report with the given number of trials.
    pub fn new(trials: usize) -> Self {
        let (least, most) = COLUMNS_OF_ONE;
        let most = (COLUMNS_OF_ALL / trials.max(1)).clamp(least, most);
        Courses { most, began_ns: NO_TIME, ended_ns: NO_TIME, of: BTreeMap::new() }
    }

    /// Adds the next rows of samples of `trial`. All time columns of the sender must have been read before.
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
            course.unanswered[column] += outcomes.iter().filter(|o| !crate::series::answered(**o)).count() as u64;
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

/// The lowest and the highest difference between two time columns, over the rows of samples that have both times, in
/// ns. There is no branch per row, because a record may have tens of millions of rows.
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
