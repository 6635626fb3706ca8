//! Follows one message through a part of its way by the threads of the ends: what they did in each moment.

use crate::why::stamps::Leg;
use crate::why::threads::Threads;
use crate::why::timeline::Timeline;
use crate::why::walk::{Call, Known, Limited, Stretch, What, back};
use crate::why::way::Step;
use tailbound_document::Evidence;
use tailbound_model::{Metric, SleepState};

/// A thread that polls takes a message at most this time after another thread of its end has put it where it is taken,
/// if it runs, ns.
const HANDED_OVER_NS: i64 = 100_000;

/// A time span of a message, and what the thread that carried the message did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub from_ns: i64,
    pub to_ns: i64,
    pub leg: Metric,
    /// Name of the end to which the thread belongs.
    pub end: &'static str,
    /// Id of the thread; 0 if it is not known.
    pub thread: i32,
    pub what: Doing,
}

/// What the thread that carried a message did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Ran {
        cpu: u32,
    },
    /// The thread ran and asked for the message again and again, before the message had arrived.
    Polled {
        cpu: u32,
    },
    /// The thread ran and read other datagrams, while the message was in the socket.
    ReadOthers {
        cpu: u32,
    },
    /// The thread is an executor and handled another message, on this CPU, or asleep. `arrived`: it is certain that the
    /// followed message was there already.
    HandledAnother {
        cpu: Option<u32>,
        arrived: bool,
    },
    /// No thread had the message: it was at this step of its way through the kernel.
    Passed(Step, Evidence),
    Waited {
        cpu: u32,
        evidence: Evidence,
        limited: Option<Limited>,
    },
    /// The thread slept inside its call to send until the thread `by` of its process woke it.
    Locked {
        by: i32,
    },
    /// The thread slept inside its call to send until a packet woke the thread `by` of its process, which then woke it.
    Throttled {
        by: i32,
    },
    /// The thread slept inside its call to send.
    SleptInCall(Option<SleepState>),
    /// The thread slept, and the message was not in the hands of a thread of the other end either.
    SleptForMessage(Option<SleepState>),
    /// The thread slept although it had the message.
    Slept(Option<SleepState>),
    /// No thread of the end was seen that could have carried the message.
    Unknown,
}

impl Piece {
    /// True if the thread slept or waited, and the recorded events cannot tell which of both: they have neither
    /// wake-ups nor the threads of the CPUs.
    pub fn is_hidden(&self, timeline: &Timeline) -> bool {
        let waits = matches!(self.what, Doing::SleptInCall(None) | Doing::SleptForMessage(None) | Doing::Slept(None));
        waits && !timeline.sees_waits(self.end)
    }
}

/// Follows a message through a leg of which no way through the kernel was recorded. The latest piece comes first.
pub(crate) fn of_leg(leg: &Leg, timeline: &Timeline, threads: &Threads) -> Vec<Piece> {
    let thread = match leg.metric {
        // The main thread of the ping sends.
        Metric::SendLateness => threads.main_of(leg.end),
        _ => taker(leg, timeline, threads),
    };
    let poller = thread.filter(|_| threads.poll() && is_on_the_way(leg));
    let carrier = poller.and_then(|poller| carrier(poller, leg, timeline, threads));
    let way = match carrier {
        Some((at_ns, carrier)) => {
            let mut way = follow(poller, timeline, threads, (at_ns, leg.to_ns), None);
            way.extend(follow(Some(carrier), timeline, threads, (leg.from_ns, at_ns), None));
            way
        }
        None if leg.metric == Metric::SendLateness => follow_sender(thread, leg, timeline, threads),
        None => follow(thread, timeline, threads, (leg.from_ns, leg.to_ns), call_of(leg, thread, threads)),
    };
    let mut polling = Polling { poller, carried_ns: carrier.map(|(at_ns, _)| at_ns), in_vain_ns: 0 };
    let mut pieces = Vec::new();
    let mut from = leg.to_ns;
    for stretch in way {
        from = from.min(stretch.begin_ns);
        let piece = |what| Piece {
            from_ns: stretch.begin_ns,
            to_ns: stretch.end_ns,
            leg: leg.metric,
            end: leg.end,
            thread: stretch.thread,
            what,
        };
        if let Some(what) = polling.before_arrival(&stretch) {
            pieces.extend(without_message(piece(what), Some(SleepState::Interruptible), leg, timeline, threads));
            continue;
        }
        match stretch.what {
            What::Ran { cpu } => pieces.push(owned(piece(Doing::Ran { cpu }), leg, threads)),
            What::Waited { cpu, evidence, limited } => {
                pieces.push(owned(piece(Doing::Waited { cpu, evidence, limited }), leg, threads));
            }
            What::Locked { by } => pieces.push(owned(piece(Doing::Locked { by }), leg, threads)),
            What::Throttled { by } => pieces.push(owned(piece(Doing::Throttled { by }), leg, threads)),
            What::Slept(state) => {
                pieces.extend(without_message(piece(Doing::Slept(state)), state, leg, timeline, threads))
            }
        }
    }
    if leg.from_ns < from {
        let unknown =
            Piece { from_ns: leg.from_ns, to_ns: from, leg: leg.metric, end: leg.end, thread: 0, what: Doing::Unknown };
        pieces.extend(without_message(unknown, None, leg, timeline, threads));
    }
    pieces
}

