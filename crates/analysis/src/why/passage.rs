//! Follows one message from its due time to the receipt of its answer.
//!
//! If the way of the message through the kernel was recorded in a leg, the sending thread is followed until the first
//! device, the kernel until the socket, and the receiving thread after that; otherwise the threads alone.

use crate::why::course::{self, Doing, Piece, follow, is_on_the_way};
use crate::why::executor;
use crate::why::stamps::{Leg, Stamps};
use crate::why::threads::Threads;
use crate::why::timeline::Timeline;
use crate::why::walk::{Call, What};
use crate::why::way::Way;
use tailbound_document::Evidence;
use tailbound_model::Metric;

/// Follows a message through its legs. The pieces are in the order of the legs; within a leg the latest comes first.
pub(crate) fn course(stamps: &Stamps, timeline: &Timeline, threads: &Threads) -> Vec<Piece> {
    let one = |leg: &Leg| {
        let (pieces, arrived_ns) = match way(leg, stamps, timeline, threads) {
            Some((way, evidence)) => {
                let arrived_ns = way.in_socket.then_some(way.to_ns);
                (of_leg(leg, (&way, evidence), timeline, threads), arrived_ns)
            }
            // The sender knows from the beginning what it is to send.
            None => (course::of_leg(leg, timeline, threads), Some(leg.from_ns).filter(|_| !is_on_the_way(leg))),
        };
        pieces.into_iter().flat_map(|piece| executor::divided(piece, stamps, arrived_ns, threads)).collect::<Vec<_>>()
    };
    stamps.legs().iter().flat_map(one).collect()
}

/// The way of a message through the kernel in this leg, and how it is known; `None` if the message was not followed.
fn way(leg: &Leg, stamps: &Stamps, timeline: &Timeline, threads: &Threads) -> Option<(Way, Evidence)> {
    let (begun_ns, sent_ns, end, caller) = match (leg.metric, stamps.echo) {
        (Metric::Out, _) => (stamps.send_ns, stamps.sent_ns, "ping", threads.main_of("ping")),
        // The pong sends its answer within its call, which belongs to the turnaround.
        (Metric::Back, Some([_, begun, answered])) => (begun, answered, "pong", stamps.receivers[0]),
        _ => return None,
    };
    let sender = |thread| threads.of_end(end).any(|tid| tid == thread).then_some(Some(thread) == caller);
    timeline.hops.way(stamps.slot, (begun_ns, sent_ns, leg.to_ns), sender)
}

/// Follows a message through a leg. The latest piece comes first.
fn of_leg(leg: &Leg, (way, evidence): (&Way, Evidence), timeline: &Timeline, threads: &Threads) -> Vec<Piece> {
    // A part of the way can be before the leg: on the loopback interface, the whole way is within the send call.
    let (first, last) = (way.from_ns.max(leg.from_ns), way.to_ns.max(leg.from_ns));
    let mut pieces = received(&Leg { from_ns: last, call: None, ..*leg }, way, timeline, threads);
    let passed = way.steps.iter().rev().map(|(from_ns, to_ns, step)| Piece {
        from_ns: (*from_ns).max(leg.from_ns),
        to_ns: *to_ns,
        leg: leg.metric,
        end: leg.end,
        thread: 0,
        what: Doing::Passed(*step, evidence),
    });
    pieces.extend(passed);
    pieces.extend(sent(&Leg { to_ns: first, ..*leg }, way, timeline, threads));
    pieces.retain(|piece| piece.from_ns < piece.to_ns);
    pieces
}

/// What the sending end did until the first device had the message.
fn sent(leg: &Leg, way: &Way, timeline: &Timeline, threads: &Threads) -> Vec<Piece> {
    let end = if leg.end == "ping" { "pong" } else { "ping" };
    let thread = Some(way.sender).filter(|tid| threads.is_of_an_end(*tid)).or_else(|| threads.main_of(end));
    let call = leg.call.zip(thread).map(|((begun_ns, ended_ns, _), thread)| Call { begun_ns, ended_ns, thread });
    let piece = |from_ns, to_ns, thread, what| Piece { from_ns, to_ns, leg: leg.metric, end, thread, what };
    let mut pieces = Vec::new();
    let mut from = leg.to_ns;
    for stretch in follow(thread, timeline, threads, (leg.from_ns, leg.to_ns), call) {
        from = from.min(stretch.begin_ns);
        let what = match stretch.what {
            What::Ran { cpu } => Doing::Ran { cpu },
            What::Waited { cpu, evidence, limited } => Doing::Waited { cpu, evidence, limited },
            What::Locked { by } => Doing::Locked { by },
            What::Throttled { by } => Doing::Throttled { by },
            What::Slept(state) if call.is_some_and(|call| call.thread == stretch.thread) => Doing::SleptInCall(state),
            What::Slept(state) => Doing::Slept(state),
        };
        pieces.push(piece(stretch.begin_ns, stretch.end_ns, stretch.thread, what));
    }
    pieces.push(piece(leg.from_ns, from, 0, Doing::Unknown));
    pieces
}

/// What the receiving end did after the last hop of the message.
fn received(leg: &Leg, way: &Way, timeline: &Timeline, threads: &Threads) -> Vec<Piece> {
    let pieces = course::of_leg(leg, timeline, threads);
    if !way.in_socket {
        return pieces;
    }
    pieces.into_iter().flat_map(|piece| in_socket(piece, leg, timeline)).collect()
}

/// A piece of the time in which the message was in the socket.
fn in_socket(piece: Piece, leg: &Leg, timeline: &Timeline) -> Vec<Piece> {
    match piece.what {
        // The message waited for the thread.
        Doing::SleptForMessage(state) => vec![Piece { what: Doing::Slept(state), ..piece }],
        Doing::Ran { cpu } | Doing::Polled { cpu } => {
            let piece = Piece { what: Doing::Ran { cpu }, ..piece };
            let Some(at) = timeline.hops.read_another(piece.thread, (leg.from_ns, leg.to_ns)) else {
                return vec![piece];
            };
            let at = at.clamp(piece.from_ns, piece.to_ns);
            vec![Piece { from_ns: at, ..piece }, Piece { to_ns: at, what: Doing::ReadOthers { cpu }, ..piece }]
        }
        _ => vec![piece],
    }
}
