//! The publisher of a flow: sends messages at a fixed rate, or as fast as the back-pressure of the driver permits.

use super::{FlowCells, add, add_ns, cpu_ns, seq_of};
use crate::hot::{Arrival, Clock, Header, Hook, NoHook, Port, Ring, Sink};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tailbound_model::{CELL_OUT_OF_ORDER, CELL_SEND_FAILED, COUNTER_BITS, FlowPart, SenderCell};

/// Duration from which on a send call counts as slow, ns. A refused send call always counts as slow.
pub(crate) const SLOW_CALL_NS: i64 = 100_000;

/// Index of a publisher of a flow, and the times at which it sends.
#[derive(Debug, Clone, Copy)]
pub struct FlowPace {
    /// Index of the publisher in its flow, from 0.
    pub publisher: u8,
    /// Period between messages, ns: message k is due at t0 + k x period. `None` = the next
    /// message is sent as soon as a send call has returned.
    pub period_ns: Option<i64>,
    /// Durations of ramp-up, window and drain of the flow, ns.
    pub parts_ns: [i64; 3],
    /// Distance between messages that have rows of samples: one in this number of messages has a row; 0 = no message
    /// has a row.
    pub row_every: u64,
    /// True if the driver may keep a message until it sends several messages together.
    pub batching: bool,
}

/// One publisher of a flow in one trial.
pub struct Publisher<C, H = NoHook> {
    /// Clock by which the publisher sends.
    pub clock: C,
    /// Hook in the publisher's send loop, which only tests use.
    pub hook: H,
    /// Writer that sends the messages of the flow.
    pub writer: Port,
    /// Message counts of the publisher, in shared memory.
    pub counts: FlowCells,
    /// Cells of the sample memory: one cell for each message that has a row of samples.
    pub rows: Ring<SenderCell>,
    /// Header on the first page of the publisher's sample memory.
    pub header: &'static Header,
    /// Payload bytes of every message that the publisher sends.
    pub payload: Box<[u8]>,
    /// Index of this publisher in its flow, and the times at which it sends.
    pub pace: FlowPace,
    /// Number of messages with a row of samples that were answered so far.
    pub answered: AtomicU64,
    /// Highest number of a row of samples whose message was answered so far, plus one.
    pub highest: AtomicU64,
}

impl<C: Clock, H: Hook> Publisher<C, H> {
    /// Sends the whole flow on the calling thread. Returns the number of messages that have a row of samples.
    pub fn run(&self, t0_ns: i64) -> u64 {
        let [ramp_up, window, drain] = self.pace.parts_ns;
        let ends = [t0_ns + ramp_up, t0_ns + ramp_up + window, t0_ns + ramp_up + window + drain];
        self.header.t0_ns.store(t0_ns, Release);
        self.counts.totals.first_second.store(t0_ns / 1_000_000_000, Relaxed);
        let (mut counter, mut next_row, mut rows) = (0, if self.pace.row_every == 0 { u64::MAX } else { 0 }, 0);
        self.clock.sleep_until(t0_ns);
        let mut now = self.clock.now();
        for (part, end_ns) in [FlowPart::RampUp, FlowPart::Window, FlowPart::Drain].into_iter().zip(ends) {
            let cells = self.counts.part(part);
            cells.first.store(counter, Relaxed);
            if part != FlowPart::RampUp {
                cells.cpu_began_ns.store(cpu_ns(), Relaxed);
                now = self.clock.now();
            }
            if part == FlowPart::Drain {
                next_row = u64::MAX;
            }
            loop {
                // At a fixed rate, a message belongs to the part in which it was due, so that the number of messages in
                // a part does not depend on the speed of the sender.
                let at = match self.pace.period_ns {
                    None => now,
                    Some(period_ns) => {
                        let due = t0_ns + counter as i64 * period_ns;
                        if now < due && due < end_ns {
                            self.clock.sleep_until(due);
                            now = self.clock.now();
                        }
                        due
                    }
                };
                if at >= end_ns {
                    break;
                }
                self.hook.slot(counter);
                let row = if counter == next_row { self.rows.get(rows) } else { None };
                let mut begin = now;
                if let Some(cell) = row {
                    cell.wake_ns.store(now, Relaxed);
                    begin = self.clock.now();
                    // Before the call: the answer may be taken by another thread before `send` returns.
                    cell.send_begin_ns.store(begin, Release);
                }
                let sent = self.send(seq_of(self.pace.publisher, part, counter));
                now = self.clock.now();
                let on = sent.is_ok() || self.pace.period_ns.is_some();
                if let Some(cell) = row {
                    cell.send_end_ns.store(now, Relaxed);
                    // The flags are not overwritten: the thread that takes answers may have set a flag already.
                    match sent {
                        Ok(()) => cell.flags.fetch_and(!CELL_SEND_FAILED, Relaxed),
                        Err(_) => cell.flags.fetch_or(CELL_SEND_FAILED, Relaxed),
                    };
                }
                if on && counter == next_row {
                    (rows, next_row) = (rows + 1, next_row + self.pace.row_every);
                }
                self.count(part, (begin, now), sent.map_err(|code| code.0));
                counter += u64::from(on);
            }
        }
        let totals = self.counts.totals;
        totals.next.store(counter, Relaxed);
        totals.cpu_ended_ns.store(cpu_ns(), Relaxed);
        self.header.dropped.store(rows.saturating_sub(self.rows.len()), Relaxed);
        rows.min(self.rows.len())
    }

