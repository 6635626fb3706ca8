//! What kept a message that no thread had: its launch time, the gate of its traffic class (IEEE 802.1Q), by the schedule that the
//! kernel reported and the times of the message, or something that held several messages and released them together, by the times of
//! all messages.
//!
//! Input: the causes of a part of a message's way. Output: the same, in which the time until the launch time, and the time until the
//! gate permitted the message, are ascribed to these, as far as the message was with no thread or in the queue discipline of the
//! launch times or of the gates. Of the rest, the time until messages were released together is ascribed to the hold, as far as the
//! message was with no thread.

use crate::why::course::{Doing, Piece};
use crate::why::share::{Circumstances, Key, Share};
use crate::why::shares::shares;
use crate::why::stamps::Stamps;
use crate::why::timeline::Timeline;
use tailbound_document::{CauseWord, Evidence};
use tailbound_model::Metric;

/// Name of the queue discipline of the gates, with which its names in reports begin.
const TAPRIO: &str = "taprio";

/// What kept a message, and until when, ns.
#[derive(Clone, Copy)]
enum Kept {
    /// The launch time of a message of the ping.
    ForLaunch(i64),
    /// The gate of the end with this name.
    ByGate(&'static str, i64),
    /// Something on the way, and the usual time on the way, which is no part of the hold.
    WithOthers(i64, i64),
}

/// The causes of one time span on the way of a message, as in [`shares`], with its wait for a gate, and with the time for which it
/// was held and released together with others.
pub(crate) fn shares_of(piece: &Piece, stamps: &Stamps, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let launch = Some(Kept::ForLaunch(stamps.leaves_ns)).filter(|_| stamps.leaves_ns > stamps.due_ns);
    let gate = until(piece, stamps, known).map(|(sender, permitted_ns)| Kept::ByGate(sender, permitted_ns));
    // Lost messages that were sent again together look the same, unless their way through the kernel was recorded.
    let is_sure = matches!(piece.what, Doing::Passed(..)) || !known.threads.are_sent_again(piece.leg);
    let held = known.threads.held_until_ns(piece.leg, stamps.due_ns).filter(|_| is_sure);
    let held = held.map(|(until_ns, usual_ns)| Kept::WithOthers(until_ns, usual_ns));
    let parts = |shares: Vec<Share>, kept: Kept| shares.into_iter().flat_map(|share| split(share, kept)).collect();
    launch.into_iter().chain(gate).chain(held).fold(shares(piece, timeline, known), parts)
}

/// The end that sent the message on this leg, and the time until which its gate kept the message.
fn until(piece: &Piece, stamps: &Stamps, known: &Circumstances) -> Option<(&'static str, i64)> {
    let (sender, begun_ns) = match (piece.leg, stamps.echo) {
        // A message with a launch time is not ready before.
        (Metric::Out, _) => ("ping", stamps.send_ns.max(stamps.leaves_ns)),
        (Metric::Back, Some([_, begun_ns, _])) => ("pong", begun_ns),
        _ => return None,
    };
    let gate = known.threads.gate(sender)?;
    // The message became ready within the send call, so that it is permitted then at the earliest.
    Some((sender, gate.permitted_ns(begun_ns)))
}

/// Divides a share at the time until which the message was kept.
fn split(share: Share, kept: Kept) -> Vec<Share> {
    let by = share.key.by.as_ref().map(|by| by.name.as_str());
    let is_waiting = match (share.key.cause, kept) {
        (CauseWord::Network, _) => true,
        (CauseWord::QueueDiscipline, Kept::ByGate(..)) => by.is_some_and(|name| name.starts_with(TAPRIO)),
        // Before its launch time, a message is in no other queue discipline than the one that keeps it.
        (CauseWord::QueueDiscipline, Kept::ForLaunch(_)) => true,
        _ => false,
    };
    let (cause, end, until_ns) = match kept {
        Kept::ForLaunch(leaves_ns) => (CauseWord::Launch, "ping", leaves_ns),
        Kept::ByGate(sender, permitted_ns) => (CauseWord::Gate, sender, permitted_ns),
        Kept::WithOthers(until_ns, usual_ns) => {
            // If the message was with no thread for the usual time, something else delayed it.
            (CauseWord::HoldAndRelease, share.key.end, until_ns.min(share.to_ns.saturating_sub(usual_ns)))
        }
    };
    let ns = share.to_ns - share.from_ns;
    let kept_ns = until_ns.min(share.to_ns) - share.from_ns;
    if !is_waiting || kept_ns <= 0 {
        return vec![share];
    }
    let rest_ns = ns - kept_ns;
    // Of a bound, it is not known which part of the time it was.
    let at_least = |others_ns: i64| (share.low_ns - others_ns).max(0);
    let bounded = |low_ns: i64, evidence: Evidence| if low_ns > 0 { evidence } else { Evidence::AtMost };
    let (kept_low_ns, rest_low_ns) = (at_least(rest_ns), at_least(kept_ns));
    let kept = Share {
        key: Key { cause, leg: share.key.leg, end, cpu: None, thread: None, by: None },
        to_ns: share.from_ns + kept_ns,
        low_ns: kept_low_ns,
        high_ns: kept_ns.min(share.high_ns),
        evidence: bounded(kept_low_ns, share.evidence.max(Evidence::Inferred)),
        from_ns: share.from_ns,
    };
    let rest = Share {
        from_ns: share.from_ns + kept_ns,
        low_ns: rest_low_ns,
        high_ns: rest_ns.min(share.high_ns),
        evidence: bounded(rest_low_ns, share.evidence),
        ..share
    };
    if rest_ns > 0 { vec![kept, rest] } else { vec![kept] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_document::CausedBy;

    fn share(cause: CauseWord, by: Option<&str>) -> Share {
        let by = by.map(|name| CausedBy::named(name.to_owned()));
        let key = Key { cause, leg: Metric::Out, end: "pong", cpu: None, thread: None, by };
        Share { key, from_ns: 100, to_ns: 900, low_ns: 800, high_ns: 800, evidence: Evidence::Seen }
    }

    #[test]
    fn only_the_time_until_the_gate_permits_the_message_is_its_wait() {
        let parts = |share: Share, permitted_ns| -> Vec<(CauseWord, &str, i64, i64, Evidence)> {
            let parts = split(share, Kept::ByGate("ping", permitted_ns)).into_iter();
            parts.map(|s| (s.key.cause, s.key.end, s.from_ns, s.low_ns, s.evidence)).collect()
        };
        let network = || share(CauseWord::Network, None);
        let gate = |ns| (CauseWord::Gate, "ping", 100, ns, Evidence::Inferred);
        assert_eq!(parts(network(), 600), [gate(500), (CauseWord::Network, "pong", 600, 300, Evidence::Seen)]);
        assert_eq!(parts(network(), 2_000), [gate(800)]);
        assert_eq!(parts(network(), 100).len(), 1);
        let queue = |name| share(CauseWord::QueueDiscipline, Some(name));
        assert_eq!(parts(queue("taprio of eth0"), 900), [gate(800)]);
        assert_eq!(parts(queue("tbf of eth0"), 900)[0].0, CauseWord::QueueDiscipline);
        assert_eq!(parts(share(CauseWord::Softirq, None), 900)[0].0, CauseWord::Softirq);
        // Of a bound, it is not known which part of the time it was.
        let bound = |low_ns| Share { low_ns, ..network() };
        let at_most = |cause, end, from_ns| (cause, end, from_ns, 0, Evidence::AtMost);
        let both = [at_most(CauseWord::Gate, "ping", 100), at_most(CauseWord::Network, "pong", 600)];
        assert_eq!(parts(bound(0), 600), both);
        // At least 600 of 800 ns, of which the last 300 are after the gate.
        assert_eq!(parts(bound(600), 600), [gate(300), (CauseWord::Network, "pong", 600, 100, Evidence::Seen)]);
    }

    #[test]
    fn a_message_in_the_queue_of_launch_times_waits_for_its_own_until_it_may_leave() {
        let parts = |cause, by, leaves_ns| -> Vec<(CauseWord, &str, i64, i64)> {
            let parts = split(share(cause, by), Kept::ForLaunch(leaves_ns)).into_iter();
            parts.map(|s| (s.key.cause, s.key.end, s.from_ns, s.low_ns)).collect()
        };
        let launch = (CauseWord::Launch, "ping", 100, 500);
        // After that, the queue is late.
        let queue = (CauseWord::QueueDiscipline, "pong", 600, 300);
        // The kernel names the queue discipline at the root of the interface.
        for root in ["mqprio of eth0", "taprio of eth0"] {
            assert_eq!(parts(CauseWord::QueueDiscipline, Some(root), 600), [launch, queue]);
        }
        assert_eq!(parts(CauseWord::Network, None, 600), [launch, (CauseWord::Network, "pong", 600, 300)]);
        assert_eq!(parts(CauseWord::QueueDiscipline, Some("mqprio of eth0"), 50).len(), 1);
        assert_eq!(parts(CauseWord::Softirq, None, 600), [(CauseWord::Softirq, "pong", 100, 800)]);
    }

    #[test]
    fn only_a_message_that_no_thread_had_was_held_with_others() {
        let parts = |cause, by, until_ns| -> Vec<(CauseWord, &str, i64, i64)> {
            let parts = split(share(cause, by), Kept::WithOthers(until_ns, 30)).into_iter();
            parts.map(|s| (s.key.cause, s.key.end, s.from_ns, s.low_ns)).collect()
        };
        let held = [(CauseWord::HoldAndRelease, "pong", 100, 700), (CauseWord::Network, "pong", 800, 100)];
        assert_eq!(parts(CauseWord::Network, None, 800), held);
        // The usual 30 ns on the way remain.
        assert_eq!(parts(CauseWord::Network, None, 2_000)[0].3, 770);
        let usual = Share { to_ns: 130, low_ns: 30, high_ns: 30, ..share(CauseWord::Network, None) };
        assert_eq!(split(usual, Kept::WithOthers(2_000, 30)).len(), 1);
        let seen =
            [(CauseWord::QueueDiscipline, Some("taprio of eth0")), (CauseWord::Softirq, None), (CauseWord::Gate, None)];
        for (cause, by) in seen {
            assert_eq!(parts(cause, by, 800), [(cause, "pong", 100, 800)], "a cause that is known is kept");
        }
    }
}
