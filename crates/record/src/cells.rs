//! Turns the cells in shared memory into rows of samples. Only this module decides the outcome of a slot.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use tailbound_model::*;

/// Times and limits of one trial that are needed to turn its shared-memory cells into rows of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotClock {
    /// Stream number, the upper 16 bits of every sequence number.
    pub stream: u16,
    /// Monotonic time at which slot 0 of the trial was due, ns.
    pub t0_ns: i64,
    /// Period between two slots of the trial, in ns; `None` means stop-and-wait.
    pub period_ns: Option<i64>,
    /// Number of warm-up slots at the beginning of the trial.
    pub warm_up: u64,
    /// Timeout in ns: if an answer arrives later than this after the start of the send call, the outcome of its slot is
    /// `after_timeout`.
    pub timeout_ns: i64,
}

fn time(value: i64) -> i64 {
    if value == 0 { NO_TIME } else { value }
}

/// Id of a thread in a cell; `None` if the cell has none.
fn thread(id: &AtomicU64) -> Option<u32> {
    u32::try_from(id.load(Relaxed)).ok().filter(|id| *id > 0)
}

/// Shared-memory cells of the sender, in slot order, that are turned into rows of samples.
pub struct SenderCells<'a> {
    cells: &'a [SenderCell],
    first: u64,
    clock: SlotClock,
    convert: &'a dyn Fn(i64) -> i64,
}

impl<'a> SenderCells<'a> {
    /// Takes the cells of sample memory of consecutive slots: `cells[0]` belongs to the slot number `first`. The
    /// function `convert` turns a CLOCK_REALTIME timestamp into monotonic time.
    pub fn new(cells: &'a [SenderCell], first: u64, clock: SlotClock, convert: &'a dyn Fn(i64) -> i64) -> Self {
        SenderCells { cells, first, clock, convert }
    }

    /// Turns the sender's cells into rows of samples, one row per slot.
    pub fn rows(&self) -> impl Iterator<Item = SenderRow> {
        let c = self.clock;
        self.cells.iter().zip(self.first..).map(move |(cell, slot)| {
            let send_begin = time(cell.send_begin_ns.load(Relaxed));
            let receive = time(cell.receive_ns.load(Relaxed));
            let flags = cell.flags.load(Relaxed);
            let kernel = cell.kernel_rx_ns.load(Relaxed);
            let outcome = if receive != NO_TIME {
                if receive - send_begin > c.timeout_ns { Outcome::AfterTimeout } else { Outcome::Answered }
            } else if send_begin == NO_TIME || flags & (CELL_SKIPPED | CELL_SEND_FAILED) != 0 {
                Outcome::NotSent
            } else {
                Outcome::Lost
            };
            SenderRow {
                seq: (u64::from(c.stream) << COUNTER_BITS) | slot,
                intended_ns: c.period_ns.map_or(NO_TIME, |p| c.t0_ns + slot as i64 * p),
                wake_ns: time(cell.wake_ns.load(Relaxed)),
                send_begin_ns: send_begin,
                send_end_ns: time(cell.send_end_ns.load(Relaxed)),
                receive_ns: receive,
                kernel_rx_ns: if kernel == 0 { NO_TIME } else { (self.convert)(kernel) },
                outcome,
                duplicates: cell.answers.load(Relaxed).saturating_sub(1),
                receive_thread: thread(&cell.receive_thread),
                out_of_order: flags & CELL_OUT_OF_ORDER != 0,
                warm_up: slot < c.warm_up,
            }
        })
    }
}

/// Conversion of the pong side's shared-memory cells (echo cells) into rows of samples.
pub struct EchoCells;

impl EchoCells {
    /// Turns the complete echo cells (messages that the pong side received) into rows of samples, sorted by sequence
    /// number and then by arrival time.
    pub fn rows(cells: &[EchoCell], convert: &dyn Fn(i64) -> i64) -> Vec<EchoRow> {
        let mut rows: Vec<EchoRow> = cells
            .iter()
            .filter_map(|cell| {
                let seq = cell.seq_plus_one.load(std::sync::atomic::Ordering::Acquire).checked_sub(1)?;
                let kernel = cell.kernel_rx_ns.load(Relaxed);
                Some(EchoRow {
                    seq,
                    in_ns: time(cell.in_ns.load(Relaxed)),
                    begin_ns: time(cell.begin_ns.load(Relaxed)),
                    end_ns: time(cell.end_ns.load(Relaxed)),
                    kernel_rx_ns: if kernel == 0 { NO_TIME } else { convert(kernel) },
                    in_thread: thread(&cell.in_thread),
                })
            })
            .collect();
        if !rows.is_sorted_by_key(|r| (r.seq, r.in_ns)) {
            rows.sort_unstable_by_key(|r| (r.seq, r.in_ns));
        }
        rows
    }
}
