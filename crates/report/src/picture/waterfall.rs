//! Draws the latest message of an incident for the page as a waterfall: one row for each place of the message, from top
//! to bottom, and the time since the message was due from left to right.
//!
//! Each time span has the colour of the kind of its cause, and the words of its cause beside it or in it. A thick line
//! below the first row of each part of the way has the length of the usual time of this part.

use crate::picture::axis::linear_ticks;
use crate::picture::canvas::{Canvas, Hold, Mark, Medium, WIDTH};
use crate::picture::legs::tick_words;
use crate::tables::waterfall::{by_words, cause_ns, leg, row_name, single_rows, words};
use tailbound_document::number::{Unit, count, time};
use tailbound_document::{CauseWord, ConditionReport, Evidence, HopSpan, LegSpan, WaterfallReport};

const HEAD: f64 = 24.0;
const LEFT: f64 = 158.0;
const RIGHT: f64 = WIDTH - 16.0;
/// Height of a row, and of the bars in it, which begin below the top of the row.
const ROW: f64 = 34.0;
const BAR: f64 = 16.0;
const TOP: f64 = 5.0;
/// Additional height of a row whose words have no room beside its bars.
const BELOW: f64 = 14.0;
/// Width of a character of a label, about.
const CHARACTER: f64 = 6.1;

/// Draws the latest message of the incident number `at` of a condition; `None` if the course of the message is not known.
pub(crate) fn draw(condition: &ConditionReport, at: usize) -> Option<Canvas> {
    let incident = condition.incidents.get(at)?;
    let waterfall = incident.waterfall.as_ref()?;
    let whole = waterfall.legs.last()?.to_ns.max(1);
    let x = |ns: i64| LEFT + (RIGHT - LEFT) * ns as f64 / whole as f64;
    let rows: Vec<Row> =
        single_rows(waterfall).into_iter().map(|(row, spans)| Row::of(row_name(row), spans, &x)).collect();
    let height = HEAD + rows.iter().map(Row::height).sum::<f64>() + 4.0;
    let label = format!("Course of slot {}, trial {}", count(incident.worst_slot), incident.trial);
    let mut canvas = Canvas::new(Medium::Page, height, label).of(condition.id).plot(LEFT, RIGHT);
    axis(&mut canvas, whole, height, &x);
    let mut marked: Vec<&str> = Vec::new();
    let mut top = HEAD;
    for row in &rows {
        let leg = waterfall.legs.iter().find(|l| row.spans.first().is_some_and(|s| s.leg == l.leg));
        let first = leg.filter(|l| !marked.contains(&l.leg.as_str()));
        marked.extend(first.map(|l| l.leg.as_str()));
        row.draw(&mut canvas, top, first, &x);
        for span in &row.spans {
            let number = waterfall.spans.iter().position(|s| std::ptr::eq(s, *span)).unwrap_or_default();
            draw_span(&mut canvas, span, mark(span).with("incident", at).with("span", number), (top, &x));
        }
        top += row.height();
    }
    Some(canvas)
}

/// Names of the kinds of causes in a drawing with their colours: the hue of each kind, and its words.
pub(crate) fn kinds(waterfall: &WaterfallReport) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = waterfall.spans.iter().map(|s| Kind::of(s.cause)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Kinds of causes that have the same colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Wait,
    Interrupt,
    Stop,
    Sleep,
    Work,
    Way,
    Unknown,
}

