//! Reads the stages that the messages of an end passed.

use crate::columns::open_stages;
use crate::{Record, RecordError, RecordWriter};
use tailbound_model::{NO_TIME, StageRow};

impl Record {
    /// The stages that the messages of an end passed in a trial, in rising order of their sequence numbers; times are monotonic ns of
    /// the end's host. Empty if the messages have no such stamps.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn stages(&self, trial: usize, end: &str) -> Result<Vec<StageRow>, RecordError> {
        let path = RecordWriter::stages_path(self.dir(), trial, end);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let mut file = open_stages(&path)?;
        let mut rows: Vec<StageRow> = Vec::new();
        let (mut seq, mut columns) = (Vec::new(), [(); 5].map(|()| Vec::new()));
        while file.next_batch()? > 0 {
            file.sequence(&mut seq)?;
            for (name, column) in crate::segment::STAGE_NUMBERS.into_iter().zip(&mut columns) {
                file.numbers(name, column)?;
            }
            rows.extend(seq.iter().enumerate().map(|(at, seq)| {
                let [queued_ns, sent_ns, card_ns, card_rx_ns, taken_ns] = columns.each_ref().map(|column| column[at]);
                StageRow { seq: *seq, queued_ns, sent_ns, card_ns, card_rx_ns, taken_ns }
            }));
        }
        Ok(rows)
    }
}

/// When the messages of an end in a trial were ready to leave, and left, as far as stamps show it.
#[derive(Debug, Default)]
pub struct Departures {
    /// In rising order of the sequence numbers.
    rows: Vec<StageRow>,
    /// Largest error of a stamp, ns.
    width_ns: i64,
}

/// When one message was ready to leave, and left, monotonic ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// The message was not ready earlier: begin of the send call, or arrival at the queue discipline.
    pub ready_ns: i64,
    /// The message had left at this time: its receipt by the same clock, or the latest time at which the network card or the driver of the interface can
    /// have sent it.
    pub left_ns: i64,
    /// Earliest and latest time at which it can have left, by its stamp; `None` = no stamp shows it.
    pub stamped_ns: Option<(i64, i64)>,
}

impl Departures {
    /// # Errors
    /// The file with the stages is damaged.
    pub fn of(record: &Record, trial: usize, end: &str) -> Result<Departures, RecordError> {
        let done = record.manifest.trials.iter().find(|done| done.id == trial);
        let fact = done.and_then(|done| done.ends.get(end)?.stages.as_ref());
        let width_ns = fact.map_or(0, |fact| fact.width_ns.max(fact.card_width_ns).unwrap_or(0));
        Ok(Departures { rows: record.stages(trial, end)?, width_ns })
    }

    /// When the message with this sequence number was ready to leave, and left. Its send call began at `sent_ns`, and it was received
    /// at `received_ns`; `None` = the receiver has another clock. `by_card`: the network card holds messages back, so that only its own
    /// stamps show when they left. `None`: neither a stamp nor the receipt shows when the message left.
    pub fn of_message(&self, seq: u64, (sent_ns, received_ns): (i64, Option<i64>), by_card: bool) -> Option<Departure> {
        let row = self.rows.binary_search_by_key(&seq, |row| row.seq).ok().map(|at| self.rows[at]);
        let time = |ns: i64| Some(ns).filter(|ns| *ns != NO_TIME);
        let queued_ns = row.and_then(|row| time(row.queued_ns)).map(|ns| ns - self.width_ns);
        let by_driver = |row: &StageRow| time(row.sent_ns).filter(|_| !by_card);
        let stamp_ns = row.and_then(|row| time(row.card_ns).or(by_driver(&row)));
        let latest_ns = |ns: i64| received_ns.map_or(ns, |received_ns| ns.min(received_ns));
        let stamped_ns = stamp_ns.map(|ns| (ns - self.width_ns, latest_ns(ns + self.width_ns)));
        Some(Departure {
            ready_ns: queued_ns.map_or(sent_ns, |ns| ns.max(sent_ns)),
            left_ns: stamped_ns.map(|(_, latest_ns)| latest_ns).or(received_ns)?,
            stamped_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_left_when_its_stamp_says_and_never_after_its_receipt() {
        let none = StageRow::without_stamps;
        let row = |seq, queued_ns, sent_ns, card_ns| StageRow { queued_ns, sent_ns, card_ns, ..none(seq) };
        let rows = vec![row(3, 110, 150, NO_TIME), row(5, 105, 150, 170), row(6, NO_TIME, NO_TIME, NO_TIME)];
        let departures = Departures { rows, width_ns: 10 };
        let of = |seq, by_card| {
            let found = departures.of_message(seq, (100, Some(175)), by_card).unwrap();
            (found.ready_ns, found.left_ns, found.stamped_ns)
        };
        let [first, second] = [(100, 160, Some((140, 160))), (100, 175, Some((160, 175)))];
        let unknown = (100, 175, None);
        assert_eq!([3, 5].map(|seq| of(seq, false)), [first, second]);
        assert_eq!([4, 6].map(|seq| of(seq, false)), [unknown; 2]);
        // The driver had the message before the card sent it.
        assert_eq!([3, 5].map(|seq| of(seq, true)), [unknown, second]);
        // The receiver has another clock, so that only stamps show when a message left.
        let by_stamps = |seq| departures.of_message(seq, (100, None), false).map(|found| found.left_ns);
        assert_eq!([3, 4, 5, 6].map(by_stamps), [Some(160), None, Some(180), None]);
    }
}