/// A thread that asks for a message again and again.
struct Polling {
    /// Id of the thread; `None` = the message is taken in another way.
    poller: Option<i32>,
    /// Time at which another thread of the end gave the message to the poller, ns.
    carried_ns: Option<i64>,
    /// Time for which the poller asked in vain after the stretches that are still to come, ns.
    in_vain_ns: i64,
}

impl Polling {
    /// What the poller did in a stretch before the message had arrived; `None` = the stretch is of another kind. The latest
    /// stretch is passed first.
    fn before_arrival(&mut self, stretch: &Stretch) -> Option<Doing> {
        // The walk can lead from the carrier back to the poller, which wakes it for other reasons than the message.
        let is_before = self.carried_ns.is_none_or(|at_ns| stretch.end_ns <= at_ns);
        if Some(stretch.thread) != self.poller || !is_before {
            return None;
        }
        match stretch.what {
            What::Ran { cpu } => {
                self.in_vain_ns += stretch.end_ns - stretch.begin_ns;
                Some(Doing::Polled { cpu })
            }
            // The message came long after this wait.
            What::Waited { .. } if self.in_vain_ns > HANDED_OVER_NS => {
                Some(Doing::Slept(Some(SleepState::Interruptible)))
            }
            _ => None,
        }
    }
}

/// The end of the thread of a piece: the walk can lead to a thread of the other end, which woke the first thread.
fn owned(piece: Piece, leg: &Leg, threads: &Threads) -> Piece {
    let other = if leg.end == "ping" { "pong" } else { "ping" };
    let is_of = |end| threads.of_end(end).any(|tid| tid == piece.thread);
    if !is_of(leg.end) && is_of(other) { Piece { end: other, ..piece } } else { piece }
}

/// The thread that ended a leg: the one that received the message, if it runs at that time. In records without the id of
/// that thread, or after a hand-off: of the threads of the end that run at that time, the one that got its CPU last,
/// because it was woken for this message.
fn taker(leg: &Leg, timeline: &Timeline, threads: &Threads) -> Option<i32> {
    let runs = |tid: &i32| timeline.running(*tid, leg.to_ns).is_some();
    let of_end = |tid: &i32| threads.of_end(leg.end).any(|one| one == *tid);
    if let Some(thread) = leg.thread.filter(of_end).filter(runs) {
        return Some(thread);
    }
    let running = threads.of_end(leg.end).filter_map(|tid| Some((timeline.running(tid, leg.to_ns)?.0, tid)));
    running.max().map(|(_, tid)| tid)
}

/// The send call inside a leg, with the thread that makes it: `taker` itself, if the leg ends at the calling end.
fn call_of(leg: &Leg, taker: Option<i32>, threads: &Threads) -> Option<Call> {
    let (begun_ns, ended_ns, caller) = leg.call?;
    let thread = if leg.end == caller { taker? } else { threads.main_of(caller)? };
    Some(Call { begun_ns, ended_ns, thread })
}

