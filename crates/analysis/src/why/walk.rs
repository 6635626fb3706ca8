//! Follows the threads that carried a message back in time, from the end of a leg to its begin.

use crate::why::timeline::{Asleep, Timeline};
use tailbound_document::Evidence;
use tailbound_model::SleepState;

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
    Waited { cpu: u32, evidence: Evidence },
    /// The thread ran on the CPU `cpu` in the whole time span.
    Ran { cpu: u32 },
    /// The thread slept in the whole time span, in this state of the kernel, if the state was recorded.
    Slept(Option<SleepState>),
}

/// Largest number of runs of threads that are followed back from the end of a leg; a message passes through fewer.
const MOST_HOPS: usize = 100;

/// Follows `thread`, which runs at the time `end`, back to the time `begin`. If another thread woke `thread`, and
/// `known` returns true for the other thread, the other thread is followed back from the time of the wake-up. The
/// latest time span comes first in the result.
pub(crate) fn back(
    timeline: &Timeline,
    thread: i32,
    (begin, end): (i64, i64),
    known: &dyn Fn(i32) -> bool,
    outranks: &dyn Fn(i32, i32) -> bool,
) -> Vec<Stretch> {
    let mut way = Vec::new();
    let (mut thread, mut at) = (thread, end);
    for _ in 0..MOST_HOPS {
        let Some((came, cpu)) = timeline.running(thread, at) else { break };
        let mut push = |from: i64, to: i64, what| {
            let (begin_ns, end_ns) = (from.max(begin), to);
            if begin_ns < end_ns {
                way.push(Stretch { begin_ns, end_ns, thread, what });
            }
        };
        push(came, at, What::Ran { cpu });
        if came <= begin {
            break;
        }
        let (left, asleep) = timeline.left(thread, came);
        let Some(Asleep(state)) = asleep else {
            push(left, came, What::Waited { cpu, evidence: Evidence::Seen });
            at = left;
            if at <= begin {
                break;
            }
            continue;
        };
        let wake = timeline.woken(thread, left, came);
        let (ready, evidence) = match wake {
            Some(wake) => (wake.at_ns, Evidence::Seen),
            // The wake-up was not recorded: an idle CPU caused it, or wake-ups are not recorded at all. If the thread
            // preempted a thread that does not outrank it, it did not wait; if the CPU became free by itself, the thread
            // had waited for at most as long as the CPU was busy.
            None => match timeline.replaced(cpu, came) {
                Some((who, true)) if timeline.sees_wakes() && !outranks(who, thread) => (came, Evidence::Inferred),
                _ => {
                    let evidence = if timeline.sees_wakes() { Evidence::Inferred } else { Evidence::AtMost };
                    (timeline.busy_since(thread, cpu, came, left), evidence)
                }
            },
        };
        push(ready, came, What::Waited { cpu, evidence });
        let by = wake.and_then(|w| Some((w.at_ns, w.by?)));
        match by.filter(|(at, by)| *by != thread && known(*by) && timeline.running(*by, *at).is_some()) {
            Some((woken, by)) => (thread, at) = (by, woken),
            None => {
                push(left, ready, What::Slept(state));
                break;
            }
        }
        if at <= begin {
            break;
        }
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{CpuList, SwitchEvent, SwitchKind, SwitchScope, Switches};

    const SENDER: i32 = 10;
    const TAKER: i32 = 20;
    const HOG: i32 = 30;

    fn switch(at_ns: i64, cpu: u32, out: i32, into: i32, preempted: bool) -> SwitchEvent {
        SwitchEvent { at_ns, cpu, what: SwitchKind::Switch { out, into, preempted, state: None } }
    }

    fn wake(at_ns: i64, cpu: u32, by: i32, interrupt: bool) -> SwitchEvent {
        SwitchEvent { at_ns, cpu, what: SwitchKind::Wake { thread: TAKER, by, interrupt } }
    }

    fn seen(wakes: bool, events: &[SwitchEvent]) -> Timeline {
        let scope = SwitchScope::Cpus(CpuList([0, 1].into()));
        let seen = Switches { scope, wakes, windows: vec![(0, 1000)], events: events.to_vec(), ..Switches::default() };
        Timeline::of(&[seen], (0, 1000))
    }

    fn waited(cpu: u32, evidence: Evidence) -> What {
        What::Waited { cpu, evidence }
    }

    fn way(timeline: &Timeline) -> Vec<(i32, What, i64, i64)> {
        let way = back(timeline, TAKER, (100, 900), &|tid| tid == SENDER || tid == TAKER, &|_, _| false);
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

    #[test]
    fn a_time_span_without_records_is_not_covered() {
        let scope = SwitchScope::OwnThreads;
        let seen = Switches { scope, windows: vec![(0, 1000)], gaps: vec![(850, 860)], ..Switches::default() };
        let timeline = Timeline::of(std::slice::from_ref(&seen), (0, 1000));
        assert!(!timeline.covers(100, 900) && timeline.covers(100, 800) && !timeline.covers(900, 1100));
    }
}