    #[inline]
    fn send(&self, seq: u64) -> Result<(), tailbound_driver::Code> {
        if self.pace.batching {
            self.writer.send_batched(seq, &self.payload)
        } else {
            self.writer.send(seq, &self.payload)
        }
    }

    #[inline]
    fn count(&self, part: FlowPart, (begin, end): (i64, i64), sent: Result<(), i32>) {
        let (totals, cells, second) = (self.counts.totals, self.counts.part(part), self.counts.second(end));
        let (taken, bytes) = (end - begin, self.payload.len() as u64);
        if sent.is_ok() {
            if cells.messages.load(Relaxed) == 0 {
                cells.first_ns.store(begin, Relaxed);
            }
            add(&cells.messages, 1);
            add(&cells.bytes, bytes);
            cells.last_ns.store(end, Relaxed);
            add(&second.messages, 1);
            add(&second.bytes, bytes);
        }
        if part == FlowPart::Window {
            add_ns(&totals.send_ns, taken);
        }
        if taken >= SLOW_CALL_NS || sent.is_err() {
            add_ns(&second.blocked_ns, taken);
            if part == FlowPart::Window {
                add_ns(&totals.blocked_ns, taken);
                totals.longest_ns.store(totals.longest_ns.load(Relaxed).max(taken), Relaxed);
            }
        }
        if let Err(code) = sent {
            add(&totals.refused_in_all, 1);
            add(&totals.refused, u64::from(part == FlowPart::Window));
            totals.refusal.store(i64::from(code), Relaxed);
        }
    }

    /// Waits until all messages with a row of samples are answered, but at most `timeout_ns`.
    pub fn await_answers(&self, rows: u64, timeout_ns: i64) {
        let give_up = self.clock.now() + timeout_ns;
        while self.answered.load(Relaxed) < rows && self.clock.now() < give_up {
            self.clock.sleep_until(self.clock.now() + 5_000_000);
        }
    }
}

/// Processes the answers to those messages of a flow that a subscriber answers.
impl<C: Clock, H: Hook> Sink for Publisher<C, H> {
    #[inline]
    fn now(&self) -> i64 {
        self.clock.now()
    }

    #[inline]
    fn process(&self, arrival: &Arrival<'_>) {
        let counter = arrival.seq & ((1 << COUNTER_BITS) - 1);
        let row = counter.checked_div(self.pace.row_every).filter(|_| counter.is_multiple_of(self.pace.row_every));
        let sent = |cell: &&SenderCell| cell.send_begin_ns.load(Acquire) != 0;
        let Some((row, cell)) = row.and_then(|row| Some((row, self.rows.get(row).filter(sent)?))) else {
            add(&self.counts.totals.foreign, 1);
            return;
        };
        // Only the receiving thread writes the number of answers.
        let answers = cell.answers.load(Relaxed);
        cell.answers.store(answers + 1, Relaxed);
        if answers > 0 {
            return;
        }
        cell.receive_ns.store(arrival.received_ns, Relaxed);
        cell.kernel_rx_ns.store(arrival.kernel_rx_ns, Relaxed);
        cell.receive_thread.store(arrival.thread, Relaxed);
        if row < self.highest.load(Relaxed) {
            cell.flags.fetch_or(CELL_OUT_OF_ORDER, Relaxed);
        } else {
            self.highest.store(row + 1, Relaxed);
        }
        add(&self.answered, 1);
    }
}
