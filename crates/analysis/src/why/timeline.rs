//! Timeline of which thread ran on which CPU at which time, from the context switches that the agents of a trial
//! recorded.

use crate::why::away::away;
use crate::why::hops::Hops;
use crate::why::memory::Memory;
use crate::why::pace::Pace;
use crate::why::wake::{LONGEST_IDLE_EXIT_NS, Wake};
use std::collections::{BTreeMap, BTreeSet};
use tailbound_model::{CpuLimit, Interruption, RecordedBy, SleepState, SwitchEvent, SwitchKind, SwitchScope, Switches};

/// Longest duration of an interrupt or a page fault that an event can give, ns.
const LONGEST_SPAN_NS: i64 = u32::MAX as i64;

/// Largest number of context switches that are looked at to find the last real-time thread of a CPU.
const MOST_OF_LOWER_THREADS: usize = 1_000;

/// Largest number of interrupts that are looked at to find the one that had a CPU.
const MOST_NESTED: usize = 1_000;

/// In place of a thread id: it is not known which thread had a CPU, because a context switch was not reported.
pub(crate) const UNKNOWN: i32 = i32::MIN;

/// State of a thread after a context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The thread runs on the CPU with this number.
    On(u32),
    /// The thread was preempted and is ready to run; with the limit that keeps it from running, if there is one.
    Preempted(Option<CpuLimit>),
    /// The thread sleeps, because it waits for something; with the kernel's state, if it was recorded.
    Asleep(Option<SleepState>),
}

/// Why a thread left a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// The thread stayed ready to run; with the limit that kept it from running, if there was one.
    Ready(Option<CpuLimit>),
    /// The thread fell asleep; with its state, if it was recorded.
    Asleep(Option<SleepState>),
}

/// Why a thread did not run although it had work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// The thread was ready and waited for this CPU; with the limit that kept it from running, if there was one.
    Ready { cpu: u32, limit: Option<CpuLimit> },
    /// The process of the thread was stopped.
    Stopped,
    /// The control group of the thread was frozen.
    Frozen,
}

/// A time span in which an interrupt or a soft interrupt had a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InterruptSpan {
    pub from_ns: i64,
    pub to_ns: i64,
    pub by: Interruption,
}

/// Context switches and wake-ups of one trial in one time span whose events were requested.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    begin_ns: i64,
    end_ns: i64,
    /// Time spans in which the kernel dropped records.
    gaps: Vec<(i64, i64)>,
    threads: BTreeMap<i32, Vec<(i64, State)>>,
    wakes: BTreeMap<i32, Vec<Wake>>,
    /// For each measured thread, in the order of time: the time at which it was moved, and its new CPU.
    moves: BTreeMap<i32, Vec<(i64, u32)>>,
    /// For each CPU, in the order of time: the time at which a thread began to run on this CPU, and the id of the
    /// thread.
    cpus: BTreeMap<u32, Vec<(i64, i32)>>,
    /// For each CPU, in the order of time: a thread left the CPU because of this limit of CPU time.
    limits: BTreeMap<u32, Vec<(i64, CpuLimit)>>,
    /// For each CPU, in the order of time: a limit of CPU time still kept this thread from the CPU.
    held: BTreeMap<u32, Vec<(i64, i32)>>,
    /// For each CPU, in the order of time: the fair server chose the thread that began to run.
    served: BTreeMap<u32, Vec<i64>>,
    /// For each CPU, in the order of time: the CPU had left idle for the thread that began to run at the latest at this time, because
    /// another thread was ready.
    left_idle: BTreeMap<u32, Vec<i64>>,
    /// For each CPU, since its last context switch: a thread that had the CPU when it or an interrupt woke another one there, and the
    /// time of the first time.
    acted: BTreeMap<u32, (i32, i64)>,
    /// For each CPU: time spans of interrupts, by their begin. Spans can lie inside each other.
    interrupts: BTreeMap<u32, Vec<InterruptSpan>>,
    /// CPUs whose interrupts were recorded.
    interrupts_seen: BTreeSet<u32>,
    wakes_seen: bool,
    /// Ends whose agents recorded wake-ups or the threads of their CPUs.
    waits_seen: BTreeSet<String>,
    /// Whether wake-ups by packets are marked.
    packets_seen: bool,
    /// Whether the host of the guests was recorded in the trial, and not in the whole time span.
    misses_host: bool,
    /// Times in which measured threads had to wait for memory.
    pub memory: Memory,
    /// How fast the CPUs worked.
    pub pace: Pace,
    /// Ways of messages through the kernel.
    pub hops: Hops,
}