impl Kind {
    fn of(cause: Option<CauseWord>) -> Kind {
        match cause {
            None => Kind::Unknown,
            Some(
                CauseWord::WaitedForCpu
                | CauseWord::KernelThread
                | CauseWord::Instrument
                | CauseWord::IdleExit
                | CauseWord::TimerLate
                | CauseWord::Executor
                | CauseWord::FairServer,
            ) => Kind::Wait,
            Some(CauseWord::Irq | CauseWord::Ipi | CauseWord::Softirq) => Kind::Interrupt,
            Some(
                CauseWord::Stopped
                | CauseWord::Frozen
                | CauseWord::CpuQuota
                | CauseWord::RtThrottled
                | CauseWord::DeadlineThrottled
                | CauseWord::Steal
                | CauseWord::MachineGap,
            ) => Kind::Stop,
            Some(
                CauseWord::PageFault
                | CauseWord::Reclaim
                | CauseWord::BlockedIo
                | CauseWord::KernelLock
                | CauseWord::UserLock
                | CauseWord::WriterThrottled
                | CauseWord::DriverCall,
            ) => Kind::Sleep,
            Some(CauseWord::OwnWork | CauseWord::Frequency) => Kind::Work,
            Some(
                CauseWord::Network
                | CauseWord::HoldAndRelease
                | CauseWord::QueueDiscipline
                | CauseWord::Gate
                | CauseWord::Launch
                | CauseWord::DeviceQueue
                | CauseWord::Retransmission
                | CauseWord::Reassembly
                | CauseWord::SocketQueue,
            ) => Kind::Way,
        }
    }

    /// The hue of the kind among the hues of conditions, and the class of its bars.
    pub fn look(self) -> (usize, &'static str) {
        match self {
            Kind::Wait => (4, "piece"),
            Kind::Interrupt => (2, "piece"),
            Kind::Stop => (0, "piece"),
            Kind::Sleep => (1, "piece"),
            Kind::Work => (3, "piece"),
            Kind::Way => (5, "piece"),
            Kind::Unknown => (5, "piece unknown"),
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Kind::Wait => "waited for a CPU",
            Kind::Interrupt => "interrupt",
            Kind::Stop => "stopped, or a limit of CPU time",
            Kind::Sleep => "slept",
            Kind::Work => "ran",
            Kind::Way => "with no thread of an end",
            Kind::Unknown => "cause not known",
        }
    }
}

fn axis(canvas: &mut Canvas, whole: i64, height: f64, x: &dyn Fn(i64) -> f64) {
    let unit = Unit::of(whole as f64);
    for tick in linear_ticks(whole as f64, 7) {
        let at = x(tick as i64);
        canvas.line("grid", (at, HEAD - 2.0), (at, height));
        let hold = if at + 30.0 > RIGHT { Hold::End } else { Hold::Middle };
        canvas.text("tick", (at, HEAD - 8.0), &tick_words(unit, tick), hold);
    }
    canvas.text("tick", (LEFT - 26.0, HEAD - 8.0), "time since due", Hold::End);
}

/// A place of the message with its time spans, and where their words are written.
struct Row<'a> {
    name: String,
    spans: Vec<&'a HopSpan>,
    /// The words that are not written in a bar, and where they are written.
    words: String,
    at: Place,
}

/// Where the words of a row are written.
#[derive(Clone, Copy)]
enum Place {
    Right(f64),
    Left(f64),
    Below(f64),
}

