//! The pong end of a trial: sends each received message back.

use super::{Arrival, Clock, Header, Port, Ring, Sink};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tailbound_model::EchoCell;

/// The pong end of one trial, which receives messages and answers them.
pub struct Pong<C> {
    /// Clock by which the pong end takes its timestamps.
    pub clock: C,
    /// Writer with which the pong end sends its answers.
    pub writer: Port,
    /// Cells of the sample memory: one cell for each received message, or a ring of cells.
    pub cells: Ring<EchoCell>,
    /// Header on the first page of the pong end's sample memory.
    pub header: &'static Header,
}

impl<C: Clock> Sink for Pong<C> {
    #[inline]
    fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Processes a received message: answers it, then writes its row of samples.
    #[inline]
    fn process(&self, arrival: &Arrival<'_>) {
        let begin = self.clock.now();
        let sent = self.writer.send(arrival.seq, arrival.payload);
        let end = self.clock.now();
        if let Err(code) = sent {
            self.header.refused.store(self.header.refused.load(Relaxed) + 1, Relaxed);
            self.header.refusal.store(i64::from(code.0), Relaxed);
        }
        // Only the processing thread counts rows.
        let row = self.header.rows.load(Relaxed);
        let room = self.header.drained.stored.load(Acquire) + self.cells.len();
        let Some(cell) = self.cells.get(row).filter(|_| row < room) else {
            self.header.dropped.fetch_add(1, Relaxed);
            return;
        };
        self.header.rows.store(row + 1, Relaxed);
        cell.in_ns.store(arrival.received_ns, Relaxed);
        cell.kernel_rx_ns.store(arrival.kernel_rx_ns, Relaxed);
        cell.in_thread.store(arrival.thread, Relaxed);
        if sent.is_ok() {
            cell.begin_ns.store(begin, Relaxed);
            cell.end_ns.store(end, Relaxed);
        }
        // The sequence number is written last: while it is missing, the row is not complete.
        cell.seq_plus_one.store(arrival.seq.wrapping_add(1), Release);
    }
}