impl Timeline {
    /// Builds the timeline of one time span, from `begin` to `end`, whose events were requested from all agents.
    pub fn of(seen: &[Switches], (begin_ns, end_ns): (i64, i64)) -> Timeline {
        let (span, recorded_by) = ((begin_ns, end_ns), seen.len());
        // The host of guests adds to what the agents saw. What it saw in a part of the time only is left out.
        let seen = || seen.iter().filter(|s| s.host.is_none() || is_whole(s, span));
        let of_ends = || seen().filter(|s| s.host.is_none());
        let wakes_seen = of_ends().all(|s| s.wakes);
        let gaps = seen().flat_map(|s| &s.gaps).copied().filter(|(from, to)| *from < end_ns && begin_ns < *to);
        let by_bpf = |s: &Switches| s.recorder.as_ref().is_some_and(|r| r.by == RecordedBy::Bpf);
        let packets_seen = of_ends().all(by_bpf);
        let gaps = gaps.collect();
        let hops = Hops::of(seen(), span);
        let misses_host = seen().count() < recorded_by;
        let mut timeline =
            Timeline { begin_ns, end_ns, gaps, wakes_seen, packets_seen, misses_host, hops, ..Timeline::default() };
        let mut recorded: BTreeSet<u32> = BTreeSet::new();
        let mut events: Vec<SwitchEvent> = Vec::new();
        for seen in seen() {
            let waits = seen.wakes || matches!(seen.scope, SwitchScope::Cpus(_));
            timeline.waits_seen.extend(seen.ends.iter().filter(|_| waits).cloned());
            // Two agents that record the same CPU see the same events of this CPU, but wake-ups, moves and page faults of
            // different threads.
            let twice = |e: &&SwitchEvent| !is_of_a_thread(e) && recorded.contains(&e.cpu);
            let first = seen.events.partition_point(|e| e.at_ns < begin_ns);
            let within = seen.events[first..].iter().take_while(|e| e.at_ns <= end_ns);
            let earlier = seen.events.partition_point(|e| e.at_ns < begin_ns.saturating_sub(LONGEST_SPAN_NS));
            let into = seen.events[earlier..first].iter().filter(|e| e.end_ns() > begin_ns);
            events.extend(into.chain(within).filter(|e| !twice(e)));
            if let SwitchScope::Cpus(cpus) = &seen.scope {
                recorded.extend(&cpus.0);
                timeline.interrupts_seen.extend(cpus.0.iter().filter(|_| seen.interrupts));
            }
        }
        events.sort_by_key(|e| e.at_ns);
        events.into_iter().for_each(|event| timeline.push(event));
        seen().flat_map(|s| away(s, begin_ns)).for_each(|event| timeline.was_away(event));
        timeline
    }

