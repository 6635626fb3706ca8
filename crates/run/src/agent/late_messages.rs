//! Finds late messages while a trial runs, so that the events around them outlive the memory for events.

use crate::hot::Memory;
use crate::kept_windows::widened;
use crate::live_collect::settle_ns;
use crate::store::{self, Rows};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use tailbound_host as host;
use tailbound_model::EchoRow;
use tailbound_record::{KeptRow, Notable, RunningIncidents, WorstIncident};
use tailbound_wire::{Absence, Order, SoFar, Spare};

/// Largest number of rows of samples that are looked at in one turn, so that a turn takes less than a millisecond.
const MOST_ROWS: u64 = 20_000;
/// Largest number of incidents that wait for a heartbeat.
const MOST_UNSENT: usize = 1_000;

/// The sample memory of each end, with its file.
type Memories = [(OwnedFd, Memory)];

/// Late messages of the ends of one agent.
pub(super) struct LateMessages {
    ends: Vec<End>,
    /// Time spans of ordinary messages that the controller does not know yet.
    ordinary: VecDeque<Notable>,
    /// Time spans of incidents that the controller does not know yet, the worst last.
    incidents: Vec<Notable>,
    /// Whether the controller gets the time span of an incident next.
    is_turn_of_incidents: bool,
}

/// What has been found in the rows of samples of one end.
struct End {
    /// Number of rows of samples that were looked at.
    rows: u64,
    running: RunningIncidents,
}

impl LateMessages {
    pub fn new(order: &Order) -> LateMessages {
        let loops = order.spec.measure.loops();
        let messages = loops.unwrap_or(order.slots.saturating_sub(order.warm_up));
        let running = RunningIncidents::new(messages, order.late_above_ns);
        LateMessages {
            ends: order.ends.iter().map(|_| End { rows: 0, running: running.clone() }).collect(),
            ordinary: VecDeque::new(),
            incidents: Vec::new(),
            is_turn_of_incidents: true,
        }
    }

    /// Looks at the rows of samples in the sample memory that will not change any more. Returns the time spans whose events
    /// should be kept, each with its rank.
    pub fn look(&mut self, order: &Order, memories: &Memories) -> Vec<Notable> {
        let before_ns = host::monotonic_ns() - settle_ns(&order.spec);
        let mut found = Vec::new();
        for (index, (_, memory)) in memories.iter().enumerate().filter(|(index, _)| is_sender(order, *index)) {
            let first = self.ends[index].rows;
            let settled = memory.settled(first, MOST_ROWS, before_ns);
            let bytes = memory.bytes(first, settled);
            found.extend(self.add(order, index, (first, &bytes), memory));
        }
        found
    }

    /// Looks at rows of samples of one end that are drained from its ring: the bytes of the rows from `first` on.
    pub fn add(&mut self, order: &Order, index: usize, (first, bytes): (u64, &[u8]), memory: &Memory) -> Vec<Notable> {
        let mut found = Vec::new();
        if !is_sender(order, index) {
            return found;
        }
        let End { rows, running } = &mut self.ends[index];
        let t0_ns = memory.header().t0_ns.load(Acquire);
        *rows = first;
        let all = Rows { role: order.ends[index].role, first, bytes, cut: false };
        store::any_sender_row(order, all, t0_ns, &mut |row| {
            running.add(*rows, row, &mut found);
            *rows += 1;
            false
        });
        for notable in &mut found {
            (notable.begin_ns, notable.end_ns) = widened((notable.begin_ns, notable.end_ns));
        }
        self.ordinary.extend(found.iter().filter(|notable| notable.is_ordinary()));
        self.incidents.extend(found.iter().filter(|notable| !notable.is_ordinary()));
        self.incidents.sort_by_key(|notable| notable.rank);
        let surplus = self.incidents.len().saturating_sub(MOST_UNSENT);
        self.incidents.drain(..surplus);
        found
    }

    /// The late and lost messages of all ends so far. `t0_ns`: time at which the first message was due.
    pub fn so_far(&self, t0_ns: i64) -> SoFar {
        let mut sum = SoFar::default();
        for found in self.ends.iter().map(|end| end.running.so_far()) {
            sum.incidents += found.incidents;
            sum.late += found.late;
            sum.lost += found.lost;
            if let Some(worst) = found.worst.filter(|worst| worst.rank / 1_000 >= sum.worst_excess_us) {
                sum.worst_excess_us = worst.rank / 1_000;
                sum.worst_after_ms = (worst.begin_ns - t0_ns) / 1_000_000;
            }
        }
        sum
    }

    /// Takes the worst incident of any end since the last call, with ordinary messages of the same end.
    pub fn take_worst(&mut self) -> Option<(WorstIncident, Vec<KeptRow>)> {
        let of_ends = self.ends.iter_mut().filter_map(|End { running, .. }| {
            let worst = running.take_worst()?;
            Some((worst, running.ordinary().to_vec()))
        });
        of_ends.max_by_key(|(worst, _)| worst.incident.excess_ns)
    }

    /// Takes a time span that the controller does not know yet: in turn of an ordinary message and of the worst incident.
    pub fn unsent(&mut self) -> Option<Spare> {
        let is_incident = self.ordinary.is_empty() || self.is_turn_of_incidents && !self.incidents.is_empty();
        let next = if is_incident { self.incidents.pop() } else { self.ordinary.pop_front() }?;
        self.is_turn_of_incidents = !is_incident;
        Some(Spare::of((next.begin_ns, next.end_ns), next.rank))
    }
}

/// The row of a message that a receiving end received in this time, in a sample memory with room for the whole trial. Few rows are
/// looked at, and none that the end may still write.
pub(super) fn received(memory: &Memory, absence: &Absence) -> Option<EchoRow> {
    let cells = memory.echo();
    let in_ns = |row: u64| cells.get(row).map_or(0, |cell| cell.in_ns.load(Relaxed));
    // Rows that are not written have no time.
    let (mut low, mut high) = (0, cells.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if (1..absence.begin_ns).contains(&in_ns(middle)) { low = middle + 1 } else { high = middle }
    }
    let until =
        (low..low + MOST_ROWS).find(|row| !(1..=absence.end_ns).contains(&in_ns(*row))).unwrap_or(low + MOST_ROWS);
    store::echo_rows(&memory.bytes(low, until)).into_iter().find(|row| row.seq == absence.seq)
}

/// Whether the rows of this end say when answers were received.
pub(super) fn is_sender(order: &Order, index: usize) -> bool {
    order.spec.measure.flow().is_none() && order.ends.get(index).is_some_and(|end| !end.role.receives())
}
