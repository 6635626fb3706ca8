//! Waits for the gate of a traffic class (IEEE 802.1Q), by the schedule that the kernel reported and the times of a message.
//!
//! Input: the causes of a part of a message's way. Output: the same, in which the time until the gate permitted the message is
//! ascribed to the gate, as far as the message was with no thread or in the queue discipline of the gates.

use crate::why::course::Piece;
use crate::why::share::{Circumstances, Key, Share};
use crate::why::shares::shares;
use crate::why::stamps::Stamps;
use crate::why::timeline::Timeline;
use tailbound_document::{CauseWord, Evidence};
use tailbound_model::Metric;

/// Name of the queue discipline of the gates, with which its names in reports begin.
const TAPRIO: &str = "taprio";

/// The causes of one time span on the way of a message, as in [`shares`], with its wait for a gate.
pub(crate) fn shares_of(piece: &Piece, stamps: &Stamps, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let found = shares(piece, timeline, known);
    match until(piece, stamps, known) {
        Some((sender, permitted_ns)) => found.into_iter().flat_map(|s| split(s, sender, permitted_ns)).collect(),
        None => found,
    }
}

/// The end that sent the message on this leg, and the time until which its gate kept the message.
fn until(piece: &Piece, stamps: &Stamps, known: &Circumstances) -> Option<(&'static str, i64)> {
    let (sender, begun_ns) = match (piece.leg, stamps.echo) {
        (Metric::Out, _) => ("ping", stamps.send_ns),
        (Metric::Back, Some([_, begun_ns, _])) => ("pong", begun_ns),
        _ => return None,
    };
    let gate = known.threads.gate(sender)?;
    // The message became ready within the send call, so that it is permitted then at the earliest.
    Some((sender, gate.permitted_ns(begun_ns)))
}

/// Divides a share at the time from which the gate permitted the message.
fn split(share: Share, sender: &'static str, permitted_ns: i64) -> Vec<Share> {
    let by = share.key.by.as_ref().map(|by| by.name.as_str());
    let is_waiting = match share.key.cause {
        CauseWord::Network => true,
        CauseWord::QueueDiscipline => by.is_some_and(|name| name.starts_with(TAPRIO)),
        _ => false,
    };
    let ns = share.to_ns - share.from_ns;
    let kept_ns = permitted_ns.min(share.to_ns) - share.from_ns;
    if !is_waiting || kept_ns <= 0 {
        return vec![share];
    }
    let rest_ns = ns - kept_ns;
    // Of a bound, it is not known which part of the time it was.
    let at_least = |others_ns: i64| (share.low_ns - others_ns).max(0);
    let bounded = |low_ns: i64, evidence: Evidence| if low_ns > 0 { evidence } else { Evidence::AtMost };
    let (gate_low_ns, rest_low_ns) = (at_least(rest_ns), at_least(kept_ns));
    let gate = Share {
        key: Key { cause: CauseWord::Gate, leg: share.key.leg, end: sender, cpu: None, thread: None, by: None },
        to_ns: share.from_ns + kept_ns,
        low_ns: gate_low_ns,
        high_ns: kept_ns.min(share.high_ns),
        evidence: bounded(gate_low_ns, share.evidence.max(Evidence::Inferred)),
        from_ns: share.from_ns,
    };
    let rest = Share {
        from_ns: share.from_ns + kept_ns,
        low_ns: rest_low_ns,
        high_ns: rest_ns.min(share.high_ns),
        evidence: bounded(rest_low_ns, share.evidence),
        ..share
    };
    if rest_ns > 0 { vec![gate, rest] } else { vec![gate] }
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
            let parts = split(share, "ping", permitted_ns).into_iter();
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
}
