//! The events that are kept in memory until the trial is over.

use super::kept::{Kept, Spared, Timed};
use std::collections::HashMap;
use tailbound_model::{Away, SleepState, SwitchEvent, SwitchKind};

/// Maximum number of events kept in memory; an event has 32 bytes.
const MOST_EVENTS: usize = 4 << 20;
/// Maximum number of threads without a CPU in a result, and of frequencies.
const MOST_AWAY: usize = 5_000;

impl Timed for SwitchEvent {
    fn at_ns(&self) -> i64 {
        self.at_ns
    }

    fn end_ns(&self) -> i64 {
        SwitchEvent::end_ns(self)
    }
}

/// Events in the order in which they were read, and time spans in which events are missing.
#[derive(Debug)]
pub(super) struct Events {
    kept: Kept<SwitchEvent>,
    /// Begin and end of each time span in which the kernel dropped events, monotonic ns.
    dropped: Vec<(i64, i64)>,
    /// The threads that had no CPU when a spared time span began whose events would have been discarded.
    away: Vec<Away>,
}

impl Default for Events {
    fn default() -> Events {
        Events::newest(MOST_EVENTS)
    }
}

impl Events {
    fn newest(most: usize) -> Events {
        Events { kept: Kept::newest(most), dropped: Vec::new(), away: Vec::new() }
    }

    /// Keeps an event. If the maximum number of events is reached, the oldest events outside of spared time spans are
    /// discarded.
    pub fn keep(&mut self, event: SwitchEvent) {
        if self.kept.is_full() {
            // The events before a spared time span are about to be discarded: who had no CPU when it began is found now.
            let begins_ns = self.kept.begins_in_oldest();
            if let Some(last_ns) = begins_ns.iter().copied().max() {
                self.away.retain(|away| self.kept.begins_spared(away.until_ns));
                let before = self.kept.around_oldest().filter(|event| event.at_ns <= last_ns);
                self.away.extend(away_at(before, begins_ns));
            }
        }
        self.kept.keep(event);
    }

    /// Keeps the events of this time span from now on, unless some of them were discarded already.
    pub fn spare(&mut self, spared: Spared) {
        self.kept.spare(spared);
    }

    /// Whether a quarter of the room for events is used.
    pub fn is_quarter_full(&self) -> bool {
        self.kept.is_quarter_full()
    }

    /// Adds a time span in which events are missing (begin and end, monotonic ns).
    pub fn miss(&mut self, gap: (i64, i64)) {
        self.dropped.push(gap);
    }

    /// Begin and end of each time span in which events are missing, monotonic ns.
    pub fn gaps(&self) -> Vec<(i64, i64)> {
        self.kept.discarded().into_iter().chain(self.dropped.iter().copied()).collect()
    }

    /// Events whose time lies in one of the time spans `windows` (begin and end, monotonic ns), which must be sorted
    /// and must not overlap, and interrupts and page faults that began before a time span and ended within it or later.
    /// In the order of time.
    pub fn within(&self, windows: &[(i64, i64)]) -> Vec<SwitchEvent> {
        self.kept.within(windows)
    }

    /// The threads that had no CPU when one of the time spans `windows` began, and were ready to run or held up, and the
    /// frequencies of CPUs, if they are known. The most
    /// important time span comes first: if there are too many threads, those of less important ones are left out. In the
    /// order of time.
    pub fn away(&self, windows: &[(i64, i64)]) -> Vec<Away> {
        let begins_ns = windows.iter().map(|(begin, _)| *begin);
        let ranks: HashMap<i64, usize> = begins_ns.clone().enumerate().map(|(rank, begin)| (begin, rank)).collect();
        let (rescued, recent): (Vec<i64>, Vec<i64>) =
            begins_ns.partition(|begin| self.kept.rescued_around(*begin).is_some());
        let mut found = away_at(self.kept.all(), recent);
        // What happened within a gap is not known.
        let is_known = |away: &Away, gaps: &[(i64, i64)]| {
            !gaps.iter().any(|(from, to)| *from < away.until_ns && away.event.at_ns < *to)
        };
        let gaps = self.gaps();
        found.retain(|away| is_known(away, &gaps));
        let mut long_ago = self.away_long_ago(&rescued);
        long_ago.retain(|away| is_known(away, &self.dropped));
        found.append(&mut long_ago);
        found.sort_by_key(|away| ranks.get(&away.until_ns).copied());
        let is_of_cpu = |away: &mut Away| matches!(away.event.what, SwitchKind::Frequency { .. });
        let mut of_cpus: Vec<Away> = found.extract_if(.., is_of_cpu).collect();
        of_cpus.truncate(MOST_AWAY);
        found.truncate(MOST_AWAY);
        found.append(&mut of_cpus);
        found.sort_by_key(|away| (away.until_ns, away.event.at_ns));
        found
    }

