//! Follows the threads that carried a message back in time, from the end of a leg to its begin.

use crate::why::timeline::{Left, Timeline, Wake};
use tailbound_document::Evidence;
use tailbound_model::{CpuLimit, SleepState};

/// A time span in which one thread carried a message, or waited or slept before it carried the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub thread: i32,
    pub what: What,
}

/// What a thread did in one time span of the delay of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The thread was ready to run and waited for the CPU `cpu`, on which it ran afterwards. If the begin of the wait is
    /// only bounded, the evidence is [`Evidence::AtMost`].
    Waited { cpu: u32, evidence: Evidence, limited: Option<Limited> },
    /// The thread slept inside its send call until the thread `by` of its process woke it, which had not waited for a
    /// message itself: `by` held something that the call needs.
    Locked { by: i32 },
    /// The thread ran on the CPU `cpu` in the whole time span.
    Ran { cpu: u32 },
    /// The thread slept in the whole time span, in this state of the kernel, if the state was recorded; in a page fault
    /// whatever the state was.
    Slept(Option<SleepState>),
}

/// A limit of CPU time that kept a thread from its CPU, at least until the time `until_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limited {
    pub limit: CpuLimit,
    pub until_ns: i64,
}

/// A send call: its begin and end, and the thread that makes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub begun_ns: i64,
    pub ended_ns: i64,
    pub thread: i32,
}

/// What is known about threads beside their events.
pub(crate) struct Known<'a> {
    /// Whether this thread belongs to an end.
    pub is_of_an_end: &'a dyn Fn(i32) -> bool,
    /// Whether both threads belong to the same end.
    pub same_end: &'a dyn Fn(i32, i32) -> bool,
    /// Whether the scheduler prefers the first thread to the second one.
    pub outranks: &'a dyn Fn(i32, i32) -> bool,
}

/// Largest number of runs of threads that are followed back from the end of a leg; a message passes through fewer.
const MOST_HOPS: usize = 100;

/// Follows `thread`, which runs at the time `end`, back to the time `begin`. If a thread of an end woke `thread`, that
/// thread is followed back from the time of the wake-up. The latest time span comes first in the result.
pub(crate) fn back(
    timeline: &Timeline,
    thread: i32,
    (begin, end): (i64, i64),
    call: Option<Call>,
    known: &Known,
) -> Vec<Stretch> {
    let mut walk = Walk { timeline, begin, thread, way: Vec::new() };
    let mut at = end;
    for _ in 0..MOST_HOPS {
        let Some((came, cpu)) = timeline.running(walk.thread, at) else { break };
        walk.push(came, at, What::Ran { cpu });
        if came <= begin {
            break;
        }
        let (left, why) = timeline.left(walk.thread, came);
        at = match why {
            Left::Ready(limit) => {
                walk.push_wait((left, came), cpu, Evidence::Seen, limit);
                left
            }
            Left::Asleep(state) => {
                // A thread that sleeps in a page fault does not wait for a message, and who wakes it did not send one.
                let faulted = timeline.in_page_fault(walk.thread, left);
                let state = if faulted { Some(SleepState::PageFault) } else { state };
                let wake = timeline.woken(walk.thread, left, came);
                let (ready, evidence) = match wake {
                    Some(wake) => (wake.at_ns, Evidence::Seen),
                    None => walk.ready(left, came, cpu, known),
                };
                walk.push_wait((ready, came), cpu, evidence, wake.and_then(|w| w.limit));
                match walk.before(left, ready, wake.filter(|_| !faulted), call, known) {
                    Some(at) => at,
                    None => {
                        walk.push(left, ready, What::Slept(state));
                        if !is_held_up(state) {
                            break;
                        }
                        left
                    }
                }
            }
        };
        if at <= begin {
            break;
        }
    }
    walk.way
}

/// The way of a message so far, followed back in time.
struct Walk<'a> {
    timeline: &'a Timeline,
    begin: i64,
    /// The thread that is followed now.
    thread: i32,
    way: Vec<Stretch>,
}

