//! Divides the course of one message into time spans at places, with the cause of each, for a picture.
//!
//! The number of time spans is bounded: short ones are merged with a neighbour at the same place.

use crate::why::course::{Doing, Piece};
use crate::why::gated::shares_of;
use crate::why::ledger::Usual;
use crate::why::other_clock::kernel_cpu;
use crate::why::passage::course;
use crate::why::share::{Circumstances, Share};
use crate::why::stamps::{Leg, Stamps};
use crate::why::timeline::Timeline;
use crate::why::way::{Place, Step};
use crate::why::words::leg_key;
use tailbound_document::{CauseWord, Hop, HopSpan, KernelPlace, LegSpan, PlaceKind, WaterfallReport};
use tailbound_model::Metric;

/// Largest number of time spans of a message.
const MOST_SPANS: usize = 24;
/// At first, time spans shorter than this part of the whole course are merged with their neighbours.
const SHORT: i64 = 4_000;
/// Single places in the kernel at which the message was for less than this part of the whole course are one place.
const SHORT_PLACE: i64 = 100;

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
    let mut all = shares_of(piece, stamps, timeline, known);
    all.sort_by_key(|share| share.from_ns);
    let at = kernel_place(piece, timeline);
    let span = |from_ns: i64, to_ns: i64, share: Option<&Share>| {
        let hop = hop(piece, from_ns, share, stamps);
        let of_host = share.and_then(|share| thread_of_host(piece, share));
        let with_thread = !matches!(hop, Hop::WayOut | Hop::WayBack | Hop::AwayFromPing);
        HopSpan {
            at: at.clone(),
            end: Some(share.filter(|_| of_host.is_some()).map_or(piece.end, |s| s.key.end).to_owned()),
            thread: of_host.or(with_thread.then_some(piece.thread)).and_then(|tid| known.threads.name(tid)),
            cpu: share.and_then(|s| s.key.cpu).map(kernel_cpu),
            cause: share.map(|s| s.key.cause),
            by: share.and_then(|s| s.key.by.clone()),
            evidence: share.map(|s| s.evidence),
            ..HopSpan::new(hop, leg_key(piece.leg), (from_ns - stamps.due_ns, to_ns - stamps.due_ns))
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

/// The single place of the message in the kernel during a piece, if it is known.
fn kernel_place(piece: &Piece, timeline: &Timeline) -> Option<KernelPlace> {
    let of = |kind, device: Option<usize>| {
        let device = device.and_then(|index| timeline.hops.device(index)).map(|(name, _)| name.to_owned());
        Some(KernelPlace { kind, device })
    };
    match piece.what {
        Doing::ReadOthers { .. } => of(PlaceKind::Socket, None),
        Doing::Passed(Step::At(place) | Step::Rest(place), _) => match place {
            Place::Discipline(device) => of(PlaceKind::QueueDiscipline, device),
            Place::Device(device) => of(PlaceKind::Device, device),
            Place::Receive { device, .. } => of(PlaceKind::Receive, device),
        },
        _ => None,
    }
}

/// Whether no thread of an end had the message during a piece.
fn is_without_message(piece: &Piece) -> bool {
    matches!(piece.what, Doing::SleptForMessage(_) | Doing::Polled { .. })
}

/// The thread of the host that kept a guest from working, if that is the share.
fn thread_of_host(piece: &Piece, share: &Share) -> Option<i32> {
    share.key.thread.filter(|tid| *tid != piece.thread)
}

/// The place of the message in a time span of a piece that begins at `from_ns`.
fn hop(piece: &Piece, from_ns: i64, share: Option<&Share>, stamps: &Stamps) -> Hop {
    // A thread that was stopped while it should have received the message is the reason, and not the network.
    let cause = share.map(|s| s.key.cause);
    let on_the_way = matches!(piece.what, Doing::Passed(..))
        || share.is_some_and(|share| thread_of_host(piece, share).is_some()) && is_without_message(piece)
        || is_without_message(piece)
            && matches!(
                cause,
                None | Some(CauseWord::Network | CauseWord::Gate | CauseWord::Launch | CauseWord::HoldAndRelease)
            );
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
        end: Some(if hop == Hop::SendCall { "ping" } else { leg.end }.to_owned()),
        ..HopSpan::new(hop, leg_key(leg.metric), (from_ns - stamps.due_ns, to_ns - stamps.due_ns))
    };
    parts.into_iter().filter(|(from, to, _)| from < to).map(span).collect()
}

/// Merges time spans with the same cause that touch each other, and short ones with any neighbour, until there are few
/// enough. Neighbours at different places are merged only if nothing else is left.
fn merged(mut spans: Vec<HopSpan>) -> Vec<HopSpan> {
    let whole = spans.last().map_or(0, |span| span.to_ns);
    spans = merged_below(spans, whole / SHORT_PLACE, Near::InTheKernel);
    for near in [Near::AtOnePlace, Near::OfOneHop, Near::Any] {
        let mut short = whole / SHORT;
        while short <= whole {
            spans = merged_below(spans, short, near);
            if spans.len() <= MOST_SPANS {
                return spans;
            }
            short = (short * 2).max(1);
        }
    }
    spans
}

/// Which time spans are near enough to each other to be merged.
#[derive(Debug, Clone, Copy)]
enum Near {
    /// Time spans at different places in the kernel, between the same threads.
    InTheKernel,
    /// Time spans at one place.
    AtOnePlace,
    /// Time spans between the same threads, or at the same thread.
    OfOneHop,
    /// All time spans.
    Any,
}

impl Near {
    fn joins(self, last: &HopSpan, span: &HopSpan) -> bool {
        match self {
            Near::InTheKernel => last.hop == span.hop && last.at != span.at,
            Near::AtOnePlace => (last.hop, &last.at) == (span.hop, &span.at),
            Near::OfOneHop => last.hop == span.hop,
            Near::Any => true,
        }
    }
}

fn merged_below(spans: Vec<HopSpan>, short: i64, near: Near) -> Vec<HopSpan> {
    let length = |span: &HopSpan| span.to_ns - span.from_ns;
    let mut all: Vec<HopSpan> = Vec::new();
    for span in spans {
        let is_short = |last: &HopSpan| length(last) < short || length(&span) < short;
        let joins = |last: &&mut HopSpan| {
            last.to_ns == span.from_ns && near.joins(last, &span) && (is_same(last, &span) || is_short(last))
        };
        match all.last_mut().filter(joins) {
            Some(last) => merge(last, span),
            None => all.push(span),
        }
    }
    all
}

fn is_same(one: &HopSpan, other: &HopSpan) -> bool {
    (one.hop, &one.at, one.cause, &one.by, one.cpu, &one.end, &one.thread, one.evidence)
        == (other.hop, &other.at, other.cause, &other.by, other.cpu, &other.end, &other.thread, other.evidence)
}

/// Adds the time span `next` to the one before. The cause with more time remains.
fn merge(last: &mut HopSpan, next: HopSpan) {
    let cause_ns = |span: &HopSpan| span.cause_ns.unwrap_or(span.to_ns - span.from_ns);
    let (before, after) = (cause_ns(last), cause_ns(&next));
    let same = is_same(last, &next);
    let merged = last.merged.unwrap_or(1) + next.merged.unwrap_or(1);
    let (from_ns, to_ns) = (last.from_ns, next.to_ns);
    let one_place = last.at == next.at;
    if !same && after > before {
        *last = next;
    }
    let cause_ns = if same { before + after } else { before.max(after) };
    (last.from_ns, last.to_ns) = (from_ns, to_ns);
    last.cause_ns = (cause_ns < to_ns - from_ns).then_some(cause_ns);
    // No single place stands for several places at which the message was for most of the time.
    if !one_place && cause_ns * 2 < to_ns - from_ns {
        last.at = None;
    }
    // Time spans that are alike are one time span.
    last.merged = last.cause_ns.map(|_| merged);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(hop: Hop, from_ns: i64, to_ns: i64, cause: Option<CauseWord>) -> HopSpan {
        HopSpan { cause, ..HopSpan::new(hop, "out", (from_ns, to_ns)) }
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
    fn a_place_in_the_kernel_at_which_the_message_was_long_remains() {
        let at = |kind, device: &str, from_ns, to_ns| HopSpan {
            at: Some(KernelPlace { kind, device: Some(device.into()) }),
            ..span(Hop::WayOut, from_ns, to_ns, Some(CauseWord::QueueDiscipline))
        };
        let spans = vec![
            at(PlaceKind::QueueDiscipline, "veth0", 0, 10),
            at(PlaceKind::Device, "veth0", 10, 30),
            at(PlaceKind::Receive, "port0", 30, 40),
            at(PlaceKind::QueueDiscipline, "port1", 40, 50_000),
            at(PlaceKind::Device, "port1", 50_000, 50_020),
            at(PlaceKind::Receive, "veth1", 50_020, 90_000),
        ];
        let all = merged(spans);
        let devices: Vec<_> = all.iter().map(|s| s.at.as_ref().and_then(|at| at.device.as_deref())).collect();
        assert_eq!(devices, [Some("port1"), Some("veth1")]);
        assert_eq!((all[0].from_ns, all[1].to_ns), (0, 90_000));
        // Three short places before a thread that waited long: none of them stands for the others.
        let short = (0..3).map(|n| at(PlaceKind::Device, ["a", "b", "c"][n as usize], n * 10, n * 10 + 10));
        let all = merged(short.chain([span(Hop::PongReceiver, 30, 90_000, None)]).collect());
        let places: Vec<_> = all.iter().map(|s| (s.hop, s.at.is_some())).collect();
        assert_eq!(places, [(Hop::WayOut, false), (Hop::PongReceiver, false)]);
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
