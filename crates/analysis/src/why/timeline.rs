//! Timeline of which thread ran on which CPU at which time, from the context switches that the agents of a trial
//! recorded.

use std::collections::{BTreeMap, BTreeSet};
use tailbound_model::{SwitchEvent, SwitchKind, SwitchScope, Switches};

/// State of a thread after a context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The thread runs on the CPU with this number.
    On(u32),
    /// The thread was preempted and is ready to run.
    Preempted,
    /// The thread sleeps, because it waits for something.
    Asleep,
}

/// A wake-up of a thread that an agent recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wake {
    pub at_ns: i64,
    /// Id of the thread that ran on the CPU where the wake-up happened.
    pub by: i32,
}

/// Context switches and wake-ups of one trial between two times.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    begin_ns: i64,
    threads: BTreeMap<i32, Vec<(i64, State)>>,
    wakes: BTreeMap<i32, Vec<Wake>>,
    /// For each CPU, in the order of time: the time at which a thread began to run on this CPU, and the id of the
    /// thread.
    cpus: BTreeMap<u32, Vec<(i64, i32)>>,
    wakes_seen: bool,
}

impl Timeline {
    /// Builds the timeline from the context switches and wake-ups that the agents recorded; `None` if an agent did not
    /// record for the whole time from `begin` to `end`.
    pub fn of(seen: &[Switches], (begin, end): (i64, i64)) -> Option<Timeline> {
        let watched = |s: &Switches| {
            let missing = s.gaps.iter().any(|(from, to)| *from < end && begin < *to);
            s.windows.iter().find(|(from, to)| *from <= begin && end <= *to).filter(|_| !missing).copied()
        };
        let windows = seen.iter().map(watched).collect::<Option<Vec<_>>>()?;
        let (begin_ns, end_ns) = *windows.first()?;
        let wakes_seen = seen.iter().all(|s| s.wakes);
        let mut timeline = Timeline { begin_ns, wakes_seen, ..Timeline::default() };
        let mut told: BTreeSet<u32> = BTreeSet::new();
        let mut events: Vec<SwitchEvent> = Vec::new();
        for seen in seen {
            // Two agents that record the same CPU see the same switches.
            let twice = |e: &&SwitchEvent| matches!(e.what, SwitchKind::Switch { .. }) && told.contains(&e.cpu);
            let first = seen.events.partition_point(|e| e.at_ns < begin_ns);
            let within = seen.events[first..].iter().take_while(|e| e.at_ns <= end_ns);
            events.extend(within.filter(|e| !twice(e)));
            if let SwitchScope::Cpus(cpus) = &seen.scope {
                told.extend(&cpus.0);
            }
        }
        events.sort_by_key(|e| e.at_ns);
        events.into_iter().for_each(|event| timeline.push(event));
        Some(timeline)
    }

    fn push(&mut self, SwitchEvent { at_ns, cpu, what }: SwitchEvent) {
        match what {
            SwitchKind::Switch { out, into, preempted, .. } => {
                self.arrived(out, cpu);
                self.leave(out, at_ns, cpu, preempted);
                self.come(into, at_ns, cpu);
                self.cpus.entry(cpu).or_default().push((at_ns, into));
            }
            SwitchKind::In(thread) => self.come(thread, at_ns, cpu),
            SwitchKind::Out { thread, preempted } => self.leave(thread, at_ns, cpu, preempted),
            SwitchKind::Wake { thread, by, .. } => self.wakes.entry(thread).or_default().push(Wake { at_ns, by }),
            SwitchKind::Interrupted { .. } => {}
        }
    }

    /// Adds the time at which a thread got a CPU, if only the time at which it left this CPU was recorded. The thread
    /// had the CPU from the beginning, or it was moved to the CPU while it ran, after the last context switch on this
    /// CPU and after it had left another CPU.
    fn arrived(&mut self, thread: i32, cpu: u32) {
        let last = self.cpus.entry(cpu).or_default().last().copied();
        if last.is_some_and(|(_, who)| who == thread) {
            return;
        }
        let left = self.threads.get(&thread).and_then(|events| events.last()).map_or(self.begin_ns, |(at, _)| *at);
        let since = last.map_or(self.begin_ns, |(at, _)| at.max(left));
        self.cpus.entry(cpu).or_default().push((since, thread));
        if last.is_some() {
            self.come(thread, since, cpu);
        }
    }

    fn come(&mut self, thread: i32, at_ns: i64, cpu: u32) {
        self.threads.entry(thread).or_default().push((at_ns, State::On(cpu)));
    }

