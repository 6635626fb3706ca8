//! The course of the latest message of an incident in words, and as lines of text for a terminal.

use crate::tables::causes;
use std::collections::BTreeMap;
use tailbound_document::number::{count, time};
use tailbound_document::{
    CauseWord, ConditionReport, Evidence, Hop, HopSpan, IncidentReport, KernelPlace, PlaceKind, Report, WaterfallReport,
};

/// Largest number of conditions whose worst incident is drawn on a terminal.
const CONDITIONS: usize = 4;
/// Columns of a terminal that the names of the places and the bars take, and all columns of a line.
const NAME: usize = 16;
const BAR: usize = 24;
const LINE: usize = 80;

/// The places at which the message was, in their order, with the time spans of each.
pub(crate) fn rows(waterfall: &WaterfallReport) -> Vec<(Hop, Vec<&HopSpan>)> {
    let mut hops: Vec<Hop> = waterfall.spans.iter().map(|s| s.hop).collect();
    hops.sort_unstable();
    hops.dedup();
    let of = |hop: Hop| waterfall.spans.iter().filter(|s| s.hop == hop).collect();
    hops.into_iter().map(|hop| (hop, of(hop))).collect()
}

/// Name of a place of a message.
pub(crate) fn place(hop: Hop) -> &'static str {
    match hop {
        Hop::Sender => "sender",
        Hop::SendCall => "send call",
        Hop::WayOut => "on the way out",
        Hop::PongReceiver => "receiving pong",
        Hop::Turnaround => "turnaround",
        Hop::WayBack => "on the way back",
        Hop::AwayFromPing => "out and back",
        Hop::PingReceiver => "receiving ping",
    }
}

/// A row of a drawing: a place of the message, and the single place in the kernel if it is known.
pub(crate) type Row<'a> = (Hop, Option<&'a KernelPlace>);

