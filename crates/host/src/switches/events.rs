//! The events that are kept in memory until the trial is over.

use std::collections::VecDeque;
use tailbound_model::{SwitchEvent, SwitchKind};

/// Maximum number of events kept in memory; an event has 32 bytes.
const MOST_EVENTS: usize = 4 << 20;
/// Number of events in one allocation; stored events are never moved.
const PIECE: usize = 1 << 16;

/// Events in the order in which they were read, and time spans in which events are missing.
#[derive(Debug, Default)]
pub(super) struct Events {
    pieces: VecDeque<Vec<SwitchEvent>>,
    /// Time of the latest event that was discarded, monotonic ns; 0 = none was discarded.
    discarded_ns: i64,
    /// Begin and end of each time span in which events are missing, monotonic ns.
    gaps: Vec<(i64, i64)>,
}

impl Events {
    /// Keeps an event. If the maximum number of events is reached, the oldest events are discarded.
    pub fn keep(&mut self, event: SwitchEvent) {
        self.keep_of(MOST_EVENTS, event);
    }

    fn keep_of(&mut self, most: usize, event: SwitchEvent) {
        if self.pieces.back().is_none_or(|piece| piece.len() == PIECE) {
            let oldest = if self.pieces.len() * PIECE >= most { self.pieces.pop_front() } else { None };
            // The memory of the oldest piece is used again.
            let mut piece = oldest.unwrap_or_else(|| Vec::with_capacity(PIECE));
            self.discarded_ns = piece.iter().map(|e| e.at_ns).fold(self.discarded_ns, i64::max);
            piece.clear();
            self.pieces.push_back(piece);
        }
        if let Some(piece) = self.pieces.back_mut() {
            piece.push(event);
        }
    }

    /// Adds a time span in which events are missing (begin and end, monotonic ns).
    pub fn miss(&mut self, gap: (i64, i64)) {
        self.gaps.push(gap);
    }

    /// Begin and end of each time span in which events are missing, monotonic ns.
    pub fn gaps(&self) -> Vec<(i64, i64)> {
        let discarded = (self.discarded_ns > 0).then_some((0, self.discarded_ns));
        discarded.into_iter().chain(self.gaps.iter().copied()).collect()
    }

    /// Events whose time lies in one of the time spans `windows` (begin and end, monotonic ns), which must be sorted
    /// and must not overlap, and interrupts and page faults that began before a time span and ended within it or later.
    /// In the order of time.
    pub fn within(&self, windows: &[(i64, i64)]) -> Vec<SwitchEvent> {
        let mut events: Vec<SwitchEvent> = Vec::new();
        for event in self.pieces.iter().flatten() {
            let at = windows.partition_point(|(_, end)| *end < event.at_ns);
            if windows.get(at).is_some_and(|(begin, _)| *begin <= end_ns(event)) {
                events.push(*event);
            }
        }
        events.sort_by_key(|e| e.at_ns);
        events
    }
}

/// Ids of the threads of an event between two threads; 0 = no thread.
pub(super) fn threads_of(event: &SwitchEvent) -> [i32; 2] {
    match event.what {
        SwitchKind::Switch { out, into, .. } => [out, into],
        SwitchKind::Wake { thread, by, .. } => [thread, by],
        _ => [0, 0],
    }
}

/// Time at which an event ended: for an interrupt or a page fault later than its begin, ns.
fn end_ns(event: &SwitchEvent) -> i64 {
    match event.what {
        SwitchKind::Interrupted { ns, .. } | SwitchKind::PageFault { ns, .. } => event.at_ns + i64::from(ns),
        _ => event.at_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::Interruption;

    #[test]
    fn the_newest_events_are_kept_and_older_ones_are_a_gap() {
        let mut events = Events::default();
        let wake = SwitchKind::Wake { thread: 1, by: 2, interrupt: false, packet: false, limit: None };
        let piece = PIECE as i64;
        for at_ns in 1..=3 * piece {
            events.keep_of(2 * PIECE, SwitchEvent { at_ns, cpu: 0, what: wake });
        }
        events.miss((7, 9));
        assert_eq!(events.gaps(), [(0, piece), (7, 9)]);
        let kept = events.within(&[(0, i64::MAX)]);
        assert_eq!((kept.len(), kept[0].at_ns, kept[kept.len() - 1].at_ns), (2 * PIECE, piece + 1, 3 * piece));
    }

    #[test]
    fn an_interrupt_belongs_to_the_window_in_which_it_ends() {
        let mut events = Events::default();
        let by = Interruption::Softirq(3);
        let interrupt = |at_ns| SwitchEvent { at_ns, cpu: 0, what: SwitchKind::Interrupted { by, ns: 100 } };
        [950, 850, 1_200].into_iter().for_each(|at_ns| events.keep(interrupt(at_ns)));
        let times: Vec<i64> = events.within(&[(1_000, 1_100)]).iter().map(|e| e.at_ns).collect();
        assert_eq!(times, [950]);
    }
}