    /// The threads that had no CPU at these times, each within a spared time span before which the events were discarded.
    fn away_long_ago(&self, times_ns: &[i64]) -> Vec<Away> {
        // The memory is searched once: there can be hundreds of times, and millions of events.
        let events = if times_ns.is_empty() { Vec::new() } else { self.kept.rescued() };
        let away_when = |at_ns: &i64| {
            let Some(Spared { span: (begin, _), .. }) = self.kept.rescued_around(*at_ns) else { return Vec::new() };
            let at_begin = self.away.iter().filter(|away| away.until_ns == begin).map(|away| &away.event);
            let [from, to] = [begin, at_ns.saturating_add(1)].map(|ns| events.partition_point(|e| e.at_ns < ns));
            away_at(at_begin.chain(&events[from..to]), vec![*at_ns])
        };
        times_ns.iter().flat_map(away_when).collect()
    }
}

/// The threads that had no CPU at one of the times `begins_ns`, and were ready to run or held up, as these events show.
fn away_at<'a>(events: impl Iterator<Item = &'a SwitchEvent>, mut begins_ns: Vec<i64>) -> Vec<Away> {
    begins_ns.sort_unstable();
    // The ring buffers of perf events are read one after another.
    let mut events: Vec<&SwitchEvent> = events.filter(|e| is_of_scheduler(e)).collect();
    events.sort_by_key(|e| e.at_ns);
    let mut waiting =
        Waiting { begins_ns: &begins_ns, threads: HashMap::new(), frequencies: HashMap::new(), found: Vec::new() };
    events.into_iter().for_each(|event| waiting.take(event));
    let left: Vec<SwitchEvent> = waiting.threads.values().chain(waiting.frequencies.values()).copied().collect();
    left.into_iter().for_each(|event| waiting.find(event, i64::MAX));
    waiting.found
}

/// Whether an event says which thread has a CPU or is ready to run, or which frequency a CPU has.
fn is_of_scheduler(event: &SwitchEvent) -> bool {
    matches!(
        event.what,
        SwitchKind::Switch { .. }
            | SwitchKind::In(_)
            | SwitchKind::Out { .. }
            | SwitchKind::Wake { .. }
            | SwitchKind::Frequency { .. }
    )
}

/// Threads that have no CPU, each with the event with which it left its CPU or became ready to run.
struct Waiting<'a> {
    /// Begins of the time spans, in the order of time.
    begins_ns: &'a [i64],
    threads: HashMap<i32, SwitchEvent>,
    /// For each CPU, the event with which it got its frequency.
    frequencies: HashMap<u32, SwitchEvent>,
    found: Vec<Away>,
}