impl Walk<'_> {
    fn push(&mut self, from: i64, to: i64, what: What) {
        let (begin_ns, end_ns) = (from.max(self.begin), to);
        if begin_ns < end_ns {
            self.way.push(Stretch { begin_ns, end_ns, thread: self.thread, what });
        }
    }

    /// Adds a wait for a CPU, or for several CPUs if the thread was moved meanwhile.
    fn push_wait(&mut self, (from, to): (i64, i64), cpu: u32, evidence: Evidence, limit: Option<CpuLimit>) {
        for (from, to, cpu) in self.timeline.waited_for(self.thread, from, to, cpu) {
            let limited = limit.map(|limit| Limited { limit, until_ns: self.timeline.freed(cpu, from, to) });
            self.push(from, to, What::Waited { cpu, evidence, limited });
        }
    }

    /// The time at which a thread became ready whose wake-up was not recorded: an idle CPU caused it, or wake-ups are not
    /// recorded at all. If the thread preempted a thread that does not outrank it, it did not wait; if the CPU became
    /// free by itself, the thread had waited for at most as long as the CPU was busy.
    fn ready(&self, left: i64, came: i64, cpu: u32, known: &Known) -> (i64, Evidence) {
        let sees_wakes = self.timeline.sees_wakes();
        match self.timeline.replaced(cpu, came) {
            Some((who, true)) if sees_wakes && !(known.outranks)(who, self.thread) => (came, Evidence::Inferred),
            _ => {
                let evidence = if sees_wakes { Evidence::Inferred } else { Evidence::AtMost };
                (self.timeline.busy_since(self.thread, cpu, came, left), evidence)
            }
        }
    }

    /// The time from which the way goes on before a sleep from `left` to `ready`; `None` if it ends with this sleep.
    fn before(&mut self, left: i64, ready: i64, wake: Option<Wake>, call: Option<Call>, known: &Known) -> Option<i64> {
        let wake = wake?;
        let by = wake.by.filter(|by| *by != self.thread && (known.is_of_an_end)(*by))?;
        let in_call = call.is_some_and(|c| c.thread == self.thread && c.begun_ns < ready && ready <= c.ended_ns);
        if in_call && (known.same_end)(by, self.thread) && held(self.timeline, by, wake.at_ns, known) {
            self.push(left, ready, What::Locked { by });
            return Some(left);
        }
        self.timeline.running(by, wake.at_ns)?;
        self.thread = by;
        Some(wake.at_ns)
    }
}

/// Whether a thread that slept in this state had the message already: it did not wait for one.
fn is_held_up(state: Option<SleepState>) -> bool {
    !matches!(state, None | Some(SleepState::Interruptible | SleepState::Ended))
}