    /// Adds the event, before the timeline, since which a thread had no CPU when the timeline began.
    fn was_away(&mut self, event: SwitchEvent) {
        let SwitchEvent { at_ns, cpu, what } = event;
        let (thread, state) = match what {
            SwitchKind::Switch { out, preempted: true, limit, .. } => (out, State::Preempted(limit)),
            SwitchKind::Switch { out, state, .. } => (out, State::Asleep(state)),
            SwitchKind::Out { thread, preempted: true } => (thread, State::Preempted(None)),
            SwitchKind::Wake { thread, by, interrupt, packet, limit } => {
                let wake = Wake::of((at_ns, cpu), (by, interrupt), packet, limit);
                let wakes = self.wakes.entry(thread).or_default();
                // Two agents of a host record the same event.
                if wakes.first().is_none_or(|first| first.at_ns > at_ns) {
                    wakes.insert(0, wake);
                }
                (thread, State::Asleep(None))
            }
            SwitchKind::Frequency { khz } => return self.pace.had(at_ns, cpu, khz),
            _ => return,
        };
        let events = self.threads.entry(thread).or_default();
        if events.first().is_none_or(|(first_ns, _)| *first_ns > self.begin_ns) {
            events.insert(0, (at_ns, state));
        }
    }

    /// True if events were recorded for the whole time between two times.
    pub fn covers(&self, from_ns: i64, to_ns: i64) -> bool {
        self.begin_ns <= from_ns
            && to_ns <= self.end_ns
            && !self.gaps.iter().any(|(from, to)| *from < to_ns && from_ns < *to)
    }

    /// Adds an event after the others.
    #[cfg(test)]
    pub fn add(&mut self, event: SwitchEvent) {
        self.push(event);
    }

    fn push(&mut self, event: SwitchEvent) {
        let SwitchEvent { at_ns, cpu, what } = event;
        match what {
            SwitchKind::Switch { out, into, preempted, state, limit } => {
                // Perf events report a thread that ends without its id.
                let last = self.cpus.get(&cpu).and_then(|events| events.last());
                let out = last.filter(|_| out < 0).map_or(out, |(_, who)| *who);
                self.arrived(out, cpu, at_ns, into);
                self.leave(out, at_ns, cpu, if preempted { State::Preempted(limit) } else { State::Asleep(state) });
                // The run time of the policy deadline is a limit of one thread, not of others on its CPU.
                if let Some(limit) = limit.filter(|limit| *limit != CpuLimit::Deadline) {
                    self.limits.entry(cpu).or_default().push((at_ns, limit));
                }
                self.come(into, at_ns, cpu);
                self.cpus.entry(cpu).or_default().push((at_ns, into));
                self.acted.remove(&cpu);
            }
            SwitchKind::In(thread) => self.come(thread, at_ns, cpu),
            SwitchKind::Out { thread, preempted } => {
                self.leave(thread, at_ns, cpu, if preempted { State::Preempted(None) } else { State::Asleep(None) });
            }
            SwitchKind::Wake { thread, by, interrupt, packet, limit } => {
                let wake = Wake::of((at_ns, cpu), (by, interrupt), packet, limit);
                let already = self.acted.get(&cpu).is_some_and(|(who, _)| *who == by);
                if by > 0 && !already {
                    self.acted.insert(cpu, (by, at_ns));
                }
                self.wakes.entry(thread).or_default().push(wake);
            }
            SwitchKind::FairServer { .. } => self.served.entry(cpu).or_default().push(at_ns),
            SwitchKind::Limited { thread, .. } => self.held.entry(cpu).or_default().push((at_ns, thread)),
            SwitchKind::Moved { thread, to } => self.moves.entry(thread).or_default().push((at_ns, to)),
            SwitchKind::Interrupted { by, ns } => {
                let span = InterruptSpan { from_ns: at_ns, to_ns: at_ns + i64::from(ns), by };
                self.interrupts.entry(cpu).or_default().push(span);
            }
            SwitchKind::PageFault { .. } | SwitchKind::Reclaim { .. } => self.memory.push(&event),
            SwitchKind::NoTick { .. } | SwitchKind::Frequency { .. } => self.pace.push(&event),
        }
    }