/// Follows a thread back through a time span, at whose end it runs.
pub(crate) fn follow(
    thread: Option<i32>,
    timeline: &Timeline,
    threads: &Threads,
    span: (i64, i64),
    call: Option<Call>,
) -> Vec<Stretch> {
    let known = Known {
        is_of_an_end: &|tid| threads.is_of_an_end(tid),
        same_end: &|one, other| threads.are_of_one_end(one, other),
        outranks: &|one, other| threads.rank(one) > threads.rank(other),
        awaits_acks: &|tid| threads.await_acks(tid),
    };
    thread.map(|thread| back(timeline, thread, span, call, &known)).unwrap_or_default()
}

/// Follows the thread that sends by time, after its message was due. It waits for no message, so that it is also followed before
/// a sleep: it was awake there, and sleeps again only because of what had kept it from sending. The latest time span comes first.
fn follow_sender(thread: Option<i32>, leg: &Leg, timeline: &Timeline, threads: &Threads) -> Vec<Stretch> {
    let mut way: Vec<Stretch> = Vec::new();
    let mut to_ns = leg.to_ns;
    loop {
        let earlier = follow(thread, timeline, threads, (leg.from_ns, to_ns), None);
        let slept = earlier.last().filter(|last| matches!(last.what, What::Slept(_)) && leg.from_ns < last.begin_ns);
        let from_ns = slept.filter(|last| last.begin_ns < to_ns && Some(last.thread) == thread).map(|s| s.begin_ns);
        way.extend(earlier);
        match from_ns {
            Some(from_ns) => to_ns = from_ns,
            None => return way,
        }
    }
}

/// Whether the message of a leg is on its way from one end to the other.
pub(crate) fn is_on_the_way(leg: &Leg) -> bool {
    matches!(leg.metric, Metric::Out | Metric::Back | Metric::RoundTrip)
}

/// The thread that gave the message to `poller`, which asks for it again and again, and the time at which it had last run:
/// the last other thread of the end that ran just before the leg ended. Without one, `poller` reads the socket itself.
fn carrier(poller: i32, leg: &Leg, timeline: &Timeline, threads: &Threads) -> Option<(i64, i32)> {
    let others = threads.of_end(leg.end).filter(|tid| *tid != poller);
    // A thread that ran all the time was not woken for the message; it may be the poller of the other end.
    let woken = others.filter(|tid| timeline.running(*tid, leg.to_ns).is_none_or(|(since, _)| since > leg.from_ns));
    let ran = woken.filter_map(|tid| Some((timeline.ran_until(tid, leg.to_ns)?, tid)));
    ran.filter(|(at_ns, _)| *at_ns > leg.from_ns.max(leg.to_ns - HANDED_OVER_NS)).max()
}

