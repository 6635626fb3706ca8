//! Bounds of the difference between the clocks of the two ends of a trial, from the times of its messages.

use crate::{Columns, Record, RecordError, SlotBatch};
use tailbound_model::NO_TIME;
use tailbound_stats::{ClockMessage, NoBounds, SteadyParts, SteadySearch};

impl Record {
    /// Computes the bounds of the difference between the clock of the ping (clock A) and the clock of the pong (clock B)
    /// from all messages of a trial, for each part of the trial in which both clocks were steady; or returns the reason why
    /// there are no bounds. The memory does not grow with the number of messages.
    ///
    /// # Errors
    /// A segment is damaged.
    pub fn clock_bounds(&self, trial: usize) -> Result<Result<SteadyParts, NoBounds>, RecordError> {
        let mut search = SteadySearch::default();
        self.scan(trial, &Columns::of_clocks(), &mut |batch| {
            (0..batch.len()).filter_map(|row| message(batch, row)).for_each(|message| search.add(&message));
        })?;
        Ok(search.finish())
    }
}

/// The times of a message that was sent.
fn message(batch: &SlotBatch, row: usize) -> Option<ClockMessage> {
    let time = |column: &[i64]| Some(column[row]).filter(|time| *time != NO_TIME);
    Some(ClockMessage {
        sent_a_ns: time(&batch.send_begin_ns)?,
        arrived_b_ns: time(&batch.echo_in_ns),
        // Not the end of the call: an answer may arrive before the call that sends it has returned.
        answered_b_ns: time(&batch.echo_begin_ns),
        received_a_ns: time(&batch.receive_ns),
    })
}
