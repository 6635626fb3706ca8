//! Slots of a trial in batches, joined with what the pong side saw.

use crate::check::follows;
use crate::columns::{copy_counts, copy_flags, copy_outcomes, copy_times, has_values, open, sequence};
use crate::echoes::Echoes;
use crate::metrics::columns_of;
use crate::segment::{ECHO_TIMES, SLOT_TIMES};
use crate::{Record, RecordError};
use arrow_array::RecordBatch;
use std::collections::BTreeSet;
use std::path::Path;
use tailbound_model::{Metric, NO_TIME};

/// Consecutive slots of one trial, joined with what the pong side saw, column by column.
///
/// Times are monotonic ns, [`NO_TIME`] where there is none. A column that was not asked for is empty.
#[derive(Debug, Default)]
#[allow(missing_docs)] // the columns are those of `SenderRow` and `EchoRow`
pub struct SlotBatch {
    pub seq: Vec<u64>,
    pub intended_ns: Vec<i64>,
    pub wake_ns: Vec<i64>,
    pub previous_wake_ns: Vec<i64>,
    pub send_begin_ns: Vec<i64>,
    pub send_end_ns: Vec<i64>,
    pub receive_ns: Vec<i64>,
    pub kernel_rx_ns: Vec<i64>,
    /// `Outcome as u8`.
    pub outcome: Vec<u8>,
    pub duplicates: Vec<u32>,
    pub out_of_order: Vec<bool>,
    pub warm_up: Vec<bool>,
    pub echo_in_ns: Vec<i64>,
    pub echo_begin_ns: Vec<i64>,
    pub echo_end_ns: Vec<i64>,
    pub echo_kernel_rx_ns: Vec<i64>,
}

impl SlotBatch {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.outcome.len()
    }
    /// No rows.
    pub fn is_empty(&self) -> bool {
        self.outcome.is_empty()
    }

    fn time_column(&mut self, name: &str) -> &mut Vec<i64> {
        match name {
            "intended_ns" => &mut self.intended_ns,
            "wake_ns" => &mut self.wake_ns,
            "send_begin_ns" => &mut self.send_begin_ns,
            "send_end_ns" => &mut self.send_end_ns,
            "receive_ns" => &mut self.receive_ns,
            _ => &mut self.kernel_rx_ns,
        }
    }
}

/// Which columns to read. Outcome and warm-up mark are always read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    times: BTreeSet<&'static str>,
    echoes: BTreeSet<&'static str>,
    seq: bool,
    counts: bool,
    within: Option<(i64, i64)>,
}

impl Columns {
    /// Every column.
    pub fn all() -> Columns {
        Columns {
            times: BTreeSet::from(SLOT_TIMES),
            echoes: BTreeSet::from(ECHO_TIMES),
            seq: true,
            counts: true,
            within: None,
        }
    }

    /// What these metrics are made of.
    pub fn of(metrics: &[Metric]) -> Columns {
        Columns {
            times: metrics.iter().flat_map(|m| columns_of(*m).0).copied().collect(),
            echoes: metrics.iter().flat_map(|m| columns_of(*m).1).copied().collect(),
            ..Columns::default()
        }
    }

    /// What two clocks prove of each other: when a message was sent and came, and when its answer was begun and came.
    pub fn of_clocks() -> Columns {
        Columns {
            times: BTreeSet::from(["send_begin_ns", "receive_ns"]),
            echoes: BTreeSet::from(["in_ns", "begin_ns"]),
            ..Columns::default()
        }
    }

    /// The same with sequence numbers.
    pub fn with_seq(mut self) -> Columns {
        self.seq = true;
        self
    }

    /// The same with duplicates and overtaken answers.
    pub fn with_counts(mut self) -> Columns {
        self.counts = true;
        self
    }

    /// The same with slots that were due (stop-and-wait: whose sending began) before `from_ns`, or at `to_ns` or later,
    /// marked as those of a warm-up: nothing counts them.
    pub fn within(mut self, from_ns: i64, to_ns: i64) -> Columns {
        self.times.extend(["intended_ns", "send_begin_ns"]);
        self.within = Some((from_ns, to_ns));
        self
    }

    fn names(&self) -> Vec<&'static str> {
        let mut names = vec!["outcome", "warm_up"];
        names.extend(&self.times);
        if self.seq || !self.echoes.is_empty() {
            names.push("seq");
        }
        if self.counts {
            names.extend(["duplicates", "out_of_order"]);
        }
        names
    }
}