/// Whether `holder`, which runs at the time `at`, got its CPU for another reason than a message: a packet or a thread of
/// another process did not wake it before.
fn held(timeline: &Timeline, holder: i32, mut at: i64, known: &Known) -> bool {
    for _ in 0..MOST_HOPS {
        let Some((came, _)) = timeline.running(holder, at) else { return false };
        match timeline.left(holder, came) {
            (left, Left::Ready(_)) => at = left,
            (left, Left::Asleep(_)) => {
                let wake = timeline.woken(holder, left, came).filter(|_| timeline.sees_packets());
                return wake.is_some_and(|w| !w.packet && w.by.is_none_or(|by| (known.same_end)(by, holder)));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{Attribution, CpuList, RecordedBy, Recorder, SwitchEvent, SwitchKind, SwitchScope, Switches};

    const KNOWN: Known = Known {
        is_of_an_end: &|tid| tid == SENDER || tid == TAKER || tid == KEEPER,
        same_end: &|one, other| (one == KEEPER || one == TAKER) && (other == KEEPER || other == TAKER),
        outranks: &|_, _| false,
    };
    const SENDER: i32 = 10;
    /// Another thread of the taker's process.
    const KEEPER: i32 = 21;
    const TAKER: i32 = 20;
    const HOG: i32 = 30;

    fn switch(at_ns: i64, cpu: u32, out: i32, into: i32, preempted: bool) -> SwitchEvent {
        SwitchEvent { at_ns, cpu, what: SwitchKind::Switch { out, into, preempted, state: None, limit: None } }
    }

    fn wake(at_ns: i64, cpu: u32, by: i32, interrupt: bool) -> SwitchEvent {
        SwitchEvent { at_ns, cpu, what: SwitchKind::Wake { thread: TAKER, by, interrupt, packet: false, limit: None } }
    }

    fn seen(wakes: bool, events: &[SwitchEvent]) -> Timeline {
        let scope = SwitchScope::Cpus(CpuList([0, 1].into()));
        let recorder = Recorder {
            level: Attribution::Machine,
            by: RecordedBy::Bpf,
            instead: None,
            cost: None,
            others: Vec::new(),
        };
        let (windows, events) = (vec![(0, 1000)], events.to_vec());
        let seen = Switches { scope, wakes, windows, events, recorder: Some(recorder), ..Switches::default() };
        Timeline::of(&[seen], (0, 1000))
    }

    fn waited(cpu: u32, evidence: Evidence) -> What {
        What::Waited { cpu, evidence, limited: None }
    }

    fn way(timeline: &Timeline) -> Vec<(i32, What, i64, i64)> {
        let way = back(timeline, TAKER, (100, 900), None, &KNOWN);
        way.iter().map(|s| (s.thread, s.what, s.begin_ns, s.end_ns)).collect()
    }

    #[test]
    fn the_way_leads_over_who_woke_whom() {
        let events = |interrupt| {
            [
                switch(50, 0, 0, SENDER, true),
                switch(60, 1, 0, HOG, true),
                wake(300, 0, SENDER, interrupt),
                switch(310, 0, SENDER, 0, false),
                switch(800, 1, HOG, TAKER, false),
            ]
        };
        let timeline = seen(true, &events(false));
        let expected = [
            (TAKER, What::Ran { cpu: 1 }, 800, 900),
            (TAKER, waited(1, Evidence::Seen), 300, 800),
            (SENDER, What::Ran { cpu: 0 }, 100, 300),
        ];
        assert_eq!(way(&timeline), expected);
        assert_eq!(timeline.occupants(1, 300, 800), [(300, 800, HOG)]);
        // An interrupt that came while the sender ran has nothing to do with the sender.
        assert_eq!(way(&seen(true, &events(true)))[2], (TAKER, What::Slept(None), 100, 300));
        // Without recorded wake-ups, the thread cannot have waited for longer than the CPU was busy.
        let at_most = waited(1, Evidence::AtMost);
        let timeline = seen(false, &[switch(60, 1, 0, HOG, true), switch(800, 1, HOG, TAKER, false)]);
        assert_eq!(way(&timeline)[1], (TAKER, at_most, 100, 800));
        let timeline = seen(false, &[switch(700, 1, 0, HOG, true), switch(800, 1, HOG, TAKER, false)]);
        assert_eq!(way(&timeline)[1..], [(TAKER, at_most, 700, 800), (TAKER, What::Slept(None), 100, 700)]);
    }

    #[test]
    fn who_is_preempted_waits_and_who_sleeps_does_not() {
        let events = [
            switch(200, 1, TAKER, HOG, true),
            switch(400, 1, HOG, TAKER, false),
            switch(500, 1, TAKER, 0, false),
            wake(790, 1, HOG, false),
            switch(800, 1, 0, TAKER, false),
        ];
        let expected = [
            (TAKER, What::Ran { cpu: 1 }, 800, 900),
            (TAKER, waited(1, Evidence::Seen), 790, 800),
            // An unknown thread woke this thread, so the reason is not known.
            (TAKER, What::Slept(None), 500, 790),
        ];
        assert_eq!(way(&seen(true, &events)), expected);
        let expected = [
            (TAKER, What::Ran { cpu: 1 }, 400, 900),
            (TAKER, waited(1, Evidence::Seen), 200, 400),
            (TAKER, What::Ran { cpu: 1 }, 100, 200),
        ];
        assert_eq!(way(&seen(true, &events[..2])), expected);
    }

    /// Tests wake-ups by idle CPUs, which are not recorded. If the thread that ran on the CPU gave up the CPU by
    /// itself, the woken thread counts as having waited for it; if it was preempted, the woken thread counts as not
    /// having waited.
    #[test]
    fn a_wake_up_that_is_not_recorded_is_concluded_from_who_left_the_cpu() {
        let found =
            |preempted| way(&seen(true, &[switch(300, 1, 0, HOG, true), switch(800, 1, HOG, TAKER, preempted)]));
        assert_eq!(found(false)[1], (TAKER, waited(1, Evidence::Inferred), 300, 800));
        assert_eq!(found(true)[1], (TAKER, What::Slept(None), 100, 800));
    }

    fn woken(thread: i32, at_ns: i64, by: i32, (interrupt, packet): (bool, bool)) -> SwitchEvent {
        SwitchEvent { at_ns, cpu: 0, what: SwitchKind::Wake { thread, by, interrupt, packet, limit: None } }
    }

    /// The taker sleeps in its send call from 200 to 700, until another thread of its process wakes it.
    fn locked(keeper: SwitchEvent, call_begins: i64) -> Vec<(i32, What, i64, i64)> {
        let events = [
            switch(200, 1, TAKER, 0, false),
            keeper,
            switch(650, 0, 0, KEEPER, false),
            woken(TAKER, 700, KEEPER, (false, false)),
            switch(710, 1, 0, TAKER, false),
        ];
        let call = Call { begun_ns: call_begins, ended_ns: 800, thread: TAKER };
        let way = back(&seen(true, &events), TAKER, (100, 900), Some(call), &KNOWN);
        way.iter().map(|s| (s.thread, s.what, s.begin_ns, s.end_ns)).collect()
    }

    #[test]
    fn a_thread_that_was_not_woken_for_a_message_held_a_lock() {
        let expected = [
            (TAKER, What::Ran { cpu: 1 }, 710, 900),
            (TAKER, waited(1, Evidence::Seen), 700, 710),
            (TAKER, What::Locked { by: KEEPER }, 200, 700),
            (TAKER, What::Ran { cpu: 1 }, 100, 200),
        ];
        // A timer woke the other thread.
        assert_eq!(locked(woken(KEEPER, 640, 0, (true, false)), 150), expected);
        // A packet, or a thread of another process, woke the other thread: it passes a message on.
        assert_eq!(locked(woken(KEEPER, 640, 0, (true, true)), 150)[2].0, KEEPER);
        assert_eq!(locked(woken(KEEPER, 640, HOG, (false, false)), 150)[2].0, KEEPER);
        // The thread did not sleep in its call.
        assert_eq!(locked(woken(KEEPER, 640, 0, (true, false)), 750)[2].0, KEEPER);
    }

    #[test]
    fn a_limit_of_cpu_time_lasted_until_another_thread_got_the_cpu_last() {
        let limit = Some(CpuLimit::Quota);
        let left = SwitchKind::Switch { out: TAKER, into: HOG, preempted: true, state: None, limit };
        let way_with = |last: i32| {
            let left = SwitchEvent { at_ns: 200, cpu: 1, what: left };
            way(&seen(true, &[left, switch(600, 1, HOG, last, false), switch(800, 1, last, TAKER, false)]))[1]
        };
        let limited = |until_ns| Some(Limited { limit: CpuLimit::Quota, until_ns });
        let waited = |limited| (TAKER, What::Waited { cpu: 1, evidence: Evidence::Seen, limited }, 200, 800);
        assert_eq!(way_with(0), waited(limited(800)));
        // The limit can have ended when the last thread before the taker got the CPU.
        assert_eq!(way_with(HOG + 1), waited(limited(600)));
    }

    #[test]
    fn a_thread_that_is_moved_waits_for_the_cpu_to_which_it_was_moved() {
        let moved = |at_ns, to| SwitchEvent { at_ns, cpu: 1, what: SwitchKind::Moved { thread: TAKER, to } };
        let timeline = seen(
            true,
            &[
                switch(100, 0, 0, TAKER, false),
                switch(150, 0, TAKER, 0, false),
                wake(290, 0, 0, true),
                moved(300, 1),
                moved(800, 0),
                switch(810, 0, 0, TAKER, false),
            ],
        );
        let expected = [(800, 810, 0), (300, 800, 1), (290, 300, 0)];
        assert_eq!(timeline.waited_for(TAKER, 290, 810, 0), expected);
        let waits = way(&timeline).into_iter().filter(|w| matches!(w.1, What::Waited { .. }));
        assert_eq!(waits.map(|w| (w.2, w.3)).collect::<Vec<_>>(), [(800, 810), (300, 800), (290, 300)]);
    }

    #[test]
    fn a_page_fault_interrupts_the_work_of_a_thread_and_is_no_wait_for_a_message() {
        let way_with = |state, waker: i32, fault: Option<SwitchKind>| {
            let asleep = SwitchKind::Switch { out: TAKER, into: 0, preempted: false, state, limit: None };
            let mut events = vec![
                switch(50, 0, 0, SENDER, true),
                switch(150, 1, TAKER, 0, false),
                wake(290, 1, 0, true),
                switch(300, 1, 0, TAKER, false),
                SwitchEvent { at_ns: 400, cpu: 1, what: asleep },
                wake(800, 0, waker, waker == 0),
                switch(800, 1, 0, TAKER, false),
            ];
            events.extend(fault.map(|what| SwitchEvent { at_ns: 350, cpu: 1, what }));
            way(&seen(true, &events))
        };
        let expected = [
            (TAKER, What::Ran { cpu: 1 }, 800, 900),
            (TAKER, What::Slept(Some(SleepState::PageFault)), 400, 800),
            (TAKER, What::Ran { cpu: 1 }, 300, 400),
            (TAKER, waited(1, Evidence::Seen), 290, 300),
            (TAKER, What::Slept(None), 150, 290),
        ];
        assert_eq!(way_with(Some(SleepState::PageFault), 0, None), expected);
        // If the page fault itself is recorded, neither the state nor the thread that woke this one matters.
        let fault = SwitchKind::PageFault { thread: TAKER, ns: 500, disk: true };
        assert_eq!(way_with(None, SENDER, Some(fault)), expected);
    }

    #[test]
    fn a_thread_that_ends_keeps_its_id() {
        let timeline = seen(true, &[switch(100, 1, 0, HOG, false), switch(800, 1, -1, TAKER, false)]);
        assert_eq!(timeline.occupants(1, 200, 800), [(200, 800, HOG)]);
    }

    #[test]
    fn a_time_span_without_records_is_not_covered() {
        let scope = SwitchScope::OwnThreads;
        let seen = Switches { scope, windows: vec![(0, 1000)], gaps: vec![(850, 860)], ..Switches::default() };
        let timeline = Timeline::of(std::slice::from_ref(&seen), (0, 1000));
        assert!(!timeline.covers(100, 900) && timeline.covers(100, 800) && !timeline.covers(900, 1100));
    }
}
