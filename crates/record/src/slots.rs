//! Reads the slots of a trial in batches, joined with the rows of samples of the pong side.

use crate::check::follows;
use crate::columns::{Rows, columns_of, has_values, open};
use crate::echoes::Echoes;
use crate::segment::{ECHO_NUMBERS, SLOT_NUMBERS};
use crate::{Record, RecordError};
use std::collections::BTreeSet;
use std::path::Path;
use tailbound_model::{Metric, NO_TIME};

/// Consecutive slots of one trial, joined with the rows of samples of the pong side, column by column.
///
/// Times are monotonic ns, or [`NO_TIME`] if a slot has no such time. A column that was not requested is empty.
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
    /// Ids of threads; [`NO_TIME`] if there is none.
    pub receive_thread: Vec<i64>,
    /// Outcome of each slot, as `Outcome as u8`.
    pub outcome: Vec<u8>,
    pub duplicates: Vec<u32>,
    pub out_of_order: Vec<bool>,
    pub warm_up: Vec<bool>,
    pub echo_in_ns: Vec<i64>,
    pub echo_begin_ns: Vec<i64>,
    pub echo_end_ns: Vec<i64>,
    pub echo_kernel_rx_ns: Vec<i64>,
    /// Ids of threads; [`NO_TIME`] if there is none.
    pub echo_in_thread: Vec<i64>,
}

impl SlotBatch {
    /// Number of slots in this batch of slots.
    pub fn len(&self) -> usize {
        self.outcome.len()
    }
    /// True if this batch of slots is empty.
    pub fn is_empty(&self) -> bool {
        self.outcome.is_empty()
    }

    /// For each message that was sent on the way out, or answer on the way back, and received: the index of its slot in this
    /// batch, the begin of the send call, and the receipt, each in the clock of its end, ns. The columns `echo_begin_ns` and
    /// the columns of the metrics out and back are needed.
    pub fn ways(&self, out: bool) -> impl Iterator<Item = (usize, i64, i64)> {
        let (sent, received) = match out {
            true => (&self.send_begin_ns, &self.echo_in_ns),
            false => (&self.echo_begin_ns, &self.receive_ns),
        };
        let all = sent.iter().copied().zip(received.iter().copied()).enumerate();
        let all = all.map(|(i, (sent_ns, received_ns))| (i, sent_ns, received_ns));
        all.filter(|(_, sent_ns, received_ns)| *sent_ns != NO_TIME && *received_ns != NO_TIME)
    }

    /// The earliest time at which the message of this slot, which the ping sent at `sent_ns`, could leave, in the clock of the ping,
    /// ns: not before `launch_ns` after it was due. `launch_ns`: time by which messages are due before their launch time lets them
    /// leave, ns; 0 without launch times.
    pub fn ready_ns(&self, slot: usize, sent_ns: i64, launch_ns: i64) -> i64 {
        match self.intended_ns[slot] {
            NO_TIME => sent_ns,
            due_ns => sent_ns.max(due_ns + launch_ns),
        }
    }

    fn number_column(&mut self, name: &str) -> &mut Vec<i64> {
        match name {
            "intended_ns" => &mut self.intended_ns,
            "wake_ns" => &mut self.wake_ns,
            "send_begin_ns" => &mut self.send_begin_ns,
            "send_end_ns" => &mut self.send_end_ns,
            "receive_ns" => &mut self.receive_ns,
            "receive_thread" => &mut self.receive_thread,
            _ => &mut self.kernel_rx_ns,
        }
    }
}

/// Selection of the columns of samples to read. The outcome and the warm-up mark of a slot are always read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    numbers: BTreeSet<&'static str>,
    echoes: BTreeSet<&'static str>,
    seq: bool,
    counts: bool,
    within: Option<(i64, i64)>,
}

impl Columns {
    /// Selects all columns of the samples for reading.
    pub fn all() -> Columns {
        Columns {
            numbers: BTreeSet::from(SLOT_NUMBERS),
            echoes: BTreeSet::from(ECHO_NUMBERS),
            seq: true,
            counts: true,
            within: None,
        }
    }

    /// Selects the columns of the samples from which the given metrics are computed.
    pub fn of(metrics: &[Metric]) -> Columns {
        Columns {
            numbers: metrics.iter().flat_map(|m| columns_of(*m).0).copied().collect(),
            echoes: metrics.iter().flat_map(|m| columns_of(*m).1).copied().collect(),
            ..Columns::default()
        }
    }

    /// Selects the columns from which bounds of the difference between two clocks are computed: the times at which a
    /// message was sent and received, and at which its answer was sent and received.
    pub fn of_clocks() -> Columns {
        Columns {
            numbers: BTreeSet::from(["send_begin_ns", "receive_ns"]),
            echoes: BTreeSet::from(["in_ns", "begin_ns"]),
            ..Columns::default()
        }
    }

