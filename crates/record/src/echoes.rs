//! What the pong side saw, joined to slots by sequence number.
//!
//! Rows of a segment lie in the order of sequence number and arrival, so that slots and echoes are merged like two
//! sorted lists, whatever their number. Only where segments overlap (echoes drained late) a table of the whole trial
//! is made.

use crate::RecordError;
use crate::columns::{copy_times, open, seq_ranges, sequence};
use crate::segment::ECHO_TIMES;
use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use std::path::PathBuf;
use tailbound_model::{COUNTER_BITS, NO_TIME, counter_of};

/// `in_ns`, `begin_ns`, `end_ns`; a column that was not asked for stays empty.
pub(crate) type EchoColumns = [Vec<i64>; 3];

/// The echoes of one trial, in one of two forms.
pub(crate) enum Echoes {
    /// Nobody asked for them.
    None,
    /// Merged while slots are read.
    Stream(Box<EchoStream>),
    /// First echo of every slot, by slot counter.
    Table { wanted: [bool; 3], times: EchoColumns },
}

impl Echoes {
    pub(crate) fn open(segments: Vec<PathBuf>, wanted: [bool; 3]) -> Result<Echoes, RecordError> {
        if wanted == [false; 3] {
            return Ok(Echoes::None);
        }
        let mut columns = vec!["seq"];
        columns.extend((0..3).filter(|i| wanted[*i]).map(|i| ECHO_TIMES[i]));
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
        table(&segments, &columns, wanted)
    }

    /// Fills `into` with the first echo of each slot, [`NO_TIME`] where there is none.
    pub(crate) fn join(&mut self, slots: &[u64], mut into: [&mut Vec<i64>; 3]) -> Result<(), RecordError> {
        into.iter_mut().for_each(|column| column.clear());
        match self {
            Echoes::None => Ok(()),
            Echoes::Stream(stream) => stream.join(slots, into),
            Echoes::Table { wanted, times } => {
                for ((into, from), _) in into.into_iter().zip(times).zip(wanted).filter(|(_, wanted)| **wanted) {
                    let of = |s: &u64| from.get(counter_of(*s) as usize).copied().unwrap_or(NO_TIME);
                    into.extend(slots.iter().map(of));
                }
                Ok(())
            }
        }
    }
}

/// Whether every row group begins after the one before ends, in one stream.
fn in_order(segments: &[PathBuf]) -> Result<bool, RecordError> {
    let mut last: Option<u64> = None;
    for path in segments {
        let Some(ranges) = seq_ranges(path)? else { return Ok(false) };
        for (low, high) in ranges {
            if low > high || last.is_some_and(|last| low < last || low >> COUNTER_BITS != last >> COUNTER_BITS) {
                return Ok(false);
            }
            last = Some(high);
        }
    }
    Ok(true)
}

fn table(segments: &[PathBuf], columns: &[&'static str], wanted: [bool; 3]) -> Result<Echoes, RecordError> {
    let mut times = EchoColumns::default();
    for path in segments {
        for rows in open(path, columns)? {
            let rows = rows.map_err(|e| RecordError::damaged(path, e))?;
            let seq = sequence(&rows, path)?;
            let top = seq.iter().map(|s| counter_of(*s)).max().map_or(0, |s| s as usize + 1);
            // A damaged sequence number must not ask for all the memory of the machine.
            if top > (1 << 33) {
                return Err(RecordError::damaged(path, format!("sequence number {top} is beyond any trial")));
            }
            let mut decoded = Vec::new();
            for column in (0..3).filter(|c| wanted[*c]) {
                let times = &mut times[column];
                if times.len() < top {
                    times.resize(top, NO_TIME);
                }
                copy_times(&rows, ECHO_TIMES[column], &mut decoded, path)?;
                for (s, t) in seq.iter().zip(&decoded) {
                    let slot = &mut times[counter_of(*s) as usize];
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
    wanted: [bool; 3],
    path: PathBuf,
    reader: Option<ParquetRecordBatchReader>,
    seq: Vec<u64>,
    times: EchoColumns,
    /// First row of the batch that no slot has passed yet.
    at: usize,
    /// Slot counter of the last row read.
    last: u64,
}

impl EchoStream {
    fn join(&mut self, slots: &[u64], into: [&mut Vec<i64>; 3]) -> Result<(), RecordError> {
        let [first, second, third] = into;
        let mut into = [first, second, third];
        for (column, wanted) in into.iter_mut().zip(self.wanted) {
            column.resize(if wanted { slots.len() } else { 0 }, NO_TIME);
        }
        let mut slot = 0;
        while slot < slots.len() {
            if self.at == self.seq.len() && !self.next_batch()? {
                break;
            }
            // The usual case, nothing lost and nothing doubled: runs of equal numbers are copied as they are.
            let run = slots[slot..].iter().zip(&self.seq[self.at..]).take_while(|(a, b)| same(**a, **b)).count();
            if run > 0 {
                for column in (0..3).filter(|c| self.wanted[*c]) {
                    into[column][slot..slot + run].copy_from_slice(&self.times[column][self.at..self.at + run]);
                }
                slot += run;
                self.at += run;
            } else if counter_of(self.seq[self.at]) < counter_of(slots[slot]) {
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
            let counter = counter_of(*seq);
            if counter < self.last {
                return Err(RecordError::damaged(&self.path, "rows are not in the order of `seq`"));
            }
            self.last = counter;
        }
        for column in (0..3).filter(|c| self.wanted[*c]) {
            copy_times(rows, ECHO_TIMES[column], &mut self.times[column], &self.path)?;
        }
        self.at = 0;
        Ok(())
    }
}

fn same(a: u64, b: u64) -> bool {
    counter_of(a) == counter_of(b)
}
