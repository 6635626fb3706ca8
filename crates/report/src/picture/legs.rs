//! Draws the parts of the time of messages: the message with the median round trip beside the worst messages, with one
//! bar per message and one section per part. There is a drawing with the axis, and a drawing for each bar.

use crate::picture::axis::linear_ticks;
use crate::picture::canvas::{Canvas, Hold, Mark};
use crate::picture::series::Chart;
use tailbound_document::number::{THIN, Unit, count, time};
use tailbound_document::{ConditionReport, Message};

const WIDTH: f64 = crate::picture::canvas::WIDTH;

const STEP: f64 = 24.0;

const HEAD: f64 = 24.0;

/// Number of worst messages that are drawn; the table of worst messages lists more.
const WORST: usize = 10;

/// A part of the time of a message: its key in the report document, its name in words, its CSS class and its value.
type Part = (&'static str, &'static str, &'static str, fn(&Message) -> Option<i64>);

const PARTS: [Part; 4] = [
    ("send_lateness_ns", "sent late", "late", |m| m.send_lateness_ns),
    ("out_ns", "out", "out", |m| m.out_ns),
    ("turnaround_ns", "turnaround", "turn", |m| m.turnaround_ns),
    ("back_ns", "back", "back", |m| m.back_ns),
];

/// Parts of the time of a message whose legs are not known separately, because of two clocks or because there is no row
/// of the pong.
const WHOLE: [Part; 2] = [PARTS[0], ("round_trip_ns", "round trip", "out", |m| m.round_trip_ns)];

/// A message, with its name that is shown beside the axis.
struct Bar<'r> {
    of: &'r ConditionReport,
    message: &'r Message,
    name: String,
    is_median: bool,
}

fn total(message: &Message) -> i64 {
    message.from_intended_ns.or(message.round_trip_ns).unwrap_or(0)
}

fn median(of: &ConditionReport, name: String) -> Option<Bar<'_>> {
    Some(Bar { of, message: of.median_message.as_ref()?, name, is_median: true })
}

/// Conditions that have a worst message, sorted so that the condition with the latest message comes first.
pub(crate) fn conditions<'r>(chart: &Chart<'r>) -> Vec<&'r ConditionReport> {
    let mut all: Vec<&ConditionReport> = chart.measured.iter().copied().filter(|c| !c.worst.is_empty()).collect();
    all.sort_by_key(|c| std::cmp::Reverse(c.worst.first().map_or(0, total)));
    all
}

/// The median message of a condition and its worst messages; without a condition, the median messages of all
/// conditions.
pub(crate) fn draw(chart: &Chart<'_>, condition: Option<&ConditionReport>) -> Vec<Canvas> {
    let bars: Vec<Bar<'_>> = match condition {
        None => chart.measured.iter().filter_map(|c| median(c, chart.short_name(c))).collect(),
        Some(c) => {
            let worst = c.worst.iter().take(WORST).zip(1..).map(|(message, i)| Bar {
                of: c,
                message,
                name: format!("{i}: slot {}", count(message.slot)),
                is_median: false,
            });
            median(c, "median".into()).into_iter().chain(worst).collect()
        }
    };
    let Some(most) = bars.iter().map(|b| total(b.message)).max() else { return Vec::new() };
    let most = most.max(1) as f64;
    let longest = bars.iter().map(|b| b.name.chars().count()).max().unwrap_or(0).max(12) as f64;
    let (left, right) = ((22.0 + 7.2 * longest).min(260.0), WIDTH - 84.0);
    let x = |ns: f64| left + (right - left) * ns / most;
    let (unit, ticks) = (Unit::of(most), linear_ticks(most, 7));
    let mut head = chart.canvas(HEAD, "Axis of the legs").plot(left, right);
    for tick in &ticks {
        head.text("tick", (x(*tick), HEAD - 7.0), &tick_words(unit, *tick), Hold::Middle);
    }
    let parts: &[Part] = if bars.iter().all(|b| b.message.out_ns.is_some()) { &PARTS } else { &WHOLE };
    let mut drawn = vec![head];
    for bar in &bars {
        let name = format!("Legs of {}", bar.name);
        // Below the median there is some room.
        let foot = if bar.is_median && condition.is_some() { 6.0 } else { 0.0 };
        let mut canvas = chart.canvas(STEP + foot, name).of(bar.of.id).plot(left, right);
        canvas.upright("grid", ticks.iter().map(|t| x(*t)), (0.0, STEP + foot));
        let class = if bar.is_median && condition.is_some() { "row strong" } else { "row" };
        canvas.text(class, (left - 10.0, 16.0), &bar.name.chars().take(36).collect::<String>(), Hold::End);
        draw_bar(&mut canvas, bar, parts, &x);
        drawn.push(canvas);
    }
    drawn
}

/// Formats a time without trailing zeros, for example `0.5 ms`.
pub(crate) fn tick_words(unit: Unit, tick: f64) -> String {
    let words = unit.number(tick);
    let words = if words.contains('.') { words.trim_end_matches('0').trim_end_matches('.') } else { &words };
    format!("{words}{THIN}{}", unit.name())
}

fn draw_bar(canvas: &mut Canvas, bar: &Bar<'_>, parts: &[Part], x: &dyn Fn(f64) -> f64) {
    let message = bar.message;
    let what = if bar.is_median { "Median message, slot" } else { "Slot" };
    let title = format!("{what} {}, trial {}", count(message.slot), message.trial);
    let data = [
        ("condition", bar.of.id.to_string()),
        ("slot", message.slot.to_string()),
        ("trial", message.trial.to_string()),
        ("title", title),
    ];
    canvas.open("", 0, &data);
    let mut from = 0.0;
    for (key, words, class, of) in parts {
        let Some(ns) = of(message).filter(|ns| *ns > 0) else { continue };
        let width = (x(from + ns as f64) - x(from)).max(0.6);
        let lines = vec![format!("{words}: {} of {}", time(ns as f64), time(total(message) as f64))];
        let mark = Mark { lines, data: Vec::new() }.with("part", key).with("value-ns", ns);
        canvas.bar(&format!("bar {class}"), (x(from), 4.0), (width, 15.0), &mark);
        from += ns as f64;
    }
    canvas.close();
    canvas.text("value", (x(from) + 7.0, 16.0), &time(total(message) as f64), Hold::Start);
}

/// Draws the names of the parts with their colours in an SVG file; the page shows these names above the chart.
pub(crate) fn keys(chart: &Chart<'_>, condition: &ConditionReport) -> Canvas {
    let mut canvas = chart.canvas(20.0, "Parts");
    let mut messages = condition.worst.iter().take(WORST).chain(&condition.median_message);
    let parts: &[Part] = if messages.all(|m| m.out_ns.is_some()) { &PARTS } else { &WHOLE };
    let mut at = 16.0;
    for (_, words, class, _) in parts {
        canvas.rect(&format!("bar {class}"), (at, 1.0), (9.0, 9.0));
        canvas.text("tick", (at + 14.0, 10.0), words, Hold::Start);
        at += 34.0 + 7.0 * words.len() as f64;
    }
    canvas
}