/// Divides a time span in which the thread that took the message did not have it yet: while a send call of the other end
/// lasts, the caller has the message; after that, it is on its way.
fn without_message(
    piece: Piece,
    state: Option<SleepState>,
    leg: &Leg,
    timeline: &Timeline,
    threads: &Threads,
) -> Vec<Piece> {
    let rest = match piece.what {
        Doing::Polled { .. } => piece.what,
        _ if is_on_the_way(leg) => Doing::SleptForMessage(state),
        other => other,
    };
    let Some((begun, ended, caller)) = leg.call else { return vec![Piece { what: rest, ..piece }] };
    let (from, to) = (piece.from_ns.max(begun), piece.to_ns.min(ended));
    if from >= to {
        return vec![Piece { what: rest, ..piece }];
    }
    let mut pieces = vec![Piece { from_ns: to, what: rest, ..piece }, Piece { to_ns: from, what: rest, ..piece }];
    if matches!(leg.metric, Metric::SendLateness | Metric::Turnaround) {
        // The thread itself makes the call.
        let what = if piece.what == Doing::Unknown { Doing::Unknown } else { Doing::SleptInCall(state) };
        pieces.push(Piece { from_ns: from, to_ns: to, what, ..piece });
    } else {
        let mut left = to;
        let thread = threads.main_of(caller);
        for stretch in follow(thread, timeline, threads, (begun, ended), call_of(leg, thread, threads)) {
            let (from_ns, to_ns) = (stretch.begin_ns.max(from), stretch.end_ns.min(to));
            left = left.min(from_ns);
            let what = match stretch.what {
                What::Ran { cpu } => Doing::Ran { cpu },
                What::Waited { cpu, evidence, limited } => Doing::Waited { cpu, evidence, limited },
                What::Locked { by } => Doing::Locked { by },
                What::Throttled { by } => Doing::Throttled { by },
                What::Slept(state) => Doing::SleptInCall(state),
            };
            pieces.push(Piece { from_ns, to_ns, leg: leg.metric, end: caller, thread: stretch.thread, what });
        }
        pieces.push(Piece { from_ns: from, to_ns: left, end: caller, thread: 0, what: Doing::Unknown, ..piece });
    }
    pieces.retain(|p| p.from_ns < p.to_ns);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::conduct::Conduct;
    use crate::why::other_clock::Pong;
    use tailbound_document::{Thread, ThreadReport};
    use tailbound_model::{CpuList, SwitchEvent, SwitchKind, SwitchScope, Switches};

    /// Test: the agent of the ping records whole CPUs, and the agent of the pong its own threads alone.
    #[test]
    fn what_the_agent_of_one_end_saw_says_nothing_about_the_other_end() {
        let of = |end: &str, scope| Switches { ends: vec![end.into()], scope, ..Switches::default() };
        let seen = [of("ping", SwitchScope::Cpus(CpuList::one(0))), of("pong", SwitchScope::OwnThreads)];
        let timeline = Timeline::of(&seen, (0, 1_000));
        let (leg, what) = (Metric::Out, Doing::SleptForMessage(None));
        let hidden = |end| Piece { from_ns: 0, to_ns: 500, leg, end, thread: 20, what }.is_hidden(&timeline);
        assert_eq!(["ping", "pong"].map(hidden), [false, true]);
    }

    /// Test: the sender is stopped when its message is due, from 100 to 600. On a real-time kernel it then sleeps until the kernel
    /// thread of its timer wakes it.
    #[test]
    fn a_sender_that_sleeps_again_after_a_stop_is_followed_to_the_stop() {
        const MAIN: i32 = 20;
        let event = |at_ns, what| SwitchEvent { at_ns, cpu: 0, what };
        let out = |state| SwitchKind::Switch { out: MAIN, into: 0, preempted: false, state, limit: None };
        let into = SwitchKind::Switch { out: 0, into: MAIN, preempted: false, state: None, limit: None };
        let wake = |interrupt| SwitchKind::Wake { thread: MAIN, by: 30, interrupt, packet: false, limit: None };
        let events = vec![
            event(50, into),
            event(100, out(Some(SleepState::Stopped))),
            event(600, wake(false)),
            event(620, into),
            event(640, out(Some(SleepState::Interruptible))),
            event(650, wake(true)),
            event(660, into),
        ];
        let scope = SwitchScope::Cpus(CpuList::one(0));
        let ends = vec!["ping".to_owned()];
        let seen = [Switches { ends: ends.clone(), scope, wakes: true, events, ..Switches::default() }];
        let before = vec![Thread { tid: MAIN, ..Thread::default() }];
        let tables = [ThreadReport { ends, pid: MAIN, before, ..ThreadReport::default() }];
        let threads = Threads::of(&tables, 0, &seen, &Pong::SameClock);
        let metric = Metric::SendLateness;
        let leg = Leg { metric, end: "ping", from_ns: 150, to_ns: 700, call: None, thread: None };
        let pieces = of_leg(&leg, &Timeline::of(&seen, (0, 1_000)), &threads);
        let slept = pieces.iter().filter(|p| matches!(p.what, Doing::Slept(_))).map(|p| (p.from_ns, p.to_ns, p.what));
        let expected = [
            (640, 650, Doing::Slept(Some(SleepState::Interruptible))),
            (150, 600, Doing::Slept(Some(SleepState::Stopped))),
        ];
        assert_eq!(slept.collect::<Vec<_>>(), expected);
    }

    const POLLER: i32 = 20;
    const CARRIER: i32 = 21;

    /// The pieces of the way out, from 0 to 500: the pong's thread 20 polls on CPU 1. `other`: events of other threads.
    fn polled(other: &[(i64, u32, SwitchKind)]) -> Vec<(i64, i64, i32, Doing)> {
        polled_until(500, other)
    }

    fn polled_until(to_ns: i64, other: &[(i64, u32, SwitchKind)]) -> Vec<(i64, i64, i32, Doing)> {
        let switch = |out, into| SwitchKind::Switch { out, into, preempted: false, state: None, limit: None };
        let first = (-50, 1, switch(0, POLLER));
        let mut events: Vec<SwitchEvent> = [first]
            .iter()
            .chain(other)
            .map(|(at_ns, cpu, what)| SwitchEvent { at_ns: *at_ns, cpu: *cpu, what: *what })
            .collect();
        events.sort_by_key(|e| e.at_ns);
        let scope = SwitchScope::Cpus(CpuList([0, 1].into()));
        let ends = vec!["ping".to_owned(), "pong".to_owned()];
        let seen = [Switches { ends, scope, wakes: true, events, ..Switches::default() }];
        let timeline = Timeline::of(&seen, (-100, to_ns + 500));
        let thread = |tid| Thread { tid, ..Thread::default() };
        let table = ThreadReport {
            ends: vec!["pong".to_owned()],
            before: vec![thread(POLLER), thread(CARRIER)],
            ..ThreadReport::default()
        };
        let tables = [table];
        let threads =
            Threads::of(&tables, 0, &seen, &Pong::SameClock).of_conduct(Conduct { poll: true, ..Conduct::default() });
        let leg = Leg { metric: Metric::Out, end: "pong", from_ns: 0, to_ns, call: None, thread: Some(POLLER) };
        of_leg(&leg, &timeline, &threads).iter().map(|p| (p.from_ns, p.to_ns, p.thread, p.what)).collect()
    }

    #[test]
    fn a_thread_that_polls_does_not_have_the_message_yet() {
        assert_eq!(polled(&[]), [(0, 500, POLLER, Doing::Polled { cpu: 1 })]);
    }

    #[test]
    fn the_thread_that_gave_the_message_to_one_that_polls_is_followed() {
        let switch = |out, into| SwitchKind::Switch { out, into, preempted: false, state: None, limit: None };
        let wake = SwitchKind::Wake { thread: CARRIER, by: 0, interrupt: true, packet: true, limit: None };
        let found = polled(&[(300, 0, wake), (400, 0, switch(99, CARRIER)), (480, 0, switch(CARRIER, 0))]);
        let expected = [
            (480, 500, POLLER, Doing::Ran { cpu: 1 }),
            (400, 480, CARRIER, Doing::Ran { cpu: 0 }),
            (300, 400, CARRIER, Doing::Waited { cpu: 0, evidence: Evidence::Seen, limited: None }),
        ];
        assert_eq!(found[..3], expected, "{found:?}");
        assert!(found[3..].iter().all(|(.., what)| matches!(what, Doing::SleptForMessage(_))), "{found:?}");
    }

    #[test]
    fn a_thread_that_polls_did_not_have_the_message_when_it_woke_the_thread_that_brought_it() {
        let switch = |out, into| SwitchKind::Switch { out, into, preempted: false, state: None, limit: None };
        let wake = SwitchKind::Wake { thread: CARRIER, by: POLLER, interrupt: false, packet: false, limit: None };
        let found = polled(&[(300, 1, wake), (310, 0, switch(99, CARRIER)), (480, 0, switch(CARRIER, 0))]);
        assert_eq!(found.last(), Some(&(0, 300, POLLER, Doing::Polled { cpu: 1 })), "{found:?}");
    }

    #[test]
    fn a_wait_after_which_a_thread_polled_in_vain_did_not_delay_the_message() {
        const HOG: i32 = 99;
        let hog = |back_ns: i64, to_ns: i64| {
            let switch = |out, into, preempted| SwitchKind::Switch { out, into, preempted, state: None, limit: None };
            let events = [(100, 1, switch(POLLER, HOG, true)), (back_ns, 1, switch(HOG, POLLER, true))];
            polled_until(to_ns, &events).iter().map(|(from, to, _, what)| (*from, *to, *what)).collect::<Vec<_>>()
        };
        let waited = Doing::Waited { cpu: 1, evidence: Evidence::Seen, limited: None };
        let polls = Doing::Polled { cpu: 1 };
        assert_eq!(hog(450, 500), [(450, 500, polls), (100, 450, waited), (0, 100, polls)]);
        let on_the_way = Doing::SleptForMessage(Some(SleepState::Interruptible));
        let long = HANDED_OVER_NS * 2;
        assert_eq!(hog(450, long), [(450, long, polls), (100, 450, on_the_way), (0, 100, polls)]);
    }
}