    /// Adds the column with the sequence numbers to the selected columns of the samples.
    pub fn with_seq(mut self) -> Columns {
        self.seq = true;
        self
    }

    /// Adds the columns from which bounds of the difference between two clocks are computed.
    pub fn with_clocks(mut self) -> Columns {
        let Columns { numbers, echoes, .. } = Columns::of_clocks();
        self.numbers.extend(numbers);
        self.echoes.extend(echoes);
        self
    }

    /// Adds the column with the times at which the pong began to send its answers.
    pub fn with_echo_begin(mut self) -> Columns {
        self.echoes.insert("begin_ns");
        self
    }

    /// Adds the ids of the threads that received messages and answers; segments of earlier releases have none.
    pub fn with_threads(mut self) -> Columns {
        self.numbers.insert("receive_thread");
        self.echoes.insert("in_thread");
        self
    }

    /// Adds the counts of duplicates and of answers out of order to the selected columns.
    pub fn with_counts(mut self) -> Columns {
        self.counts = true;
        self
    }

    /// Limits the selection to a time range: a slot that was due before `from_ns`, or at `to_ns` or later, is marked as
    /// warm-up, so that no figure counts the slot. With stop-and-wait, the send time of the slot decides.
    pub fn within(mut self, from_ns: i64, to_ns: i64) -> Columns {
        self.numbers.extend(["intended_ns", "send_begin_ns"]);
        self.within = Some((from_ns, to_ns));
        self
    }

    fn names(&self) -> Vec<&'static str> {
        let mut names = vec!["outcome", "warm_up"];
        names.extend(&self.numbers);
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
    /// True if at least one row of samples of the trial has a receive timestamp of the kernel, according to the footers
    /// of the trial's segments.
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

    /// Passes all slots of a trial to `each`, in slot order, in batches that are joined with the samples of the pong
    /// side.
    ///
    /// # Errors
    /// A segment is damaged, or a slot is missing or present twice.
    pub fn slots(&self, trial: usize, each: &mut dyn FnMut(&SlotBatch)) -> Result<(), RecordError> {
        self.scan(trial, &Columns::all(), each)
    }

    /// Passes all slots of a trial to `each` as [`Record::slots`] does, but reads only the selected columns, because
    /// decoding takes most of the time.
    ///
    /// # Errors
    /// A segment is damaged; if sequence numbers are read, also if a slot is missing or present twice.
    pub fn scan(&self, trial: usize, columns: &Columns, each: &mut dyn FnMut(&SlotBatch)) -> Result<(), RecordError> {
        self.scan_end(trial, "pong", columns, each)
    }

    /// Passes all slots of a trial to `each` as [`Record::scan`] does, but joined with the messages that the end named
    /// `end` received.
    ///
    /// # Errors
    /// The errors of [`Record::scan`].
    pub fn scan_end(
        &self,
        trial: usize,
        end: &str,
        columns: &Columns,
        each: &mut dyn FnMut(&SlotBatch),
    ) -> Result<(), RecordError> {
        let wanted = ECHO_NUMBERS.map(|name| columns.echoes.contains(name));
        let segments = self.segments(trial, "ping");
        let mut echoes = Echoes::open(self.segments(trial, end), &segments, wanted)?;
        let names = columns.names();
        let mut batch = SlotBatch::default();
        let mut last_wake = NO_TIME;
        let mut next = 0;
        for path in segments {
            let mut rows = open(&path, &names)?;
            while rows.next_batch()? > 0 {
                fill(&mut batch, &mut rows, &names)?;
                if let Some(span) = columns.within {
                    leave_out(&mut batch, span);
                }
                consecutive(&batch.seq, &mut next, &path)?;
                let SlotBatch {
                    seq, echo_in_ns, echo_begin_ns, echo_end_ns, echo_kernel_rx_ns, echo_in_thread, ..
                } = &mut batch;
                echoes.join(seq, [echo_in_ns, echo_begin_ns, echo_end_ns, echo_kernel_rx_ns, echo_in_thread])?;
                previous_wakes(&mut batch, &mut last_wake);
                each(&batch);
            }
        }
        Ok(())
    }
}

fn fill(batch: &mut SlotBatch, rows: &mut Rows, names: &[&str]) -> Result<(), RecordError> {
    for name in names {
        match *name {
            "seq" => rows.sequence(&mut batch.seq)?,
            "outcome" => rows.outcomes(&mut batch.outcome)?,
            "duplicates" => rows.counts(name, &mut batch.duplicates)?,
            "out_of_order" => rows.flags(name, &mut batch.out_of_order)?,
            "warm_up" => rows.flags(name, &mut batch.warm_up)?,
            name => rows.numbers(name, batch.number_column(name))?,
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

/// Checks that the sequence numbers of a batch of slots are consecutive, if sequence numbers were read.
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
