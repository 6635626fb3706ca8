//! Wake-ups that several agents recorded.

use std::collections::BTreeMap;
use tailbound_model::{SwitchEvent, SwitchKind};

/// Largest difference between the times at which the BPF programs of two agents record the same wake-up, ns: the kernel calls
/// them one after the other.
const APART_NS: i64 = 20_000;

/// Times of recorded wake-ups, by the CPU on which they happened and the thread that was woken.
#[derive(Debug, Default)]
pub(super) struct Wakes(BTreeMap<(u32, i32), Vec<i64>>);

impl Wakes {
    /// Whether another agent recorded this wake-up. Two wake-ups of one thread on one CPU are further apart than the
    /// records of one wake-up, or both agents recorded both.
    pub fn has(&self, event: &SwitchEvent) -> bool {
        let SwitchKind::Wake { thread, .. } = event.what else { return false };
        let Some(times) = self.0.get(&(event.cpu, thread)) else { return false };
        let from_ns = event.at_ns.saturating_sub(APART_NS);
        let after = times.get(times.partition_point(|at_ns| *at_ns < from_ns));
        after.is_some_and(|at_ns| *at_ns <= event.at_ns.saturating_add(APART_NS))
    }

    /// Adds the wake-ups that one more agent recorded.
    pub fn add(&mut self, events: &[SwitchEvent]) {
        for event in events {
            if let SwitchKind::Wake { thread, .. } = event.what {
                self.0.entry((event.cpu, thread)).or_default().push(event.at_ns);
            }
        }
        self.0.values_mut().for_each(|times| times.sort_unstable());
    }
}
