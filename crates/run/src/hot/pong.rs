//! The pong end: sends back what arrives.

use super::{Arrival, Clock, Header, Port, Ring, Sink};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tailbound_model::EchoCell;

/// The pong end of one trial.
pub struct Pong<C> {
    /// Its clock.
    pub clock: C,
    /// The writer of answers.
    pub writer: Port,
    /// One cell per message received, or a ring of them.
    pub cells: Ring<EchoCell>,
    /// First page of the sample memory.
    pub header: &'static Header,
}

impl<C: Clock> Sink for Pong<C> {
    #[inline]
    fn now(&self) -> i64 {
        self.clock.now()
    }

    /// A message is here: answer it, then write the row.
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
        if sent.is_ok() {
            cell.begin_ns.store(begin, Relaxed);
            cell.end_ns.store(end, Relaxed);
        }
        // Last: a row without it is not complete.
        cell.seq_plus_one.store(arrival.seq.wrapping_add(1), Release);
    }
}
