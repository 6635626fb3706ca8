//! A subscriber of a flow: counts the messages that arrive, answers the pings among them, and writes rows of samples if
//! the study asks for them.

use super::memory::SecondCell;
use super::{CounterStatus, FlowCells, Received, add, cpu_ns, parts_of};
use crate::hot::{Arrival, Clock, Header, Port, Ring, Sink};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};
use tailbound_model::{EchoCell, FlowPart};

/// One subscriber of a flow in one trial.
pub struct Subscriber<C> {
    /// Clock by which the subscriber takes its timestamps.
    pub clock: C,
    /// Writer of the answers. Only the first subscriber of a flow may have a writer.
    pub writer: Option<Port>,
    /// Message counts of the subscriber, in shared memory.
    pub counts: FlowCells,
    /// Cells of the sample memory: one cell for each row of samples, in the order in which the messages arrive.
    pub rows: Ring<EchoCell>,
    /// Header on the first page of the subscriber's sample memory.
    pub header: &'static Header,
    /// Distance between messages that have rows of samples: one in this number of messages of the first publisher has a
    /// row; 0 = no message has a row.
    pub row_every: u64,
    /// Message counters that were received from each publisher.
    pub received: Box<[Received]>,
    /// The latest part of the flow from which a message has arrived.
    pub part: AtomicU64,
}

const PARTS: [FlowPart; 3] = [FlowPart::RampUp, FlowPart::Window, FlowPart::Drain];

impl<C: Clock> Sink for Subscriber<C> {
    #[inline]
    fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Processes a received message: answers the message if it is a ping, and counts it.
    #[inline]
    fn process(&self, arrival: &Arrival<'_>) {
        let (publisher, number, counter) = parts_of(arrival.seq);
        let totals = self.counts.totals;
        let (Some(part), Some(received)) = (PARTS.get(number as usize).copied(), self.received.get(publisher)) else {
            add(&totals.foreign, 1);
            return;
        };
        if number > self.part.load(Relaxed) {
            self.enter(number);
        }
        let second = self.counts.second(arrival.received_ns);
        if received.record_next(counter) {
            add(&totals.next, 1);
        } else if !self.not_next(received.record(counter), part, second) {
            return;
        }
        if part != FlowPart::Drain && self.row_every > 0 && publisher == 0 && counter % self.row_every == 0 {
            self.row(counter / self.row_every, arrival);
        }
        let (cells, bytes) = (self.counts.part(part), arrival.payload.len() as u64);
        if cells.messages.load(Relaxed) == 0 {
            cells.first.store(counter, Relaxed);
            cells.first_ns.store(arrival.received_ns, Relaxed);
        }
        add(&cells.messages, 1);
        add(&cells.bytes, bytes);
        cells.last_ns.store(arrival.received_ns, Relaxed);
        add(&second.messages, 1);
        add(&second.bytes, bytes);
    }
}

impl<C: Clock> Subscriber<C> {
    /// Reads the CPU time when the first message of a later part of the flow arrives.
    #[cold]
    fn enter(&self, part: u64) {
        let cpu_ns = cpu_ns();
        for cells in &self.counts.totals.parts[self.part.load(Relaxed) as usize + 1..=part as usize] {
            cells.cpu_began_ns.store(cpu_ns, Relaxed);
        }
        self.part.store(part, Relaxed);
    }

    /// Counts what is unusual about a message whose counter is not the next one. Returns whether the message itself is
    /// counted, too: duplicates and stale messages are not.
    #[cold]
    fn not_next(&self, status: CounterStatus, part: FlowPart, second: &SecondCell) -> bool {
        let (totals, in_window) = (self.counts.totals, u64::from(part == FlowPart::Window));
        match status {
            CounterStatus::Next { missing } => {
                add(&totals.next, missing + 1);
                add(&totals.missing, missing);
                add(&second.missing, missing);
            }
            CounterStatus::OutOfOrder => {
                totals.missing.store(totals.missing.load(Relaxed).wrapping_sub(1), Relaxed);
                add(&totals.out_of_order, in_window);
                add(&second.out_of_order, 1);
            }
            CounterStatus::Duplicate => {
                add(&totals.duplicates, in_window);
                add(&second.duplicates, 1);
                return false;
            }
            CounterStatus::Stale => {
                add(&totals.stale, 1);
                return false;
            }
        }
        true
    }

    /// Prepares the subscriber for a trial: stores the present second of the clock as the first second that is counted.
    pub fn begin(&self) {
        self.counts.totals.first_second.store(self.clock.now() / 1_000_000_000, Relaxed);
    }

    /// Stores the CPU time of the measuring process after the trial.
    pub fn end(&self) {
        self.counts.totals.cpu_ended_ns.store(cpu_ns(), Relaxed);
    }

    #[inline]
    fn row(&self, number: u64, arrival: &Arrival<'_>) {
        let answered = self.writer.map(|writer| {
            let begin = self.clock.now();
            let sent = writer.send(arrival.seq, arrival.payload);
            (sent, begin, self.clock.now())
        });
        if let Some((Err(code), ..)) = answered {
            add(&self.header.refused, 1);
            self.header.refusal.store(i64::from(code.0), Relaxed);
        }
        let row = self.header.rows.load(Relaxed);
        let Some(cell) = self.rows.get(row) else {
            add(&self.header.dropped, 1);
            return;
        };
        self.header.rows.store(row + 1, Relaxed);
        cell.in_ns.store(arrival.received_ns, Relaxed);
        cell.kernel_rx_ns.store(arrival.kernel_rx_ns, Relaxed);
        cell.in_thread.store(arrival.thread, Relaxed);
        if let Some((Ok(()), begin, end)) = answered {
            cell.begin_ns.store(begin, Relaxed);
            cell.end_ns.store(end, Relaxed);
        }
        // The sequence number is written last: while it is missing, the row is not complete.
        cell.seq_plus_one.store(number + 1, Release);
    }
}
