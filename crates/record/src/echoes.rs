//! What the pong side saw, joined to slots by sequence number.
//!
//! Rows of a segment lie in the order of sequence number and arrival, so that slots and echoes are merged like two
//! sorted lists, whatever their number. Only where segments overlap (echoes drained late) a table of the whole trial
//! is made. Rows of other streams (a stray datagram from outside) answer no slot: the whole number is compared.

use crate::RecordError;
use crate::columns::{copy_times, count_rows, open, seq_ranges, sequence};
use crate::segment::ECHO_TIMES;
use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use std::path::PathBuf;
use tailbound_model::NO_TIME;

/// A damaged number of rows must not ask for all the memory of the machine.
const MOST_SLOTS: u64 = 1 << 33;

/// Columns of a pong side's rows.
const COLUMNS: usize = ECHO_TIMES.len();

/// By [`ECHO_TIMES`]; a column that was not asked for stays empty.
pub(crate) type EchoColumns = [Vec<i64>; COLUMNS];

/// The echoes of one trial, in one of two forms.
pub(crate) enum Echoes {
    /// Nobody asked for them.
    None,
    /// Merged while slots are read.
    Stream(Box<EchoStream>),
    /// First echo of every slot, by sequence number.
    Table { wanted: [bool; COLUMNS], times: EchoColumns },
}

impl Echoes {
    /// Opens the echoes of the slots that lie in the segments `slots`.
    pub(crate) fn open(
        segments: Vec<PathBuf>,
        slots: &[PathBuf],
        wanted: [bool; COLUMNS],
    ) -> Result<Echoes, RecordError> {
        if wanted == [false; COLUMNS] {
            return Ok(Echoes::None);
        }
        let mut columns = vec!["seq"];
        columns.extend((0..COLUMNS).filter(|i| wanted[*i]).map(|i| ECHO_TIMES[i]));
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

    /// Fills `into` with the first echo of each slot, [`NO_TIME`] where there is none.
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

/// Whether every row group begins after the one before ends.
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

/// The first echo of each of `slots` slots. Rows of other streams, and beyond the last slot, are passed over.
fn table(
    segments: &[PathBuf],
    slots: u64,
    columns: &[&'static str],
    wanted: [bool; COLUMNS],
) -> Result<Echoes, RecordError> {
    let mut times = EchoColumns::default();
    for path in segments {
        for rows in open(path, columns)? {
            let rows = rows.map_err(|e| RecordError::damaged(path, e))?;
            let seq = sequence(&rows, path)?;
            let top = seq.iter().filter(|s| **s < slots).max().map_or(0, |s| *s as usize + 1);
            let mut decoded = Vec::new();
            for column in (0..COLUMNS).filter(|c| wanted[*c]) {
                let times = &mut times[column];
                if times.len() < top {
                    times.resize(top, NO_TIME);
                }
                copy_times(&rows, ECHO_TIMES[column], &mut decoded, path)?;
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

/// Echoes in the order of their slots, one batch in memory.
pub(crate) struct EchoStream {
    segments: std::vec::IntoIter<PathBuf>,
    columns: Vec<&'static str>,
    wanted: [bool; COLUMNS],
    path: PathBuf,
    reader: Option<ParquetRecordBatchReader>,
    seq: Vec<u64>,
    times: EchoColumns,
    /// First row of the batch that no slot has passed yet.
    at: usize,
    /// Sequence number of the last row read.
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
            // The usual case, nothing lost and nothing doubled: runs of equal numbers are copied as they are.
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

    /// False at the end.
    fn next_batch(&mut self) -> Result<bool, RecordError> {
        loop {
            if let Some(rows) = self.reader.as_mut().and_then(Iterator::next) {
                let rows = rows.map_err(|e| RecordError::damaged(&self.path, e))?;
                if rows.num_rows() > 0 {
                    self.take(&rows)?;
                    return Ok(true);
                }
                continue;
            }
            let Some(path) = self.segments.next() else { return Ok(false) };
            self.reader = Some(open(&path, &self.columns)?);
            self.path = path;
        }
    }

    fn take(&mut self, rows: &RecordBatch) -> Result<(), RecordError> {
        self.seq.clear();
        self.seq.extend_from_slice(sequence(rows, &self.path)?);
        for seq in &self.seq {
            if *seq < self.last {
                return Err(RecordError::damaged(&self.path, "rows are not in the order of `seq`"));
            }
            self.last = *seq;
        }
        for column in (0..COLUMNS).filter(|c| self.wanted[*c]) {
            copy_times(rows, ECHO_TIMES[column], &mut self.times[column], &self.path)?;
        }
        self.at = 0;
        Ok(())
    }
}
