//! The times in which threads had to wait for memory: page faults, and the freeing of memory.

use std::collections::BTreeMap;
use tailbound_model::{SleepState, SwitchEvent, SwitchKind};

/// Begin and end of time spans, monotonic ns, in the order of time. They do not overlap.
type Spans = Vec<(i64, i64)>;

/// The times in which measured threads had to wait for memory, by thread id.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    faults: BTreeMap<i32, Spans>,
    reclaims: BTreeMap<i32, Spans>,
}

impl Memory {
    /// Adds an event after the others; events of other kinds are left out.
    pub fn push(&mut self, event: &SwitchEvent) {
        let (all, thread) = match event.what {
            SwitchKind::PageFault { thread, .. } => (&mut self.faults, thread),
            SwitchKind::Reclaim { thread, .. } => (&mut self.reclaims, thread),
            _ => return,
        };
        all.entry(thread).or_default().push((event.at_ns, event.end_ns()));
    }

    /// Why `thread` did not get its memory at the time `at`: it freed memory first, also within a page fault, or it was in a
    /// page fault. `None` if it did not wait for memory.
    pub fn why(&self, thread: i32, at: i64) -> Option<SleepState> {
        let is_within = |all| within(all, thread, at, at + 1).next().is_some();
        match () {
            () if is_within(&self.reclaims) => Some(SleepState::Reclaim),
            () if is_within(&self.faults) => Some(SleepState::PageFault),
            () => None,
        }
    }

    /// Divides the time between two times by the times in which `thread` waited for memory: begin and end, monotonic ns, and
    /// why it waited, if it did.
    pub fn divide(&self, thread: i32, from_ns: i64, to_ns: i64) -> Vec<(i64, i64, Option<SleepState>)> {
        let mut parts = Vec::new();
        let mut at = from_ns;
        for (begin, end) in within(&self.reclaims, thread, from_ns, to_ns).chain([(to_ns, to_ns)]) {
            for (fault, handled) in within(&self.faults, thread, at, begin) {
                parts.push((at, fault, None));
                parts.push((fault, handled, Some(SleepState::PageFault)));
                at = handled;
            }
            parts.push((at, begin, None));
            parts.push((begin, end, Some(SleepState::Reclaim)));
            at = end;
        }
        parts.retain(|(from, to, _)| from < to);
        parts
    }
}

/// The time spans of `thread` between two times, cut off at these times.
fn within(all: &BTreeMap<i32, Spans>, thread: i32, from_ns: i64, to_ns: i64) -> impl Iterator<Item = (i64, i64)> {
    let spans = all.get(&thread).map_or(&[][..], Vec::as_slice);
    // They do not overlap, so that their ends are in the order of time too.
    let first = spans.partition_point(|(_, end)| *end <= from_ns);
    let within = spans[first..].iter().take_while(move |(begin, _)| *begin < to_ns);
    within.map(move |(begin, end)| ((*begin).max(from_ns), (*end).min(to_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_freeing_of_memory_within_a_page_fault_is_no_part_of_it() {
        let mut memory = Memory::default();
        let event = |at_ns, what| SwitchEvent { at_ns, cpu: 0, what };
        let fault = |ns| SwitchKind::PageFault { thread: 20, ns, disk: false };
        let reclaim = |thread, ns| SwitchKind::Reclaim { thread, ns };
        let all = [
            event(100, fault(200)),
            event(120, reclaim(20, 50)),
            event(150, reclaim(21, 500)),
            event(200, reclaim(20, 60)),
            // In a system call.
            event(400, reclaim(20, 100)),
            event(450, SwitchKind::NoTick { ns: 10 }),
        ];
        all.iter().for_each(|event| memory.push(event));
        let (fault, reclaim) = (Some(SleepState::PageFault), Some(SleepState::Reclaim));
        let expected = [
            (50, 100, None),
            (100, 120, fault),
            (120, 170, reclaim),
            (170, 200, fault),
            (200, 260, reclaim),
            (260, 300, fault),
            (300, 400, None),
            (400, 450, reclaim),
        ];
        assert_eq!(memory.divide(20, 50, 450), expected);
        assert_eq!(memory.divide(20, 130, 180), [(130, 170, reclaim), (170, 180, fault)]);
        assert_eq!(memory.divide(22, 0, 10), [(0, 10, None)]);
        let why = |at| memory.why(20, at);
        assert_eq!([99, 100, 120, 169, 170, 300].map(why), [None, fault, reclaim, reclaim, fault, None]);
    }
}
