//! Threads that had no CPU when a timeline begins, and the frequencies that CPUs had then.

use std::collections::{BTreeMap, BTreeSet};
use tailbound_model::{SleepState, SwitchEvent, SwitchKind, Switches};

/// The events since which threads had no CPU at the time `at_ns`, or CPUs had their frequencies. The time lies in a requested
/// time span of an agent; the events happened before the time span began, or within it.
pub(crate) fn away(seen: &Switches, at_ns: i64) -> Vec<SwitchEvent> {
    let Some((begin_ns, _)) = seen.windows.iter().find(|(begin, end)| (*begin..=*end).contains(&at_ns)) else {
        return Vec::new();
    };
    let of_span = seen.away.iter().filter(|away| away.until_ns == *begin_ns).map(|away| away.event);
    let (of_cpus, of_threads): (Vec<SwitchEvent>, Vec<SwitchEvent>) =
        of_span.partition(|event| matches!(event.what, SwitchKind::Frequency { .. }));
    let away = of_threads.into_iter().map(|event| (thread_of(&event), event)).collect();
    let frequencies = of_cpus.into_iter().map(|event| (event.cpu, event)).collect();
    let mut threads = Threads { away, on: BTreeSet::new(), frequencies };
    let first = seen.events.partition_point(|e| e.at_ns < *begin_ns);
    seen.events[first..].iter().take_while(|e| e.at_ns < at_ns).for_each(|event| threads.take(event));
    threads.away.into_values().chain(threads.frequencies.into_values()).collect()
}

fn thread_of(event: &SwitchEvent) -> i32 {
    match event.what {
        SwitchKind::Switch { out, .. } => out,
        SwitchKind::Out { thread, .. } | SwitchKind::Wake { thread, .. } => thread,
        _ => 0,
    }
}

struct Threads {
    /// For each thread that has no CPU, the event since which that is so.
    away: BTreeMap<i32, SwitchEvent>,
    /// Threads that have a CPU, as far as events show it.
    on: BTreeSet<i32>,
    /// For each CPU, the event with which it got its frequency.
    frequencies: BTreeMap<u32, SwitchEvent>,
}

impl Threads {
    fn take(&mut self, event: &SwitchEvent) {
        match event.what {
            SwitchKind::Switch { out, into, preempted, state, .. } => {
                self.left(out, event, preempted || state.is_some_and(SleepState::is_held_up));
                self.came(into);
            }
            SwitchKind::Out { thread, preempted } => self.left(thread, event, preempted),
            SwitchKind::In(thread) => self.came(thread),
            SwitchKind::Frequency { .. } => drop(self.frequencies.insert(event.cpu, *event)),
            SwitchKind::Wake { thread, .. } if !self.on.contains(&thread) => drop(self.away.insert(thread, *event)),
            _ => {}
        }
    }

    /// A thread left its CPU. It is of interest if it was ready to run, stopped or frozen.
    fn left(&mut self, thread: i32, event: &SwitchEvent, is_kept: bool) {
        self.on.remove(&thread);
        self.away.remove(&thread);
        if thread > 0 && is_kept {
            self.away.insert(thread, *event);
        }
    }

    fn came(&mut self, thread: i32) {
        self.on.insert(thread);
        self.away.remove(&thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::Away;

    #[test]
    fn what_happened_between_the_begin_of_a_time_span_and_a_timeline_counts() {
        let event = |at_ns, what| SwitchEvent { at_ns, cpu: 1, what };
        let switch = |out, into, preempted| SwitchKind::Switch { out, into, preempted, state: None, limit: None };
        let wake = |thread| SwitchKind::Wake { thread, by: 0, interrupt: false, packet: false, limit: None };
        let events = vec![
            // 10 gets the CPU for which it waited, and is woken although it runs; then 20 takes it.
            event(110, switch(20, 10, false)),
            event(120, wake(10)),
            event(130, wake(20)),
            event(140, switch(10, 20, true)),
            event(200, wake(30)),
        ];
        let before = Away { until_ns: 100, event: event(50, wake(10)) };
        let seen = Switches { windows: vec![(100, 300)], events, away: vec![before], ..Switches::default() };
        let found = |at_ns| away(&seen, at_ns).iter().map(|e| (thread_of(e), e.at_ns)).collect::<Vec<_>>();
        assert_eq!(found(105), [(10, 50)]);
        assert_eq!(found(125), []);
        assert_eq!(found(135), [(20, 130)]);
        assert_eq!(found(250), [(10, 140), (30, 200)]);
        assert_eq!(found(301), []);
    }
}
