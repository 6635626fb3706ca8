//! Divides the course of one message into time spans at places, with the cause of each, for a picture.
//!
//! The number of time spans is bounded: short ones are merged with a neighbour at the same place.

use crate::why::course::{Doing, Piece};
use crate::why::ledger::Usual;
use crate::why::other_clock::kernel_cpu;
use crate::why::passage::course;
use crate::why::share::{Circumstances, Share};
use crate::why::shares::shares;
use crate::why::stamps::{Leg, Stamps};
use crate::why::timeline::Timeline;
use crate::why::words::leg_key;
use tailbound_document::{CauseWord, Hop, HopSpan, LegSpan, WaterfallReport};
use tailbound_model::Metric;

/// Largest number of time spans of a message.
const MOST_SPANS: usize = 24;
/// At first, time spans shorter than this part of the whole course are merged with their neighbours.
const SHORT: i64 = 4_000;

/// The course of a message. Without a timeline only the legs are known.
pub(crate) fn waterfall(
    stamps: &Stamps,
    timeline: Option<&Timeline>,
    known: &Circumstances,
    usual: &Usual,
) -> WaterfallReport {
    let legs = stamps.legs();
    let mut spans: Vec<HopSpan> = match timeline {
        Some(timeline) => {
            let pieces = course(stamps, timeline, known.threads);
            pieces.iter().flat_map(|piece| of_piece(piece, stamps, timeline, known)).collect()
        }
        None => legs.iter().flat_map(|leg| without_events(leg, stamps)).collect(),
    };
    spans.sort_by_key(|span| span.from_ns);
    let leg = |leg: &Leg| LegSpan {
        leg: leg_key(leg.metric).to_owned(),
        from_ns: leg.from_ns - stamps.due_ns,
        to_ns: leg.to_ns - stamps.due_ns,
        usual_ns: usual.leg(leg.metric),
    };
    WaterfallReport { legs: legs.iter().map(leg).collect(), spans: merged(spans), pong_shift_ns: None }
}

/// The time spans of a piece of a course: one for each of its shares, and the time without a share between them.
fn of_piece(piece: &Piece, stamps: &Stamps, timeline: &Timeline, known: &Circumstances) -> Vec<HopSpan> {
    let mut all = shares(piece, timeline, known);
    all.sort_by_key(|share| share.from_ns);
    let span = |from_ns: i64, to_ns: i64, share: Option<&Share>| {
        let hop = hop(piece, from_ns, share, stamps);
        let with_thread = !matches!(hop, Hop::WayOut | Hop::WayBack | Hop::AwayFromPing);
        HopSpan {
            hop,
            leg: leg_key(piece.leg).to_owned(),
            from_ns: from_ns - stamps.due_ns,
            to_ns: to_ns - stamps.due_ns,
            end: Some(piece.end.to_owned()),
            thread: known.threads.name(piece.thread).filter(|_| with_thread),
            cpu: share.and_then(|s| s.key.cpu).map(kernel_cpu),
            cause: share.map(|s| s.key.cause),
            by: share.and_then(|s| s.key.by.clone()),
            evidence: share.map(|s| s.evidence),
            merged: None,
            cause_ns: None,
        }
    };
    let mut spans = Vec::new();
    let mut at = piece.from_ns;
    for share in &all {
        if at < share.from_ns {
            spans.push(span(at, share.from_ns, None));
        }
        let from_ns = share.from_ns.max(at);
        if from_ns < share.to_ns {
            spans.push(span(from_ns, share.to_ns, Some(share)));
            at = share.to_ns;
        }
    }
    if at < piece.to_ns {
        spans.push(span(at, piece.to_ns, None));
    }
    spans
}

/// The place of the message in a time span of a piece that begins at `from_ns`.
fn hop(piece: &Piece, from_ns: i64, share: Option<&Share>, stamps: &Stamps) -> Hop {
    // A thread that was stopped while it should have received the message is the reason, and not the network.
    let cause = share.map(|s| s.key.cause);
    let on_the_way = matches!(piece.what, Doing::Passed(_))
        || matches!(piece.what, Doing::SleptForMessage(_)) && matches!(cause, None | Some(CauseWord::Network));
    let in_call = from_ns < stamps.sent_ns;
    match (piece.leg, piece.end) {
        (Metric::SendLateness, _) => Hop::Sender,
        (Metric::Turnaround, _) => Hop::Turnaround,
        (Metric::Out, _) if on_the_way => Hop::WayOut,
        (Metric::Out, "ping") if in_call => Hop::SendCall,
        (Metric::Out, "ping") => Hop::WayOut,
        (Metric::Out, _) => Hop::PongReceiver,
        (Metric::Back, "pong") => Hop::WayBack,
        (Metric::Back, _) if on_the_way => Hop::WayBack,
        (Metric::Back, _) => Hop::PingReceiver,
        _ if on_the_way => Hop::AwayFromPing,
        _ if in_call => Hop::SendCall,
        _ => Hop::PingReceiver,
    }
}