impl<'a> Row<'a> {
    fn of(name: String, spans: Vec<&'a HopSpan>, x: &dyn Fn(i64) -> f64) -> Row<'a> {
        let outside: Vec<&HopSpan> = spans.iter().copied().filter(|s| !fits(s, x)).collect();
        let words = listed(&by_words(&outside), ((RIGHT - LEFT) / CHARACTER) as usize);
        let begin = spans.first().map_or(LEFT, |s| x(s.from_ns));
        let end = spans.last().map_or(LEFT, |s| x(s.to_ns));
        let width = CHARACTER * words.chars().count() as f64 + 8.0;
        let at = match () {
            () if end + width < RIGHT => Place::Right(end + 6.0),
            () if begin - width > LEFT => Place::Left(begin - 6.0),
            () => Place::Below((RIGHT - width).clamp(LEFT, begin.max(LEFT))),
        };
        Row { name, spans, words, at }
    }

    fn height(&self) -> f64 {
        let below = matches!(self.at, Place::Below(_)) && !self.words.is_empty();
        ROW + if below { BELOW } else { 0.0 }
    }

    fn draw(&self, canvas: &mut Canvas, top: f64, leg_of: Option<&LegSpan>, x: &dyn Fn(i64) -> f64) {
        canvas.text("row", (LEFT - 10.0, top + TOP + 12.0), &self.name, Hold::End);
        let words = &self.words;
        match self.at {
            _ if words.is_empty() => {}
            Place::Right(at) => canvas.text("value", (at, top + TOP + 12.0), words, Hold::Start),
            Place::Left(at) => canvas.text("value", (at, top + TOP + 12.0), words, Hold::End),
            Place::Below(at) => canvas.text("value", (at, top + TOP + BAR + 13.0), words, Hold::Start),
        }
        if let Some((of, usual_ns)) = leg_of.and_then(|l| Some((l, l.usual_ns?))) {
            let at = top + TOP + BAR + 2.0;
            canvas.line("usual", (x(of.from_ns), at), (x(of.from_ns + usual_ns).clamp(LEFT + 1.0, RIGHT), at));
            let words = format!("{} usually {}", leg(&of.leg), time(usual_ns as f64));
            canvas.text("quantile", (LEFT - 10.0, top + TOP + 24.0), &words, Hold::End);
        }
    }
}

fn draw_span(canvas: &mut Canvas, span: &HopSpan, mark: Mark, (top, x): (f64, &dyn Fn(i64) -> f64)) {
    let (hue, class) = Kind::of(span.cause).look();
    let width = (x(span.to_ns) - x(span.from_ns)).max(1.0);
    canvas.open("", hue, &[]);
    canvas.bar(class, (x(span.from_ns), top + TOP), (width, BAR), &mark);
    canvas.close();
    if fits(span, x) {
        let middle = (x(span.from_ns) + x(span.to_ns)) / 2.0;
        canvas.text("value", (middle, top + TOP + 12.0), &label(span), Hold::Middle);
    }
}

/// The tooltip of a span.
fn mark(span: &HopSpan) -> Mark {
    let thread = span.thread.as_ref().map_or(String::new(), |thread| format!(", thread {thread}"));
    let mut lines = vec![
        format!("{}{thread}: {}", row_name((span.hop, span.at.as_ref())), words(span)),
        format!("from {} to {} after due", time(span.from_ns as f64), time(span.to_ns as f64)),
    ];
    lines.extend(merged_words(span));
    lines.extend(span.evidence.map(|evidence| format!("evidence: {}", evidence_words(evidence))));
    Mark { lines, data: Vec::new() }.with("value-ns", span.to_ns - span.from_ns)
}

/// What a span with merged spans contains beside its cause.
fn merged_words(span: &HopSpan) -> Option<String> {
    let merged = span.merged?;
    Some(format!("{} time spans, {} of them with this cause", count(merged), time(cause_ns(span) as f64)))
}

fn evidence_words(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Seen => "seen",
        Evidence::Counted => "counted",
        Evidence::Inferred => "inferred",
        Evidence::AtMost => "an upper bound",
    }
}

fn label(span: &HopSpan) -> String {
    format!("{} {}", time(cause_ns(span) as f64), words(span))
}

/// Whether the words of a span fit into its bar.
fn fits(span: &HopSpan, x: &dyn Fn(i64) -> f64) -> bool {
    CHARACTER * label(span).chars().count() as f64 + 8.0 <= x(span.to_ns) - x(span.from_ns)
}

/// As many of these words with their times as there is room for, and the time of the others.
fn listed(all: &[(String, i64)], room: usize) -> String {
    let one = |(words, ns): &(String, i64)| format!("{} {words}", time(*ns as f64));
    for most in (1..=all.len()).rev() {
        let mut parts: Vec<String> = all[..most].iter().map(one).collect();
        let others: i64 = all[most..].iter().map(|(_, ns)| ns).sum();
        if most < all.len() {
            parts.push(format!("{} others", time(others as f64)));
        }
        let text = parts.join("; ");
        if most == 1 || text.chars().count() <= room {
            return text;
        }
    }
    String::new()
}
