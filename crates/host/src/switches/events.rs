//! The events that are kept in memory until the trial is over.

use tailbound_model::{SwitchEvent, SwitchKind};

/// Maximum number of events kept in memory; an event has 32 bytes.
const MOST_EVENTS: usize = 4 << 20;
/// Number of events in one allocation; stored events are never moved.
const PIECE: usize = 1 << 16;

/// Events in the order in which they were read, and time spans in which events are missing.
#[derive(Debug, Default)]
pub(super) struct Events {
    pieces: Vec<Vec<SwitchEvent>>,
    /// True if the maximum number of events is reached.
    full: bool,
    /// Begin and end of each time span in which events are missing, monotonic ns.
    pub gaps: Vec<(i64, i64)>,
}

impl Events {
    /// Keeps an event, unless the maximum number of events is reached.
    pub fn keep(&mut self, event: SwitchEvent) {
        if self.full {
            return;
        }
        if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
            if self.pieces.len() * PIECE == MOST_EVENTS {
                self.full = true;
                self.gaps.push((event.at_ns, i64::MAX));
                return;
            }
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push(event);
        }
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
    fn an_interrupt_belongs_to_the_window_in_which_it_ends() {
        let mut events = Events::default();
        let by = Interruption::Softirq(3);
        let interrupt = |at_ns| SwitchEvent { at_ns, cpu: 0, what: SwitchKind::Interrupted { by, ns: 100 } };
        [950, 850, 1_200].into_iter().for_each(|at_ns| events.keep(interrupt(at_ns)));
        let times: Vec<i64> = events.within(&[(1_000, 1_100)]).iter().map(|e| e.at_ns).collect();
        assert_eq!(times, [950]);
    }
}