/// The time spans of a leg if no events were recorded: what the timestamps alone show.
fn without_events(leg: &Leg, stamps: &Stamps) -> Vec<HopSpan> {
    let sent_ns = stamps.sent_ns.clamp(leg.from_ns, leg.to_ns);
    let parts = match leg.metric {
        Metric::SendLateness => vec![(leg.from_ns, leg.to_ns, Hop::Sender)],
        Metric::Turnaround => vec![(leg.from_ns, leg.to_ns, Hop::Turnaround)],
        Metric::Back => vec![(leg.from_ns, leg.to_ns, Hop::WayBack)],
        Metric::Out => vec![(leg.from_ns, sent_ns, Hop::SendCall), (sent_ns, leg.to_ns, Hop::WayOut)],
        _ => vec![(leg.from_ns, sent_ns, Hop::SendCall), (sent_ns, leg.to_ns, Hop::AwayFromPing)],
    };
    let span = |(from_ns, to_ns, hop): (i64, i64, Hop)| HopSpan {
        hop,
        leg: leg_key(leg.metric).to_owned(),
        from_ns: from_ns - stamps.due_ns,
        to_ns: to_ns - stamps.due_ns,
        end: Some(if hop == Hop::SendCall { "ping" } else { leg.end }.to_owned()),
        thread: None,
        cpu: None,
        cause: None,
        by: None,
        evidence: None,
        merged: None,
        cause_ns: None,
    };
    parts.into_iter().filter(|(from, to, _)| from < to).map(span).collect()
}

/// Merges time spans with the same cause that touch each other, and short ones with any neighbour, until there are few
/// enough. Neighbours at different places are merged only if nothing else is left.
fn merged(mut spans: Vec<HopSpan>) -> Vec<HopSpan> {
    let whole = spans.last().map_or(0, |span| span.to_ns);
    for across in [false, true] {
        let mut short = whole / SHORT;
        while short <= whole {
            spans = merged_below(spans, short, across);
            if spans.len() <= MOST_SPANS {
                return spans;
            }
            short = (short * 2).max(1);
        }
    }
    spans
}

fn merged_below(spans: Vec<HopSpan>, short: i64, across: bool) -> Vec<HopSpan> {
    let length = |span: &HopSpan| span.to_ns - span.from_ns;
    let mut all: Vec<HopSpan> = Vec::new();
    for span in spans {
        let is_short = |last: &HopSpan| length(last) < short || length(&span) < short;
        let joins = |last: &&mut HopSpan| {
            let near = last.to_ns == span.from_ns && (across || last.hop == span.hop);
            near && (is_same(last, &span) || is_short(last))
        };
        match all.last_mut().filter(joins) {
            Some(last) => merge(last, span),
            None => all.push(span),
        }
    }
    all
}

fn is_same(one: &HopSpan, other: &HopSpan) -> bool {
    (one.hop, one.cause, &one.by, one.cpu, &one.end, &one.thread, one.evidence)
        == (other.hop, other.cause, &other.by, other.cpu, &other.end, &other.thread, other.evidence)
}

/// Adds the time span `next` to the one before. The cause with more time remains.
fn merge(last: &mut HopSpan, next: HopSpan) {
    let cause_ns = |span: &HopSpan| span.cause_ns.unwrap_or(span.to_ns - span.from_ns);
    let (before, after) = (cause_ns(last), cause_ns(&next));
    let same = is_same(last, &next);
    let merged = last.merged.unwrap_or(1) + next.merged.unwrap_or(1);
    let (from_ns, to_ns) = (last.from_ns, next.to_ns);
    if !same && after > before {
        *last = next;
    }
    let cause_ns = if same { before + after } else { before.max(after) };
    (last.from_ns, last.to_ns) = (from_ns, to_ns);
    last.cause_ns = (cause_ns < to_ns - from_ns).then_some(cause_ns);
    // Time spans that are alike are one time span.
    last.merged = last.cause_ns.map(|_| merged);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(hop: Hop, from_ns: i64, to_ns: i64, cause: Option<CauseWord>) -> HopSpan {
        HopSpan {
            hop,
            leg: "out".into(),
            from_ns,
            to_ns,
            end: None,
            thread: None,
            cpu: None,
            cause,
            by: None,
            evidence: None,
            merged: None,
            cause_ns: None,
        }
    }

    #[test]
    fn short_spans_are_merged_at_the_same_place_only() {
        let (waited, ran) = (Some(CauseWord::WaitedForCpu), Some(CauseWord::OwnWork));
        let mut spans = vec![span(Hop::Sender, 0, 10, ran)];
        // A thread that gets its CPU for 1 us every 100 us.
        for n in 0..500 {
            let at = 10 + n * 100_000;
            spans.push(span(Hop::PongReceiver, at, at + 99_000, waited));
            spans.push(span(Hop::PongReceiver, at + 99_000, at + 100_000, ran));
        }
        spans.push(span(Hop::Turnaround, 50_000_010, 50_000_020, ran));
        let all = merged(spans);
        assert_eq!(all.iter().map(|s| s.hop).collect::<Vec<_>>(), [Hop::Sender, Hop::PongReceiver, Hop::Turnaround]);
        let long = &all[1];
        assert_eq!((long.from_ns, long.to_ns, long.cause), (10, 50_000_010, waited));
        // The time of the cause is never more than what it was.
        assert!(long.cause_ns.is_some_and(|ns| ns <= 500 * 99_000 && ns > 400 * 99_000), "{long:?}");
    }

    #[test]
    fn spans_that_are_alike_are_one_span() {
        let all = merged(vec![span(Hop::Sender, 0, 40, None), span(Hop::Sender, 40, 90, None)]);
        assert_eq!(all, [span(Hop::Sender, 0, 90, None)]);
    }

    #[test]
    fn the_number_of_spans_is_bounded_whatever_the_places() {
        let hop = |n: i64| if n % 2 == 0 { Hop::SendCall } else { Hop::WayOut };
        let all = merged((0..500).map(|n| span(hop(n), n * 100, n * 100 + 100, None)).collect());
        assert!(all.len() <= MOST_SPANS, "{}", all.len());
        assert_eq!((all[0].from_ns, all.last().map(|s| s.to_ns)), (0, Some(50_000)));
    }
}
