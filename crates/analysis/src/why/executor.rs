//! The times in which a single-threaded executor handled other messages than the one that is followed.
//!
//! Input: the pieces of a message, and the times from the receipt of each message to the end of its handling. Output: the same
//! pieces, divided at these times.

use crate::why::course::{Doing, Piece};
use crate::why::stamps::Stamps;
use crate::why::threads::Threads;
use tailbound_model::{Metric, SleepState};

/// Divides a piece of a message at the times in which the executor that was to take or to send the message handled other
/// messages. `arrived_ns`: the time since when the message was there, if it is known.
pub(crate) fn divided(piece: Piece, own: &Stamps, arrived_ns: Option<i64>, threads: &Threads) -> Vec<Piece> {
    let Some(handled) = threads.handled() else { return vec![piece] };
    let [at_pong, at_ping] = own.receivers;
    let thread = match piece.leg {
        Metric::SendLateness => threads.main_of("ping"),
        Metric::Out => at_pong,
        Metric::Back | Metric::RoundTrip => at_ping,
        _ => None,
    };
    let cpu = match piece.what {
        Doing::Ran { cpu } => Some(cpu),
        Doing::Slept(state) | Doing::SleptInCall(state) | Doing::SleptForMessage(state)
            if !state.is_some_and(SleepState::is_held_up) =>
        {
            None
        }
        _ => return vec![piece],
    };
    if thread != Some(piece.thread) {
        return vec![piece];
    }
    let arrived = arrived_ns.is_some_and(|arrived_ns| arrived_ns <= piece.from_ns);
    let mut parts = Vec::new();
    let mut at = piece.from_ns;
    for (from_ns, to_ns) in handled.others((piece.end, piece.leg), (piece.from_ns, piece.to_ns), own) {
        let from_ns = from_ns.max(at);
        parts.push(Piece { from_ns: at, to_ns: from_ns, ..piece });
        parts.push(Piece { from_ns, to_ns, what: Doing::HandledAnother { cpu, arrived }, ..piece });
        at = to_ns.max(at);
    }
    parts.push(Piece { from_ns: at, ..piece });
    parts.retain(|part| part.from_ns < part.to_ns);
    // The latest piece comes first.
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::conduct::Conduct;
    use crate::why::handled::Handled;
    use crate::why::other_clock::Pong;
    use tailbound_document::{Thread, ThreadReport};

    const PING: i32 = 20;
    const PONG: i32 = 30;

    /// A message that was due at 100 and taken by the thread of the ping at 900.
    fn own() -> Stamps {
        Stamps {
            slot: 7,
            due_ns: 100,
            leaves_ns: 100,
            send_ns: 150,
            sent_ns: 180,
            previous_sent_ns: None,
            received_ns: 900,
            echo: Some([400, 420, 450]),
            receivers: [Some(PONG), Some(PING)],
        }
    }

    /// The parts of a piece (begin, end, what), in the order of time. The ping sent from 500 to 650 and from 950 to 990, and the
    /// pong handled messages from 200 to 300 and, the followed one, from 400 to 450.
    fn parts(
        is_one_thread: bool,
        (end, leg, thread): (&'static str, Metric, i32),
        what: Doing,
        from_ns: i64,
        to_ns: i64,
    ) -> Vec<(i64, i64, Doing)> {
        let calls = [vec![(950, 990), (150, 180), (500, 650)], vec![(200, 300), (400, 450)]];
        let conduct = Conduct { handled: Some(Handled::of(is_one_thread, calls)), ..Conduct::default() };
        let table = |end: &str, tid| ThreadReport {
            ends: vec![end.to_owned()],
            pid: tid,
            before: vec![Thread { tid, ..Thread::default() }],
            ..ThreadReport::default()
        };
        let tables = [table("ping", PING), table("pong", PONG)];
        let threads = Threads::of(&tables, 0, &[], &Pong::SameClock).of_conduct(conduct);
        let piece = Piece { from_ns, to_ns, leg, end, thread, what };
        let mut parts = divided(piece, &own(), Some(600), &threads);
        parts.reverse();
        parts.into_iter().map(|part| (part.from_ns, part.to_ns, part.what)).collect()
    }

    #[test]
    fn a_message_waits_while_the_executor_handles_another_one() {
        let back = ("ping", Metric::Back, PING);
        let ran = Doing::Ran { cpu: 1 };
        let another = |cpu, arrived| Doing::HandledAnother { cpu, arrived };
        // That the message was there is certain from 600 on.
        let expected = [(460, 500, ran), (500, 650, another(Some(1), false)), (650, 900, ran)];
        assert_eq!(parts(false, back, ran, 460, 900), expected);
        assert_eq!(parts(false, back, ran, 600, 640), [(600, 640, another(Some(1), true))]);
        let asleep = Doing::SleptForMessage(Some(SleepState::Interruptible));
        assert_eq!(parts(false, back, asleep, 610, 700), [(610, 650, another(None, true)), (650, 700, asleep)]);
        // What kept the executor from its work comes first.
        let waited = Doing::Waited { cpu: 1, evidence: tailbound_document::Evidence::Seen, limited: None };
        for what in [waited, Doing::SleptInCall(Some(SleepState::Frozen))] {
            assert_eq!(parts(false, back, what, 460, 900), [(460, 900, what)]);
        }
        // The thread of the other end.
        assert_eq!(parts(false, ("ping", Metric::Back, PONG), ran, 460, 900), [(460, 900, ran)]);
    }

    #[test]
    fn an_executor_of_both_ends_keeps_messages_and_slots_waiting() {
        let ran = Doing::Ran { cpu: 1 };
        let another = Doing::HandledAnother { cpu: Some(1), arrived: false };
        let late = ("ping", Metric::SendLateness, PING);
        assert_eq!(parts(true, late, ran, 100, 250), [(100, 200, ran), (200, 250, another)]);
        assert_eq!(parts(false, late, ran, 100, 250), [(100, 250, ran)]);
        // The handling of the message itself.
        let turnaround = ("pong", Metric::Turnaround, PONG);
        assert_eq!(parts(false, turnaround, ran, 400, 450), [(400, 450, ran)]);
        let out = ("pong", Metric::Out, PONG);
        assert_eq!(parts(false, out, ran, 150, 400), [(150, 200, ran), (200, 300, another), (300, 400, ran)]);
    }
}
