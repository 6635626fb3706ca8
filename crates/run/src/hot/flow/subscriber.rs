//! A subscriber: counts what arrives, answers the pings among it, keeps rows where they are asked for.

use super::{FlowCells, Seen, Sight, add, cpu_ns, parts_of};
use crate::hot::{Arrival, Clock, Header, Port, Ring, Sink};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};
use tailbound_model::{EchoCell, FlowPart};

/// One subscriber of one trial.
pub struct Subscriber<C> {
    /// Its clock.
    pub clock: C,
    /// The writer of answers; only the first subscriber may have one.
    pub writer: Option<Port>,
    /// What it counts.
    pub counts: FlowCells,
    /// One cell per row, in the order of arrival.
    pub rows: Ring<EchoCell>,
    /// First page of the sample memory.
    pub header: &'static Header,
    /// One message of the first publisher in so many has a row; 0 = none.
    pub row_every: u64,
    /// What came of each publisher.
    pub seen: Box<[Seen]>,
    /// The latest part that something came of.
    pub part: AtomicU64,
}

const PARTS: [FlowPart; 3] = [FlowPart::RampUp, FlowPart::Window, FlowPart::Drain];

impl<C: Clock> Sink for Subscriber<C> {
    #[inline]
    fn now(&self) -> i64 {
        self.clock.now()
    }

    /// A message is here: answer it if it is a ping, then count it.
    #[inline]
    fn process(&self, arrival: &Arrival<'_>) {
        let (publisher, number, counter) = parts_of(arrival.seq);
        let totals = self.counts.totals;
        let (Some(part), Some(seen)) = (PARTS.get(number as usize).copied(), self.seen.get(publisher)) else {
            add(&totals.foreign, 1);
            return;
        };
        if number > self.part.load(Relaxed) {
            self.enter(number);
        }
        let sight = seen.see(counter);
        let in_window = u64::from(part == FlowPart::Window);
        let second = self.counts.second(arrival.received_ns);
        match sight {
            Sight::Next { missing: 0 } => add(&totals.next, 1),
            Sight::Next { missing } => {
                add(&totals.next, missing + 1);
                add(&totals.missing, missing);
                add(&second.missing, missing);
            }
            Sight::Late => {
                totals.missing.store(totals.missing.load(Relaxed).wrapping_sub(1), Relaxed);
                add(&totals.out_of_order, in_window);
                add(&second.out_of_order, 1);
            }
            Sight::Duplicate => {
                add(&totals.duplicates, in_window);
                add(&second.duplicates, 1);
                return;
            }
            Sight::Stale => {
                add(&totals.stale, 1);
                return;
            }
        }
        if part != FlowPart::Drain && self.row_every > 0 && publisher == 0 && counter % self.row_every == 0 {
            self.row(counter / self.row_every, arrival);
        }
        let (cells, octets) = (self.counts.part(part), arrival.payload.len() as u64);
        if cells.messages.load(Relaxed) == 0 {
            cells.first.store(counter, Relaxed);
            cells.first_ns.store(arrival.received_ns, Relaxed);
        }
        add(&cells.messages, 1);
        add(&cells.octets, octets);
        cells.last_ns.store(arrival.received_ns, Relaxed);
        add(&second.messages, 1);
        add(&second.octets, octets);
    }
}

impl<C: Clock> Subscriber<C> {
    /// The first message of a later part.
    #[cold]
    fn enter(&self, part: u64) {
        let cpu_ns = cpu_ns();
        for cells in &self.counts.totals.parts[self.part.load(Relaxed) as usize + 1..=part as usize] {
            cells.cpu_began_ns.store(cpu_ns, Relaxed);
        }
        self.part.store(part, Relaxed);
    }

    /// Before the trial: the second from which on is counted.
    pub fn begin(&self) {
        self.counts.totals.first_second.store(self.clock.now() / 1_000_000_000, Relaxed);
    }

    /// After the trial.
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
        if let Some((Ok(()), begin, end)) = answered {
            cell.begin_ns.store(begin, Relaxed);
            cell.end_ns.store(end, Relaxed);
        }
        // Last: a row without it is not complete.
        cell.seq_plus_one.store(number + 1, Release);
    }
}