    /// Adds the time at which a thread got a CPU, if only the time `at_ns` at which it left this CPU was recorded. The
    /// thread had the CPU from the beginning, or it was moved to the CPU while it ran, after the last context switch on
    /// this CPU and after it had left another CPU and was woken. Then a context switch was not reported: of the time before,
    /// it is not known which thread had the CPU. If the CPU was idle, the kernel did not report the switch from the idle
    /// thread: the thread ran at most since it was woken, and at least since another thread was woken while it had the CPU. With no
    /// wake-up of its own, it also had the CPU while `next`, the thread after it, was ready: a CPU does not stay idle then.
    fn arrived(&mut self, thread: i32, cpu: u32, at_ns: i64, next: i32) {
        let last = self.cpus.entry(cpu).or_default().last().copied();
        if last.is_some_and(|(_, who)| who == thread) {
            return;
        }
        if let Some((idle_ns, 0)) = last {
            let woken = |thread| self.wakes.get(&thread)?.last().map(|w| w.at_ns).filter(|at| *at > idle_ns);
            let acted = self.acted.get(&cpu).filter(|(who, at)| *who == thread && *at > idle_ns).map(|(_, at)| *at - 1);
            let own = woken(thread);
            let seen = own.or(acted);
            // A thread that ran later, or had another CPU before, can have been elsewhere at this time.
            let ran_since = |of: i32, at: i64| self.threads.get(&of)?.last().filter(|(last, _)| *last >= at);
            let on = |(_, state): &(i64, State)| if let State::On(on) = state { Some(*on) } else { None };
            let was_here =
                self.threads.get(&next).is_none_or(|e| e.iter().rev().find_map(on).is_none_or(|on| on == cpu));
            let is_long = |at: i64| at + LONGEST_IDLE_EXIT_NS < seen.unwrap_or(at_ns);
            let fits = |at: i64| is_long(at) && ran_since(next, at).or(ran_since(thread, at)).is_none();
            let ready = woken(next).filter(|at| own.is_none() && was_here && fits(*at));
            self.left_idle.entry(cpu).or_default().extend(ready);
            let since = ready.or(seen).unwrap_or(at_ns);
            let begins = [Some(since), seen.filter(|at| *at > since)].into_iter().flatten();
            self.cpus.entry(cpu).or_default().extend(begins.map(|at| (at, thread)));
            return self.come(thread, since, cpu);
        }
        let left = self.threads.get(&thread).and_then(|events| events.last()).map_or(self.begin_ns, |(at, _)| *at);
        let woken = self.wakes.get(&thread).and_then(|wakes| wakes.last()).map(|w| w.at_ns).filter(|at| *at > left);
        // At the same time as its last event, the thread would never have left its CPU.
        let since = last.map_or(self.begin_ns, |(at, _)| at.max(woken.unwrap_or(left + 1)).min(at_ns));
        let on_cpu = self.cpus.entry(cpu).or_default();
        if let Some((_, who)) = on_cpu.last_mut() {
            *who = UNKNOWN;
        }
        on_cpu.push((since, thread));
        if last.is_some() {
            self.come(thread, since, cpu);
        }
    }

    fn come(&mut self, thread: i32, at_ns: i64, cpu: u32) {
        self.threads.entry(thread).or_default().push((at_ns, State::On(cpu)));
    }