    fn leave(&mut self, thread: i32, at_ns: i64, cpu: u32, preempted: bool) {
        let state = if preempted { State::Preempted } else { State::Asleep };
        self.threads.entry(thread).or_insert_with(|| vec![(self.begin_ns, State::On(cpu))]).push((at_ns, state));
    }

    /// Last state of `thread` before the time `at`, and the time since when it had this state.
    fn before(&self, thread: i32, at: i64) -> Option<(i64, State)> {
        let events = self.threads.get(&thread)?;
        events[..events.partition_point(|(t, _)| *t < at)].last().copied()
    }

    /// If `thread` runs at the time `at`: the time since when it runs, and its CPU.
    pub fn running(&self, thread: i32, at: i64) -> Option<(i64, u32)> {
        match self.before(thread, at)? {
            (since, State::On(cpu)) => Some((since, cpu)),
            _ => None,
        }
    }

    /// For a thread that got a CPU at the time `came`: the time at which it had left a CPU before, and whether it was
    /// preempted at that time. A thread that left its CPU before the beginning of the timeline counts as asleep.
    pub fn left(&self, thread: i32, came: i64) -> (i64, bool) {
        self.before(thread, came).map_or((self.begin_ns, false), |(at, state)| (at, state == State::Preempted))
    }

    /// The first wake-up of `thread` after it fell asleep at the time `left` and before it got a CPU at the time
    /// `came`.
    pub fn woken(&self, thread: i32, left: i64, came: i64) -> Option<Wake> {
        let wakes = self.wakes.get(&thread)?;
        wakes[wakes.partition_point(|w| w.at_ns < left)..].iter().find(|w| w.at_ns <= came).copied()
    }

    /// The thread that ran on `cpu` until another thread got this CPU at the time `came`, and whether the earlier
    /// thread was preempted.
    pub fn replaced(&self, cpu: u32, came: i64) -> Option<(i32, bool)> {
        let events = self.cpus.get(&cpu)?;
        let (_, who) = events[..events.partition_point(|(t, _)| *t < came)].last()?;
        let after = self.threads.get(who)?.iter().find(|(t, _)| *t == came)?;
        Some((*who, after.1 == State::Preempted))
    }

    /// The time since which other threads had kept `cpu` busy without a pause, when `thread` got this CPU at the time
    /// `came`. If wake-ups are not recorded, this is the earliest possible begin of the wait.
    pub fn busy_since(&self, thread: i32, cpu: u32, came: i64, left: i64) -> i64 {
        let Some(events) = self.cpus.get(&cpu) else { return came };
        let before = &events[..events.partition_point(|(t, _)| *t < came)];
        let pause = before.iter().rev().find(|(_, who)| *who == 0 || *who == thread).map(|(t, _)| *t);
        let since = match pause {
            // After the pause, another thread began to run.
            Some(pause) => before.iter().find(|(t, _)| *t > pause).map_or(came, |(t, _)| *t),
            None => before.first().map_or(came, |(t, _)| *t),
        };
        since.max(left)
    }

    /// The time since which none of `threads` has run, seen from the time `at`; `None` if one of them runs, or if no
    /// run of them was recorded.
    pub fn idle_since(&self, threads: impl Iterator<Item = i32>, at: i64) -> Option<i64> {
        let last: Vec<(i64, State)> = threads.filter_map(|t| self.before(t, at)).collect();
        let runs = last.iter().any(|(_, state)| matches!(state, State::On(_)));
        last.iter().map(|(since, _)| *since).max().filter(|_| !runs)
    }

    /// True if the record of context switches also contains the wake-ups of threads.
    pub fn sees_wakes(&self) -> bool {
        self.wakes_seen
    }

    /// Time in ns for which each thread ran on `cpu` between two times, the longest first.
    pub fn occupants(&self, cpu: u32, begin: i64, end: i64) -> Vec<(i32, i64)> {
        let Some(events) = self.cpus.get(&cpu) else { return Vec::new() };
        let mut had: BTreeMap<i32, i64> = BTreeMap::new();
        let next = events.iter().skip(1).map(|(t, _)| *t).chain([i64::MAX]);
        for ((from, who), to) in events.iter().zip(next) {
            let share = to.min(end) - (*from).max(begin);
            if share > 0 {
                *had.entry(*who).or_default() += share;
            }
        }
        let mut had: Vec<(i32, i64)> = had.into_iter().collect();
        had.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        had
    }
}
