//! Finds the first message of a trial that fulfils a condition (`--until`).

use crate::{Columns, MatchedMessage, Record, RecordError, SlotBatch};
use tailbound_model::{NO_TIME, Outcome, SenderRow, UntilCondition, UntilTerm};

impl Record {
    /// Finds the first message of a trial that fulfils a condition, in the order of the slots; `None` if no message
    /// does.
    ///
    /// # Errors
    /// A segment is damaged.
    pub fn first_match(&self, trial: usize, condition: &UntilCondition) -> Result<Option<MatchedMessage>, RecordError> {
        let columns = Columns::of(&UntilTerm::METRICS).with_seq();
        let mut found: Option<MatchedMessage> = None;
        let mut first = 0;
        self.scan(trial, &columns, &mut |batch| {
            for i in 0..batch.len() {
                let row = sender_row(batch, i);
                let Some(term) = condition.fulfilled_by(&row) else { continue };
                let matched = found.get_or_insert_with(|| MatchedMessage {
                    trial,
                    row: first + i as u64,
                    slot: row.seq,
                    due_ns: if row.intended_ns == NO_TIME { row.send_begin_ns } else { row.intended_ns },
                    received_ns: (row.receive_ns != NO_TIME).then_some(row.receive_ns),
                    term,
                    value_ns: term.value_ns(&row),
                    matches: 0,
                });
                matched.matches += 1;
            }
            first += batch.len() as u64;
        })?;
        Ok(found)
    }
}

/// The times of a slot that conditions need.
fn sender_row(batch: &SlotBatch, i: usize) -> SenderRow {
    SenderRow {
        seq: batch.seq[i],
        intended_ns: batch.intended_ns[i],
        wake_ns: batch.wake_ns[i],
        send_begin_ns: batch.send_begin_ns[i],
        send_end_ns: batch.send_end_ns[i],
        receive_ns: batch.receive_ns[i],
        kernel_rx_ns: NO_TIME,
        receive_thread: None,
        outcome: if batch.outcome[i] == Outcome::Lost as u8 { Outcome::Lost } else { Outcome::Answered },
        duplicates: 0,
        out_of_order: false,
        warm_up: batch.warm_up[i],
    }
}
