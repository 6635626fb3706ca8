//! Follows one message from its due time to the receipt of its answer: what the threads of the ends did in each moment.

use crate::why::stamps::{Leg, Stamps};
use crate::why::threads::Threads;
use crate::why::timeline::Timeline;
use crate::why::walk::{Stretch, What, back};
use tailbound_document::Evidence;
use tailbound_model::{Metric, SleepState};

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
    Waited {
        cpu: u32,
        evidence: Evidence,
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
        waits && !timeline.sees_waits()
    }
}

/// Follows a message through its legs. The pieces are in the order of the legs; within a leg the latest comes first.
pub(crate) fn course(stamps: &Stamps, timeline: &Timeline, threads: &Threads) -> Vec<Piece> {
    stamps.legs().iter().flat_map(|leg| of_leg(leg, timeline, threads)).collect()
}

fn of_leg(leg: &Leg, timeline: &Timeline, threads: &Threads) -> Vec<Piece> {
    let way = match leg.metric {
        // The main thread of the ping sends.
        Metric::SendLateness => follow(threads.main_of(leg.end), timeline, threads, (leg.from_ns, leg.to_ns)),
        _ => follow(taker(leg, timeline, threads), timeline, threads, (leg.from_ns, leg.to_ns)),
    };
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
        match stretch.what {
            What::Ran { cpu } => pieces.push(owned(piece(Doing::Ran { cpu }), leg, threads)),
            What::Waited { cpu, evidence } => pieces.push(owned(piece(Doing::Waited { cpu, evidence }), leg, threads)),
            What::Slept(state) => pieces.extend(slept(piece(Doing::Slept(state)), state, leg, timeline, threads)),
        }
    }
    if leg.from_ns < from {
        let unknown =
            Piece { from_ns: leg.from_ns, to_ns: from, leg: leg.metric, end: leg.end, thread: 0, what: Doing::Unknown };
        pieces.extend(slept(unknown, None, leg, timeline, threads));
    }
    pieces
}

/// The end of the thread of a piece: the walk can lead to a thread of the other end, which woke the first thread.
fn owned(piece: Piece, leg: &Leg, threads: &Threads) -> Piece {
    let other = if leg.end == "ping" { "pong" } else { "ping" };
    let is_of = |end| threads.of_end(end).any(|tid| tid == piece.thread);
    if !is_of(leg.end) && is_of(other) { Piece { end: other, ..piece } } else { piece }
}

/// The thread that ended a leg: of the threads of its end that run at that time, the one that got its CPU last, because
/// it was woken for this message.
fn taker(leg: &Leg, timeline: &Timeline, threads: &Threads) -> Option<i32> {
    let running = threads.of_end(leg.end).filter_map(|tid| Some((timeline.running(tid, leg.to_ns)?.0, tid)));
    running.max().map(|(_, tid)| tid)
}

fn follow(thread: Option<i32>, timeline: &Timeline, threads: &Threads, span: (i64, i64)) -> Vec<Stretch> {
    let known = |tid: i32| threads.is_of_an_end(tid);
    let outranks = |one: i32, other: i32| threads.rank(one) > threads.rank(other);
    thread.map(|thread| back(timeline, thread, span, &known, &outranks)).unwrap_or_default()
}

/// Divides a time span in which the thread that took the message slept: while a send call of the other end lasts, the
/// caller has the message; after that, it is on its way.
fn slept(piece: Piece, state: Option<SleepState>, leg: &Leg, timeline: &Timeline, threads: &Threads) -> Vec<Piece> {
    let on_the_way = matches!(leg.metric, Metric::Out | Metric::Back | Metric::RoundTrip);
    let rest = match piece.what {
        _ if on_the_way => Doing::SleptForMessage(state),
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
        for stretch in follow(threads.main_of(caller), timeline, threads, (begun, ended)) {
            let (from_ns, to_ns) = (stretch.begin_ns.max(from), stretch.end_ns.min(to));
            left = left.min(from_ns);
            let what = match stretch.what {
                What::Ran { cpu } => Doing::Ran { cpu },
                What::Waited { cpu, evidence } => Doing::Waited { cpu, evidence },
                What::Slept(state) => Doing::SleptInCall(state),
            };
            pieces.push(Piece { from_ns, to_ns, leg: leg.metric, end: caller, thread: stretch.thread, what });
        }
        pieces.push(Piece { from_ns: from, to_ns: left, end: caller, thread: 0, what: Doing::Unknown, ..piece });
    }
    pieces.retain(|p| p.from_ns < p.to_ns);
    pieces
}
