//! Joins the rows of samples of the pong side (echoes) to slots by sequence number.
//!
//! Rows of a segment are sorted by sequence number and arrival, so slots and echoes are merged like two sorted lists,
//! however many there are. Only if segments overlap (because echoes were collected late), a table of the whole trial is
//! built. Rows of other streams (for example a stray datagram of another program) are joined to no slot, because the
//! whole sequence number is compared, including the number of the stream.

use crate::RecordError;
use crate::columns::{Rows, count_rows, open, seq_ranges};
use crate::segment::ECHO_NUMBERS;
use std::path::PathBuf;
use tailbound_model::NO_TIME;

/// Largest number of slots for which memory is allocated, so that a wrong number in a damaged file does not request
/// all memory of the machine.
const MOST_SLOTS: u64 = 1 << 33;

/// Number of time columns in the rows of samples of the pong side.
const COLUMNS: usize = ECHO_NUMBERS.len();

/// Times of echoes (messages that the pong side received): one column for each name in [`ECHO_NUMBERS`]. A column that
/// was not requested is empty.
pub(crate) type EchoColumns = [Vec<i64>; COLUMNS];

/// The echoes of one trial (messages that the pong side received), in one of several forms.
pub(crate) enum Echoes {
    /// The reader of the record did not request the echoes.
    None,
    /// The echoes are merged with the slots while the slots are read.
    Stream(Box<EchoStream>),
    /// Times of the first echo of every slot, indexed by sequence number.
    Table { wanted: [bool; COLUMNS], times: EchoColumns },
}

impl Echoes {
    /// Opens the segments (files of samples) with the echoes of a trial; `slots` are the segments with the trial's
    /// slots.
    pub(crate) fn open(
        segments: Vec<PathBuf>,
        slots: &[PathBuf],
        wanted: [bool; COLUMNS],
    ) -> Result<Echoes, RecordError> {
        if wanted == [false; COLUMNS] {
            return Ok(Echoes::None);
        }
        let mut columns = vec!["seq"];
        columns.extend((0..COLUMNS).filter(|i| wanted[*i]).map(|i| ECHO_NUMBERS[i]));
        if in_order(&segments)? {
            let segments = segments.into_iter();
            return Ok(Echoes::Stream(Box::new(EchoStream {
                segments,
                columns,
                wanted,
                path: PathBuf::new(),
                reader: None,
                seq: Vec::new(),
                times: EchoColumns::default(),
                at: 0,
                last: 0,
            })));
        }
        let stored = slots.iter().map(|path| count_rows(path)).collect::<Result<Vec<u64>, _>>()?;
        let slots = stored.into_iter().fold(0, u64::saturating_add);
        table(&segments, slots.min(MOST_SLOTS), &columns, wanted)
    }

    /// Fills `into` with the times of the first echo of each slot, or with [`NO_TIME`] if a slot has no echo.
    pub(crate) fn join(&mut self, slots: &[u64], mut into: [&mut Vec<i64>; COLUMNS]) -> Result<(), RecordError> {
        into.iter_mut().for_each(|column| column.clear());
        match self {
            Echoes::None => Ok(()),
            Echoes::Stream(stream) => stream.join(slots, into),
            Echoes::Table { wanted, times } => {
                for ((into, from), _) in into.into_iter().zip(times).zip(wanted).filter(|(_, wanted)| **wanted) {
                    let of = |s: &u64| from.get(*s as usize).copied().unwrap_or(NO_TIME);
                    into.extend(slots.iter().map(of));
                }
                Ok(())
            }
        }
    }
}

/// True if, by sequence number, no row group of these segments (files of samples) begins before the end of the previous
/// row group.
fn in_order(segments: &[PathBuf]) -> Result<bool, RecordError> {
    let mut last: Option<u64> = None;
    for path in segments {
        let Some(ranges) = seq_ranges(path)? else { return Ok(false) };
        for (low, high) in ranges {
            if low > high || last.is_some_and(|last| low < last) {
                return Ok(false);
            }
            last = Some(high);
        }
    }
    Ok(true)
}