    fn leave(&mut self, thread: i32, at_ns: i64, cpu: u32, state: State) {
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

    /// The last time before the time `at`, or `at` itself, at which `thread` ran.
    pub fn ran_until(&self, thread: i32, at: i64) -> Option<i64> {
        let events = self.threads.get(&thread)?;
        let before = &events[..events.partition_point(|(t, _)| *t < at)];
        match before.last()? {
            (_, State::On(_)) => Some(at),
            (left, _) => Some(*left),
        }
    }

    /// For a thread that got a CPU at the time `came`: the time at which it had left a CPU before, and why. A thread
    /// that left its CPU before the beginning of the timeline counts as asleep.
    pub fn left(&self, thread: i32, came: i64) -> (i64, Left) {
        match self.before(thread, came) {
            Some((at, State::Preempted(limit))) => (at, Left::Ready(limit)),
            Some((at, State::Asleep(state))) => (at, Left::Asleep(state)),
            Some((at, State::On(_))) => (at, Left::Asleep(None)),
            None => (self.begin_ns, Left::Asleep(None)),
        }
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
        let states = self.threads.get(who)?;
        let after = states.get(states.partition_point(|(t, _)| *t < came)).filter(|(t, _)| *t == came)?;
        Some((*who, matches!(after.1, State::Preempted(_))))
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

    /// The times between two times in which `thread` was ready to run and had no CPU, cut off at these times.
    pub fn kept_ready(&self, thread: i32, from_ns: i64, to_ns: i64) -> Vec<(i64, i64, Idle)> {
        let Some(events) = self.threads.get(&thread) else { return Vec::new() };
        let first = events.partition_point(|(at, _)| *at <= from_ns);
        // A thread that comes first slept before: had it been ready, it would be known.
        let comes = first == 0 && matches!(events.first(), Some((at, State::On(_))) if *at > self.begin_ns);
        let slept = comes.then_some((self.begin_ns, State::Asleep(None), events.first()));
        let known = events.iter().enumerate().skip(first.saturating_sub(1));
        let known = known
            .take_while(|(_, (left, _))| *left < to_ns)
            .map(|(n, (left, state))| (*left, *state, events.get(n + 1)));
        let mut found = Vec::new();
        for (left, state, next) in slept.into_iter().chain(known) {
            let came = next.map_or(self.end_ns, |(at, _)| *at);
            let (since, limit) = match state {
                State::On(_) => continue,
                State::Preempted(limit) => (left, limit),
                State::Asleep(_) => match self.woken(thread, left, came) {
                    Some(wake) => (wake.at_ns, wake.limit),
                    None => continue,
                },
            };
            let cpu = match next {
                Some((_, State::On(cpu))) => Some(*cpu),
                _ => self.ran_on(thread, came).map(|(_, cpu)| cpu),
            };
            let (from, to) = (since.max(from_ns), came.min(to_ns));
            found.extend(cpu.filter(|_| from < to).map(|cpu| (from, to, Idle::Ready { cpu, limit })));
        }
        found
    }

    /// The time since which the thread that woke `thread` at the time `woken_ns` had kept a lock from it and had run on `cpu`
    /// without a pause; `None` if `thread` did not wait for a lock of the kernel, or if an interrupt woke it. (On a
    /// real-time kernel, who lets go of such a lock wakes who waits for it.)
    pub fn locked_out_since(&self, thread: i32, woken_ns: i64, cpu: u32) -> Option<i64> {
        let (left, State::Asleep(Some(SleepState::KernelLock))) = self.before(thread, woken_ns)? else { return None };
        let wake = self.woken(thread, left, woken_ns).filter(|wake| wake.at_ns == woken_ns)?;
        let (since, holders) = self.running(wake.by?, woken_ns)?;
        (holders == cpu).then_some(since.max(left))
    }

    /// The times in which `thread` slept in this state, until it was woken, cut off at the times `from_ns` and `to_ns`.
    pub fn asleep_within(&self, thread: i32, state: SleepState, (from_ns, to_ns): (i64, i64)) -> Vec<(i64, i64)> {
        let Some(events) = self.threads.get(&thread) else { return Vec::new() };
        let first = events.partition_point(|(at, _)| *at <= from_ns).saturating_sub(1);
        let within = events.iter().enumerate().skip(first).take_while(|(_, (left, _))| *left < to_ns);
        let spans = within.filter(|(_, (_, s))| *s == State::Asleep(Some(state))).map(|(n, (left, _))| {
            let came = events.get(n + 1).map_or(self.end_ns, |(at, _)| *at);
            let until = self.woken(thread, *left, came).map_or(came, |wake| wake.at_ns);
            ((*left).max(from_ns), until.min(to_ns))
        });
        spans.filter(|(from, to)| from < to).collect()
    }

    /// The sleep of `thread` at the time `at`: its begin, and the time at which the thread was woken; `None` if the thread does not
    /// sleep then, or if its wake-up or a part of this time was not recorded.
    pub fn sleep_at(&self, thread: i32, at: i64) -> Option<(i64, i64)> {
        let (left, State::Asleep(_)) = self.before(thread, at + 1)? else { return None };
        let events = self.threads.get(&thread)?;
        let (came, _) = events.get(events.partition_point(|(t, _)| *t <= at))?;
        let woken = self.woken(thread, left, *came)?.at_ns;
        (at < woken && self.covers(left.max(self.begin_ns), woken)).then_some((left, woken))
    }

    /// The time since which none of `threads` has run, seen from the time `at`; `None` if one of them runs, or if no
    /// run of them was recorded.
    pub fn idle_since(&self, threads: impl Iterator<Item = i32>, at: i64) -> Option<i64> {
        let last: Vec<(i64, State)> = threads.filter_map(|t| self.before(t, at)).collect();
        let runs = last.iter().any(|(_, state)| matches!(state, State::On(_)));
        last.iter().map(|(since, _)| *since).max().filter(|_| !runs)
    }

    /// True if the host of the guests was recorded in the trial, and not in the whole time span.
    pub fn misses_host(&self) -> bool {
        self.misses_host
    }

    /// True if the record of context switches also contains the wake-ups of threads.
    pub fn sees_wakes(&self) -> bool {
        self.wakes_seen
    }

    /// True if the record tells wake-ups by packets from wake-ups by other interrupts.
    pub fn sees_packets(&self) -> bool {
        self.packets_seen
    }

    /// True if the events show whether a thread of this end waited for a CPU or slept.
    pub fn sees_waits(&self, end: &str) -> bool {
        self.waits_seen.contains(end)
    }

    /// True if the interrupts of `cpu` are recorded.
    pub fn sees_interrupts(&self, cpu: u32) -> bool {
        self.interrupts_seen.contains(&cpu)
    }

    /// True if the threads that ran on `cpu` are recorded.
    pub fn sees_cpu(&self, cpu: u32) -> bool {
        self.cpus.contains_key(&cpu)
    }

    /// The threads that ran on `cpu` between two times, in order: begin and end in ns, and the thread id (0 = idle), or
    /// [`UNKNOWN`].
    pub fn occupants(&self, cpu: u32, from_ns: i64, to_ns: i64) -> Vec<(i64, i64, i32)> {
        let Some(events) = self.cpus.get(&cpu) else { return Vec::new() };
        let first = events.partition_point(|(t, _)| *t <= from_ns).saturating_sub(1);
        let next = events[first..].iter().skip(1).map(|(t, _)| *t).chain([i64::MAX]);
        let clipped = |((from, who), to): (&(i64, i32), i64)| ((*from).max(from_ns), to.min(to_ns), *who);
        let within = events[first..].iter().zip(next).take_while(|((from, _), _)| *from < to_ns);
        within.map(clipped).filter(|(from, to, _)| from < to).collect()
    }

    /// The thread that had `cpu` at the time `at` (0 = idle); `None` if it is not known.
    pub fn had(&self, cpu: u32, at: i64) -> Option<i32> {
        let events = self.cpus.get(&cpu)?;
        events[..events.partition_point(|(t, _)| *t <= at)].last().map(|(_, who)| *who).filter(|who| *who != UNKNOWN)
    }

    /// Whether the fair server had chosen the thread that ran on `cpu` from the time `at` on.
    pub fn is_served(&self, cpu: u32, at: i64) -> bool {
        self.began(cpu, at, &self.served).is_some()
    }

    /// If the thread that had `cpu` at the time `at` is only known to have had it because the CPU cannot have stayed idle: since when.
    pub fn left_idle(&self, cpu: u32, at: i64) -> Option<i64> {
        self.began(cpu, at, &self.left_idle)
    }

    /// The time at which the thread that had `cpu` at the time `at` began to run, if it is one of these times of the CPU.
    fn began(&self, cpu: u32, at: i64, times: &BTreeMap<u32, Vec<i64>>) -> Option<i64> {
        let events = self.cpus.get(&cpu)?;
        let (came, _) = *events[..events.partition_point(|(t, _)| *t <= at)].last()?;
        times.get(&cpu)?.binary_search(&came).is_ok().then_some(came)
    }

    /// For a thread that waited between two times and then got `cpu`: the CPUs for which it waited, the last one first.
    pub fn waited_for(&self, thread: i32, from_ns: i64, to_ns: i64, cpu: u32) -> Vec<(i64, i64, u32)> {
        let moves = self.moves.get(&thread).map(Vec::as_slice).unwrap_or_default();
        let moves = &moves[..moves.partition_point(|(at, _)| *at < to_ns)];
        let (mut spans, mut end, mut cpu) = (Vec::new(), to_ns, cpu);
        for (n, (at, _)) in moves.iter().enumerate().rev().take_while(|(_, (at, _))| *at > from_ns) {
            spans.push((*at, end, cpu));
            let before = n.checked_sub(1).map(|n| moves[n]);
            let ran = self.ran_on(thread, *at);
            // The later of both: the thread can have run since it was moved before.
            cpu = before.into_iter().chain(ran).max().map_or(cpu, |(_, cpu)| cpu);
            end = *at;
        }
        spans.push((from_ns, end, cpu));
        spans
    }

    /// The time at which `thread` got a CPU last before the time `at`, and that CPU.
    fn ran_on(&self, thread: i32, at: i64) -> Option<(i64, u32)> {
        let events = self.threads.get(&thread)?;
        let before = events[..events.partition_point(|(t, _)| *t < at)].iter().rev();
        before.filter_map(|(t, state)| if let State::On(cpu) = state { Some((*t, *cpu)) } else { None }).next()
    }

    /// For a thread that a limit of CPU time kept from `cpu` between two times: the latest time at which the limit can
    /// have ended. If another thread had the CPU at the end, it may have had the CPU instead of the limit.
    pub fn freed(&self, cpu: u32, from_ns: i64, to_ns: i64) -> i64 {
        match self.occupants(cpu, from_ns, to_ns).last() {
            Some((begin_ns, _, tid)) if *tid != 0 => *begin_ns,
            _ => to_ns,
        }
    }

    /// The last time between two times at which a limit of CPU time was seen to keep a thread that is `of` the same group
    /// from `cpu`.
    pub fn held(&self, cpu: u32, (from_ns, to_ns): (i64, i64), of: impl Fn(i32) -> bool) -> Option<i64> {
        let held = self.held.get(&cpu)?;
        let before = held[..held.partition_point(|(at, _)| *at <= to_ns)].iter().rev();
        before.take_while(|(at, _)| *at >= from_ns).find(|(_, thread)| of(*thread)).map(|(at, _)| *at)
    }

    /// The limit of CPU time because of which a thread left `cpu` last between two times.
    pub fn limit(&self, cpu: u32, from_ns: i64, to_ns: i64) -> Option<CpuLimit> {
        let limits = self.limits.get(&cpu)?;
        let before = limits[..limits.partition_point(|(at, _)| *at <= to_ns)].last();
        before.filter(|(at, _)| *at >= from_ns).map(|(_, limit)| *limit)
    }

    /// Whether `cpu` had no thread at the time `at` although a real-time thread was ready that had left it last: the kernel had
    /// stopped the real-time threads. `is_real_time`: whether a thread is a real-time thread.
    pub fn stops_real_time(&self, cpu: u32, at: i64, is_real_time: impl Fn(i32) -> bool) -> bool {
        let Some(events) = self.cpus.get(&cpu) else { return false };
        let before = &events[..events.partition_point(|(t, _)| *t <= at)];
        let mut pairs = before.windows(2).rev().take(MOST_OF_LOWER_THREADS);
        let last = pairs.find(|pair| pair[0].1 == UNKNOWN || is_real_time(pair[0].1));
        let ready_since = |thread: i32| {
            let states = self.threads.get(&thread)?;
            let state = states[..states.partition_point(|(t, _)| *t <= at)].last()?;
            matches!(state.1, State::Preempted(_)).then_some(state.0)
        };
        last.is_some_and(|pair| ready_since(pair[0].1) == Some(pair[1].0) && self.covers(pair[1].0, at))
    }

    /// The interrupts on `cpu` between two times, clipped to them, in the order of their begin.
    pub fn interrupts(&self, cpu: u32, from_ns: i64, to_ns: i64) -> Vec<InterruptSpan> {
        let Some(spans) = self.interrupts.get(&cpu) else { return Vec::new() };
        let before = spans[..spans.partition_point(|s| s.from_ns < to_ns)].iter();
        let clipped =
            |s: &InterruptSpan| InterruptSpan { from_ns: s.from_ns.max(from_ns), to_ns: s.to_ns.min(to_ns), by: s.by };
        before.map(clipped).filter(|s| s.from_ns < s.to_ns).collect()
    }

    /// The time at which `thread` got a CPU next, from the time `at` on, and the CPU; `None` if it did not.
    pub fn comes(&self, thread: i32, at: i64) -> Option<(i64, u32)> {
        let events = self.threads.get(&thread)?;
        let after = events[events.partition_point(|(t, _)| *t < at)..].iter();
        after.filter_map(|(t, state)| if let State::On(cpu) = state { Some((*t, *cpu)) } else { None }).next()
    }

    /// Time for which `thread` had no CPU before it got one between two times, but for the time that ended when it got a
    /// CPU at the time `except`, ns.
    pub fn away_ns(&self, thread: i32, (from_ns, to_ns): (i64, i64), except: i64) -> i64 {
        let Some(events) = self.threads.get(&thread) else { return 0 };
        let left = |n: usize| n.checked_sub(1).map_or(self.begin_ns, |before| events[before].0);
        let came = events.iter().enumerate().filter(|(_, (_, state))| matches!(state, State::On(_)));
        let came = came.filter(|(_, (at, _))| from_ns < *at && *at <= to_ns && *at != except);
        came.map(|(n, (at, _))| at - left(n)).sum()
    }

    /// Whether this time span overlaps the timeline.
    pub fn overlaps(&self, from_ns: i64, to_ns: i64) -> bool {
        self.begin_ns <= to_ns && from_ns <= self.end_ns
    }

    /// Duration of the interrupt of this kind that had `cpu` at the time `at`, ns; 0 if none is known.
    pub fn lasted_ns(&self, cpu: u32, by: Interruption, at: i64) -> i64 {
        let spans = self.interrupts.get(&cpu).map_or(&[][..], Vec::as_slice);
        let before = spans[..spans.partition_point(|s| s.from_ns <= at)].iter().rev();
        before.take(MOST_NESTED).find(|s| s.by == by && at < s.to_ns).map_or(0, |s| s.to_ns - s.from_ns)
    }
}

/// Whether all events of a time span were recorded.
fn is_whole(seen: &Switches, (begin_ns, end_ns): (i64, i64)) -> bool {
    let overlaps = |(from, to): &(i64, i64)| *from < end_ns && begin_ns < *to;
    seen.windows.iter().any(|(from, to)| *from <= begin_ns && end_ns <= *to) && !seen.gaps.iter().any(overlaps)
}

/// Whether an event belongs to a measured thread, and not to the CPU on which it was recorded.
fn is_of_a_thread(event: &SwitchEvent) -> bool {
    matches!(
        event.what,
        SwitchKind::Wake { .. }
            | SwitchKind::Moved { .. }
            | SwitchKind::PageFault { .. }
            | SwitchKind::Reclaim { .. }
            | SwitchKind::Limited { .. }
    )
}
