//! Shared-memory cells turned into rows: the one place where a slot's outcome is decided.

use std::sync::atomic::Ordering::Relaxed;
use tailbound_model::*;

/// What turns the cells of one trial into rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotClock {
    /// Stream number, the upper 16 bits of every sequence number.
    pub stream: u16,
    /// Monotonic time of slot 0.
    pub t0_ns: i64,
    /// Period; `None` = stop-and-wait.
    pub period_ns: Option<i64>,
    /// Slots of the warm-up.
    pub warm_up: u64,
    /// Answers later than this after send-begin are `after_timeout`.
    pub timeout_ns: i64,
}

fn time(value: i64) -> i64 {
    if value == 0 { NO_TIME } else { value }
}

/// Rows of sender cells, in slot order.
pub struct SenderCells<'a> {
    cells: &'a [SenderCell],
    first: u64,
    clock: SlotClock,
    convert: &'a dyn Fn(i64) -> i64,
}

impl<'a> SenderCells<'a> {
    /// `cells[0]` is slot `first`; `convert` turns a CLOCK_REALTIME stamp into monotonic time.
    pub fn new(cells: &'a [SenderCell], first: u64, clock: SlotClock, convert: &'a dyn Fn(i64) -> i64) -> Self {
        SenderCells { cells, first, clock, convert }
    }

    /// The rows.
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
                out_of_order: flags & CELL_OUT_OF_ORDER != 0,
                warm_up: slot < c.warm_up,
            }
        })
    }
}

/// Rows of echo cells.
pub struct EchoCells;

impl EchoCells {
    /// The complete rows among `cells`, sorted by sequence number and arrival.
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
                })
            })
            .collect();
        if !rows.is_sorted_by_key(|r| (r.seq, r.in_ns)) {
            rows.sort_unstable_by_key(|r| (r.seq, r.in_ns));
        }
        rows
    }
}