/// As [`rows`], with a row for each single place in the kernel, in the order in which the message passed them.
pub(crate) fn single_rows(waterfall: &WaterfallReport) -> Vec<(Row<'_>, Vec<&HopSpan>)> {
    let mut all: Vec<(Row<'_>, Vec<&HopSpan>)> = Vec::new();
    for span in rows(waterfall).into_iter().flat_map(|(_, spans)| spans) {
        let row = (span.hop, span.at.as_ref());
        match all.iter_mut().find(|(other, _)| *other == row) {
            Some((_, spans)) => spans.push(span),
            None => all.push((row, vec![span])),
        }
    }
    all
}

/// Name of a row of a drawing.
pub(crate) fn row_name((hop, at): Row) -> String {
    let Some(KernelPlace { kind, device }) = at else { return place(hop).to_owned() };
    let device = device.as_deref().unwrap_or("a device");
    match kind {
        PlaceKind::QueueDiscipline => format!("queue of {device}"),
        PlaceKind::Device => format!("device {device}"),
        PlaceKind::Receive => format!("NET_RX of {device}"),
        PlaceKind::Socket => "socket".to_owned(),
    }
}

/// Name of a part of the way of a message.
pub(crate) fn leg(key: &str) -> String {
    key.replace('_', " ")
}

/// What happened in a time span, in few words, with the kind of the evidence unless it was seen.
pub(crate) fn words(span: &HopSpan) -> String {
    let by = span.by.as_ref().map_or(String::new(), |by| by.process.as_ref().unwrap_or(&by.name).clone());
    let cpu = span.cpu.map_or("a CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let Some(cause) = span.cause else { return "cause not known".to_owned() };
    let carrier = span.by.as_ref().and_then(|by| by.carrier.as_ref());
    let what = match cause {
        CauseWord::KernelThread | CauseWord::Instrument if carrier.is_some() => {
            format!("{} waited for {cpu} ({by})", carrier.map_or("", String::as_str))
        }
        CauseWord::WaitedForCpu | CauseWord::KernelThread | CauseWord::Instrument if !by.is_empty() => {
            format!("waited for {cpu} ({by})")
        }
        CauseWord::WaitedForCpu | CauseWord::KernelThread | CauseWord::Instrument => format!("waited for {cpu}"),
        CauseWord::Irq => format!("interrupt {by} on {cpu}"),
        CauseWord::Ipi => format!("call from another CPU ({by}) on {cpu}"),
        CauseWord::Softirq => format!("soft interrupt {by} on {cpu}"),
        CauseWord::PageFault => "page fault".to_owned(),
        CauseWord::Reclaim => "freed memory first".to_owned(),
        CauseWord::BlockedIo if span.evidence == Some(Evidence::AtMost) => "waited for a disk or a lock".to_owned(),
        CauseWord::BlockedIo => "waited for a disk".to_owned(),
        CauseWord::KernelLock => "lock in the kernel".to_owned(),
        CauseWord::UserLock => format!("waited for {by}"),
        CauseWord::WriterThrottled => "waited for an acknowledgement".to_owned(),
        CauseWord::Stopped => "process was stopped".to_owned(),
        CauseWord::Frozen => "process was frozen".to_owned(),
        CauseWord::CpuQuota => "CPU quota used up".to_owned(),
        CauseWord::RtThrottled => "real-time limit".to_owned(),
        CauseWord::DeadlineThrottled => "deadline run time".to_owned(),
        CauseWord::Gate => "gate closed".to_owned(),
        CauseWord::Launch => "before its launch time".to_owned(),
        CauseWord::QueueDiscipline => format!("queue discipline {by}"),
        CauseWord::DeviceQueue => format!("device {by}"),
        CauseWord::Retransmission => "until sent again".to_owned(),
        CauseWord::Reassembly if by.is_empty() => "waited for the rest".to_owned(),
        CauseWord::Reassembly => format!("waited for the rest, at {by}"),
        CauseWord::SocketQueue => "read other datagrams".to_owned(),
        CauseWord::FairServer => format!("fair server ran {by}"),
        CauseWord::IdleExit => format!("{cpu} left idle"),
        CauseWord::Executor => "handled another message".to_owned(),
        CauseWord::TimerLate => format!("timer on {cpu} was late"),
        CauseWord::Steal => "hypervisor had the CPU".to_owned(),
        CauseWord::Frequency => format!("low frequency of {cpu}"),
        CauseWord::MachineGap => format!("{cpu} may have stood still"),
        CauseWord::OwnWork => format!("ran on {cpu}"),
        CauseWord::Network => "with no thread".to_owned(),
        CauseWord::HoldAndRelease => "held with others".to_owned(),
        CauseWord::DriverCall => "slept in the call".to_owned(),
    };
    match span.evidence {
        Some(Evidence::Inferred) if cause != CauseWord::Network => format!("{what}, inferred"),
        Some(Evidence::Counted) => format!("{what}, counted"),
        Some(Evidence::AtMost) => format!("{what}, at most"),
        _ => what,
    }
}

/// The conditions whose worst incident is drawn on a terminal, with that incident: those with the largest excess.
fn worst(report: &Report) -> Vec<(&ConditionReport, &IncidentReport, &WaterfallReport)> {
    let one = |c| {
        let incident = causes::described(c).iter().find(|i| i.ledger.is_some() && i.waterfall.is_some())?;
        Some((c, incident, incident.waterfall.as_ref()?))
    };
    let mut all: Vec<_> = report.conditions.iter().filter_map(one).collect();
    all.sort_by_key(|(c, ..)| std::cmp::Reverse(c.incident_totals.map_or(0, |t| t.excess_ns)));
    all.truncate(CONDITIONS);
    all
}

/// For each of the conditions with the largest excess: at most ten lines that draw the latest message of the worst
/// incident with a ledger.
pub(crate) fn lines(report: &Report) -> Vec<String> {
    let drawn = worst(report);
    let name = |c: &ConditionReport| if drawn.len() > 1 { format!(" of {}", c.name) } else { String::new() };
    drawn.iter().flat_map(|(c, incident, waterfall)| draw(&name(c), incident, waterfall)).collect()
}

fn draw(of: &str, incident: &IncidentReport, waterfall: &WaterfallReport) -> Vec<String> {
    let whole = waterfall.legs.last().map_or(0, |leg| leg.to_ns).max(1);
    let title = format!("Slot {} in the worst incident{of}", count(incident.worst_slot));
    let usual: i64 = waterfall.legs.iter().filter_map(|leg| leg.usual_ns).sum();
    let usual = if usual > 0 { format!(" (usually {})", time(usual as f64)) } else { String::new() };
    let took = format!(": {}{usual}", time(whole as f64));
    let room = LINE.saturating_sub(took.chars().count());
    let mut lines = vec![cut(&title, room) + &took];
    for (hop, spans) in rows(waterfall) {
        let Some((first, ns)) = by_words(&spans).into_iter().next() else { continue };
        let line = format!("{:NAME$}|{}| {} {first}", place(hop), bar(&spans, &first, whole), time(ns as f64));
        lines.push(cut(&line, LINE));
    }
    lines.push(format!("{:NAME$}0{:>BAR$}", "", time(whole as f64)));
    lines
}

/// Time of the cause of a span, ns: the span without what was merged into it.
pub(crate) fn cause_ns(span: &HopSpan) -> i64 {
    span.cause_ns.unwrap_or(span.to_ns - span.from_ns)
}

/// The times of all spans with the same words, ns, the longest first.
pub(crate) fn by_words(spans: &[&HopSpan]) -> Vec<(String, i64)> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    spans.iter().for_each(|span| *sums.entry(words(span)).or_default() += cause_ns(span));
    let mut sums: Vec<(String, i64)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    sums
}

/// A row of characters for the time of a message: time spans with the words `first` are filled, the others are shaded.
fn bar(spans: &[&HopSpan], first: &str, whole: i64) -> String {
    let mut cells = [' '; BAR];
    let at = |ns: i64| ((ns as f64 / whole as f64 * BAR as f64) as usize).min(BAR - 1);
    let (filled, shaded): (Vec<&HopSpan>, Vec<&HopSpan>) = spans.iter().partition(|span| words(span) == first);
    let shaded = shaded.into_iter().map(|span| (span, '\u{2591}'));
    for (span, mark) in shaded.chain(filled.into_iter().map(|span| (span, '\u{2588}'))) {
        // A span is at least one character wide, and ends before the character in which the next one begins.
        let (from, to) = (at(span.from_ns), at(span.to_ns - 1).max(at(span.from_ns)));
        cells[from..=to].fill(mark);
    }
    cells.iter().collect()
}

fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect(),
        false => text.to_owned(),
    }
}
