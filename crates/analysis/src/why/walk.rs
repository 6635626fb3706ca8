//! Follows the threads that carried a message back in time, from the end of a leg to its begin.

use crate::why::timeline::Timeline;

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
    /// The thread was ready to run and waited for the CPU `cpu`, on which it ran afterwards.
    Waited { cpu: u32 },
    /// The thread ran on the CPU `cpu` in the whole time span.
    Ran { cpu: u32 },
    /// The thread slept in the whole time span.
    Slept,
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
        let (left, preempted) = timeline.left(thread, came);
        if preempted {
            push(left, came, What::Waited { cpu });
            at = left;
        } else {
            let wake = timeline.woken(thread, left, came);
            let ready = match wake {
                Some(wake) => wake.at_ns,
                // The wake-up was not recorded: an idle CPU caused it, or wake-ups are not recorded at all. If the
                // thread preempted a thread that does not outrank it, it did not wait; otherwise it waited for at most
                // as long as the CPU was busy.
                None => match timeline.replaced(cpu, came) {
                    Some((who, true)) if timeline.sees_wakes() && !outranks(who, thread) => came,
                    _ => timeline.busy_since(thread, cpu, came, left),
                },
            };
            push(ready, came, What::Waited { cpu });
            match wake.filter(|w| w.by != thread && known(w.by) && timeline.running(w.by, w.at_ns).is_some()) {
                Some(wake) => (thread, at) = (wake.by, wake.at_ns),
                None => {
                    push(left, ready, What::Slept);
                    break;
                }
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

    fn seen(wakes: bool, events: &[SwitchEvent]) -> Timeline {
        let scope = SwitchScope::Cpus(CpuList([0, 1].into()));
        let seen = Switches { scope, wakes, windows: vec![(0, 1000)], events: events.to_vec(), ..Switches::default() };
        Timeline::of(&[seen], (100, 900)).unwrap()
    }

    fn way(timeline: &Timeline) -> Vec<(i32, What, i64, i64)> {
        let way = back(timeline, TAKER, (100, 900), &|tid| tid == SENDER || tid == TAKER, &|_, _| false);
        way.iter().map(|s| (s.thread, s.what, s.begin_ns, s.end_ns)).collect()
    }

    #[test]
    fn the_way_leads_over_who_woke_whom() {
        let wake =
            SwitchEvent { at_ns: 300, cpu: 0, what: SwitchKind::Wake { thread: TAKER, by: SENDER, interrupt: false } };
        let events = [
            switch(50, 0, 0, SENDER, true),
            switch(60, 1, 0, HOG, true),
            wake,
            switch(310, 0, SENDER, 0, false),
            switch(800, 1, HOG, TAKER, false),
        ];
        let timeline = seen(true, &events);
        let expected = [
            (TAKER, What::Ran { cpu: 1 }, 800, 900),
            (TAKER, What::Waited { cpu: 1 }, 300, 800),
            (SENDER, What::Ran { cpu: 0 }, 100, 300),
        ];
        assert_eq!(way(&timeline), expected);
        assert_eq!(timeline.occupants(1, 300, 800), [(HOG, 500)]);
        // Without recorded wake-ups, the thread cannot have waited for longer than the CPU was busy.
        let timeline = seen(false, &[switch(60, 1, 0, HOG, true), switch(800, 1, HOG, TAKER, false)]);
        assert_eq!(way(&timeline)[1], (TAKER, What::Waited { cpu: 1 }, 100, 800));
        let timeline = seen(false, &[switch(700, 1, 0, HOG, true), switch(800, 1, HOG, TAKER, false)]);
        assert_eq!(way(&timeline)[1..], [(TAKER, What::Waited { cpu: 1 }, 700, 800), (TAKER, What::Slept, 100, 700)]);
    }

    #[test]
    fn who_is_preempted_waits_and_who_sleeps_does_not() {
        let wake =
            SwitchEvent { at_ns: 790, cpu: 1, what: SwitchKind::Wake { thread: TAKER, by: HOG, interrupt: false } };
        let events = [
            switch(200, 1, TAKER, HOG, true),
            switch(400, 1, HOG, TAKER, false),
            switch(500, 1, TAKER, 0, false),
            wake,
            switch(800, 1, 0, TAKER, false),
        ];
        let expected = [
            (TAKER, What::Ran { cpu: 1 }, 800, 900),
            (TAKER, What::Waited { cpu: 1 }, 790, 800),
            // An unknown thread woke this thread, so the reason is not known.
            (TAKER, What::Slept, 500, 790),
        ];
        assert_eq!(way(&seen(true, &events)), expected);
        let expected = [
            (TAKER, What::Ran { cpu: 1 }, 400, 900),
            (TAKER, What::Waited { cpu: 1 }, 200, 400),
            (TAKER, What::Ran { cpu: 1 }, 100, 200),
        ];
        assert_eq!(way(&seen(true, &events[..2])), expected);
    }

    /// Tests wake-ups by idle CPUs, which are not recorded. If the thread that ran on the CPU gave up the CPU by
    /// itself, the woken thread counts as having waited for it; if it was preempted, the woken thread counts as not
    /// having waited.
    #[test]
    fn a_wake_up_that_is_not_told_is_concluded_from_who_made_way() {
        let waited =
            |preempted| way(&seen(true, &[switch(300, 1, 0, HOG, true), switch(800, 1, HOG, TAKER, preempted)]));
        assert_eq!(waited(false)[1], (TAKER, What::Waited { cpu: 1 }, 300, 800));
        assert_eq!(waited(true)[1], (TAKER, What::Slept, 100, 800));
    }

    #[test]
    fn time_of_which_records_are_missing_tells_nothing() {
        let scope = SwitchScope::OwnThreads;
        let seen = Switches { scope, windows: vec![(0, 1000)], gaps: vec![(850, 860)], ..Switches::default() };
        assert!(Timeline::of(std::slice::from_ref(&seen), (100, 900)).is_none());
        assert!(Timeline::of(std::slice::from_ref(&seen), (100, 800)).is_some());
        assert!(Timeline::of(&[seen], (900, 1100)).is_none());
    }
}