impl Waiting<'_> {
    /// Notes what an event says about threads that have no CPU.
    fn take(&mut self, event: &SwitchEvent) {
        match event.what {
            SwitchKind::Switch { out, into, preempted, state, .. } => {
                self.came(into, event.at_ns);
                self.left(out, event, preempted || state.is_some_and(SleepState::is_held_up));
            }
            SwitchKind::Out { thread, preempted } => self.left(thread, event, preempted),
            SwitchKind::In(thread) => self.came(thread, event.at_ns),
            // A thread that is held up is woken when that ends.
            SwitchKind::Wake { thread, .. } => {
                self.came(thread, event.at_ns);
                self.threads.insert(thread, *event);
            }
            SwitchKind::Frequency { .. } => {
                if let Some(before) = self.frequencies.insert(event.cpu, *event) {
                    self.find(before, event.at_ns);
                }
            }
            _ => {}
        }
    }

    /// A thread left its CPU. It may have been woken before, while it still ran.
    fn left(&mut self, thread: i32, event: &SwitchEvent, is_kept: bool) {
        self.threads.remove(&thread);
        if thread > 0 && is_kept {
            self.threads.insert(thread, *event);
        }
    }

    /// A thread got a CPU or was woken at the time `at_ns`.
    fn came(&mut self, thread: i32, at_ns: i64) {
        if let Some(event) = self.threads.remove(&thread) {
            self.find(event, at_ns);
        }
    }

    /// Adds the time spans that began while a thread had no CPU: from `event` until the time `until_ns`.
    fn find(&mut self, event: SwitchEvent, until_ns: i64) {
        let first = self.begins_ns.partition_point(|begin| *begin <= event.at_ns);
        let begins = self.begins_ns[first..].iter().take_while(|begin| **begin < until_ns);
        self.found.extend(begins.map(|begin| Away { until_ns: *begin, event }));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switches::kept::PIECE;
    use tailbound_model::Interruption;

    #[test]
    fn the_newest_events_are_kept_and_older_ones_are_a_gap() {
        let mut events = Events::newest(2 * PIECE);
        let wake = SwitchKind::Wake { thread: 1, by: 2, interrupt: false, packet: false, limit: None };
        let piece = PIECE as i64;
        for at_ns in 1..=3 * piece {
            events.keep(SwitchEvent { at_ns, cpu: 0, what: wake });
        }
        events.miss((7, 9));
        assert_eq!(events.gaps(), [(0, piece), (7, 9)]);
        let kept = events.within(&[(0, i64::MAX)]);
        assert_eq!((kept.len(), kept[0].at_ns, kept[kept.len() - 1].at_ns), (2 * PIECE, piece + 1, 3 * piece));
    }

    #[test]
    fn a_thread_that_was_kept_from_its_cpu_before_a_time_span_is_known() {
        let mut events = Events::default();
        let switch = |at_ns, out, into, preempted, state| SwitchEvent {
            at_ns,
            cpu: 0,
            what: SwitchKind::Switch { out, into, preempted, state, limit: None },
        };
        let wake = |at_ns, thread| SwitchEvent {
            at_ns,
            cpu: 0,
            what: SwitchKind::Wake { thread, by: 0, interrupt: true, packet: false, limit: None },
        };
        let all = [
            switch(100, 7, 8, false, Some(SleepState::Frozen)),
            switch(200, 8, 9, true, None),
            switch(300, 9, 0, false, Some(SleepState::Interruptible)),
            wake(400, 9),
            switch(600, 0, 8, true, None),
            // Thread 7 is woken, and gets its CPU in the second time span.
            wake(900, 7),
            switch(1_100, 8, 7, false, Some(SleepState::Interruptible)),
        ];
        all.iter().for_each(|event| events.keep(*event));
        let away = |begin| -> Vec<i64> { events.away(&[(begin, begin + 10)]).iter().map(|a| a.event.at_ns).collect() };
        assert_eq!(away(50), [] as [i64; 0]);
        assert_eq!(away(150), [100]);
        assert_eq!(away(500), [100, 200, 400]);
        // Nothing shows that thread 9 got a CPU.
        assert_eq!(away(1_000), [400, 900]);
        assert_eq!(away(2_000), [400]);
        // The events of one CPU can be read after later events of another one.
        let mut late = Events::default();
        [wake(400, 9), wake(800, 9)].iter().for_each(|event| late.keep(*event));
        let ran = [(410, 0, 9), (420, 9, 0), (810, 0, 9)];
        ran.iter().for_each(|(at, out, into)| {
            late.keep(switch(*at, *out, *into, false, Some(SleepState::Interruptible)));
        });
        assert_eq!(late.away(&[(600, 700)]), []);
        // A thread that runs can be woken; then it sleeps.
        let mut runs = Events::default();
        let sleeps = switch(110, 9, 0, false, Some(SleepState::Interruptible));
        [switch(50, 0, 9, true, None), wake(100, 9), sleeps].iter().for_each(|event| runs.keep(*event));
        assert_eq!(runs.away(&[(600, 700)]), []);
        // Nobody knows what happened in a gap.
        events.miss((550, 560));
        assert_eq!(events.away(&[(500, 510)]).len(), 3);
        assert_eq!(events.away(&[(590, 595)]), []);
    }

    /// Test: a thread was preempted before a spared time span and got its CPU within it; another one was frozen in it. All
    /// other events of this time are discarded.
    #[test]
    fn who_had_no_cpu_long_ago_is_known_in_spared_time_spans() {
        let mut events = Events::newest(2 * PIECE);
        let switch = |at_ns, out, into, preempted, state| SwitchEvent {
            at_ns,
            cpu: 0,
            what: SwitchKind::Switch { out, into, preempted, state, limit: None },
        };
        let [frozen, sleeps] = [SleepState::Frozen, SleepState::Interruptible].map(Some);
        let all =
            [switch(100, 7, 8, true, None), switch(2_050, 8, 7, false, frozen), switch(2_090, 7, 0, false, sleeps)];
        all.iter().for_each(|event| events.keep(*event));
        events.spare(Spared { span: (2_000, 3_000), rank: 1 });
        for at_ns in 3_001..3_001 + 4 * PIECE as i64 {
            events.keep(switch(at_ns, 20, 21, false, sleeps));
        }
        assert_eq!(events.gaps()[..2], [(0, 2_000), (3_000, events.gaps()[1].1)]);
        let away = |begin| -> Vec<i64> { events.away(&[(begin, begin + 10)]).iter().map(|a| a.event.at_ns).collect() };
        assert_eq!(away(2_000), [100]);
        assert_eq!(away(2_060), [2_050]);
        assert_eq!(away(2_100), [2_050]);
        let at_once = events.away(&[(2_000, 2_010), (2_060, 2_070), (2_100, 2_110)]);
        let found: Vec<_> = at_once.iter().map(|a| (a.until_ns, a.event.at_ns)).collect();
        assert_eq!(found, [(2_000, 100), (2_060, 2_050), (2_100, 2_050)]);
        // Outside of the spared time span, nothing is known of this time.
        assert_eq!(away(3_500), [] as [i64; 0]);
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