impl Record {
    /// Whether some row of the trial has a receive stamp of the kernel, as the ends of its segments tell.
    ///
    /// # Errors
    /// A segment is damaged.
    pub fn has_kernel_stamps(&self, trial: usize) -> Result<bool, RecordError> {
        for path in ["ping", "pong"].iter().flat_map(|end| self.segments(trial, end)) {
            if has_values(&path, "kernel_rx_ns")? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Hands all slots of a trial to `each`, in slot order, in batches joined with the pong side.
    ///
    /// # Errors
    /// A segment is damaged, or a slot is missing or there twice.
    pub fn slots(&self, trial: usize, each: &mut dyn FnMut(&SlotBatch)) -> Result<(), RecordError> {
        self.scan(trial, &Columns::all(), each)
    }

    /// As [`Record::slots`], reading some columns only: decoding is most of the cost of a pass.
    ///
    /// # Errors
    /// A segment is damaged; where sequence numbers are read, also a slot that is missing or there twice.
    pub fn scan(&self, trial: usize, columns: &Columns, each: &mut dyn FnMut(&SlotBatch)) -> Result<(), RecordError> {
        self.scan_end(trial, "pong", columns, each)
    }

    /// As [`Record::scan`], joined with what another end received.
    ///
    /// # Errors
    /// The same.
    pub fn scan_end(
        &self,
        trial: usize,
        end: &str,
        columns: &Columns,
        each: &mut dyn FnMut(&SlotBatch),
    ) -> Result<(), RecordError> {
        let wanted = ECHO_TIMES.map(|name| columns.echoes.contains(name));
        let segments = self.segments(trial, "ping");
        let mut echoes = Echoes::open(self.segments(trial, end), &segments, wanted)?;
        let names = columns.names();
        let mut batch = SlotBatch::default();
        let mut last_wake = NO_TIME;
        let mut next = 0;
        for path in segments {
            for rows in open(&path, &names)? {
                let rows = rows.map_err(|e| RecordError::damaged(&path, e))?;
                fill(&mut batch, &rows, &names, &path)?;
                if let Some(span) = columns.within {
                    leave_out(&mut batch, span);
                }
                consecutive(&batch.seq, &mut next, &path)?;
                let SlotBatch { seq, echo_in_ns, echo_begin_ns, echo_end_ns, echo_kernel_rx_ns, .. } = &mut batch;
                echoes.join(seq, [echo_in_ns, echo_begin_ns, echo_end_ns, echo_kernel_rx_ns])?;
                previous_wakes(&mut batch, &mut last_wake);
                each(&batch);
            }
        }
        Ok(())
    }
}

fn fill(batch: &mut SlotBatch, rows: &RecordBatch, names: &[&str], path: &Path) -> Result<(), RecordError> {
    for name in names {
        match *name {
            "seq" => {
                batch.seq.clear();
                batch.seq.extend_from_slice(sequence(rows, path)?);
            }
            "outcome" => copy_outcomes(rows, &mut batch.outcome, path)?,
            "duplicates" => copy_counts(rows, name, &mut batch.duplicates, path)?,
            "out_of_order" => copy_flags(rows, name, &mut batch.out_of_order, path)?,
            "warm_up" => copy_flags(rows, name, &mut batch.warm_up, path)?,
            time => copy_times(rows, time, batch.time_column(time), path)?,
        }
    }
    Ok(())
}

fn leave_out(batch: &mut SlotBatch, (from_ns, to_ns): (i64, i64)) {
    for (i, warm_up) in batch.warm_up.iter_mut().enumerate() {
        let time = if batch.intended_ns[i] != NO_TIME { batch.intended_ns[i] } else { batch.send_begin_ns[i] };
        *warm_up |= time == NO_TIME || !(from_ns..to_ns).contains(&time);
    }
}

/// Looks at sequence numbers, if they were read.
fn consecutive(seq: &[u64], next: &mut u64, path: &Path) -> Result<(), RecordError> {
    if let Some((found, due)) = seq.iter().zip(*next..).find(|(found, due)| *found != due) {
        return follows(due, *found, path);
    }
    *next += seq.len() as u64;
    Ok(())
}

fn previous_wakes(batch: &mut SlotBatch, last_wake: &mut i64) {
    let SlotBatch { wake_ns, previous_wake_ns, .. } = batch;
    previous_wake_ns.clear();
    if let Some((last, before)) = wake_ns.split_last() {
        previous_wake_ns.push(*last_wake);
        previous_wake_ns.extend_from_slice(before);
        *last_wake = *last;
    }
}