/// Builds a table with the first echo of each slot, for `slots` slots. Rows of other streams, and rows after the last
/// slot, are skipped.
fn table(
    segments: &[PathBuf],
    slots: u64,
    columns: &[&'static str],
    wanted: [bool; COLUMNS],
) -> Result<Echoes, RecordError> {
    let mut times = EchoColumns::default();
    let mut seq = Vec::new();
    for path in segments {
        let mut rows = open(path, columns)?;
        while rows.next_batch()? > 0 {
            rows.sequence(&mut seq)?;
            let top = seq.iter().filter(|s| **s < slots).max().map_or(0, |s| *s as usize + 1);
            let mut decoded = Vec::new();
            for column in (0..COLUMNS).filter(|c| wanted[*c]) {
                let times = &mut times[column];
                if times.len() < top {
                    times.resize(top, NO_TIME);
                }
                rows.numbers(ECHO_NUMBERS[column], &mut decoded)?;
                for (s, t) in seq.iter().zip(&decoded).filter(|(s, _)| **s < slots) {
                    let slot = &mut times[*s as usize];
                    if *slot == NO_TIME {
                        *slot = *t;
                    }
                }
            }
        }
    }
    Ok(Echoes::Table { wanted, times })
}

/// Reader of echoes in the order of their slots, with only one batch of rows of echoes in memory.
pub(crate) struct EchoStream {
    segments: std::vec::IntoIter<PathBuf>,
    columns: Vec<&'static str>,
    wanted: [bool; COLUMNS],
    path: PathBuf,
    reader: Option<Rows>,
    seq: Vec<u64>,
    times: EchoColumns,
    /// Index of the first row of the current batch of echoes that may still belong to a later slot.
    at: usize,
    /// Sequence number of the last row of echoes that was read.
    last: u64,
}

impl EchoStream {
    fn join(&mut self, slots: &[u64], mut into: [&mut Vec<i64>; COLUMNS]) -> Result<(), RecordError> {
        for (column, wanted) in into.iter_mut().zip(self.wanted) {
            column.resize(if wanted { slots.len() } else { 0 }, NO_TIME);
        }
        let mut slot = 0;
        while slot < slots.len() {
            if self.at == self.seq.len() && !self.next_batch()? {
                break;
            }
            // In the usual case nothing is lost and nothing is duplicated: runs of equal numbers are copied together.
            let run = slots[slot..].iter().zip(&self.seq[self.at..]).take_while(|(a, b)| a == b).count();
            if run > 0 {
                for column in (0..COLUMNS).filter(|c| self.wanted[*c]) {
                    into[column][slot..slot + run].copy_from_slice(&self.times[column][self.at..self.at + run]);
                }
                slot += run;
                self.at += run;
            } else if self.seq[self.at] < slots[slot] {
                self.at += 1;
            } else {
                slot += 1;
            }
        }
        Ok(())
    }

    /// Reads the next batch of rows of echoes; returns false if there are no more batches.
    fn next_batch(&mut self) -> Result<bool, RecordError> {
        loop {
            if let Some(rows) = &mut self.reader
                && rows.next_batch()? > 0
            {
                self.take()?;
                return Ok(true);
            }
            let Some(path) = self.segments.next() else { return Ok(false) };
            self.reader = Some(open(&path, &self.columns)?);
            self.path = path;
        }
    }

    fn take(&mut self) -> Result<(), RecordError> {
        let Some(rows) = &mut self.reader else { return Ok(()) };
        rows.sequence(&mut self.seq)?;
        for seq in &self.seq {
            if *seq < self.last {
                return Err(RecordError::damaged(&self.path, "rows are not in the order of `seq`"));
            }
            self.last = *seq;
        }
        for column in (0..COLUMNS).filter(|c| self.wanted[*c]) {
            rows.numbers(ECHO_NUMBERS[column], &mut self.times[column])?;
        }
        self.at = 0;
        Ok(())
    }
}
