//! Where the time went: the median message beside the ten worst of the condition with the worst of all.

use super::axis::linear_ticks;
use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue};
use crate::condition::{ConditionReport, Message};
use crate::document::Report;
use crate::number::{Unit, count, time};

const WIDTH: f64 = 960.0;
const STEP: f64 = 24.0;
const TOP: f64 = 78.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = WIDTH - 90.0;

/// A part of a message: its words, its colour as on the page, its value.
type Part = (&'static str, &'static str, fn(&Message) -> Option<i64>);
const PARTS: [Part; 4] = [
    ("sent late", "#a9adb4", |m| m.send_lateness_ns),
    ("out", "#56b4e9", |m| m.out_ns),
    ("turnaround", "#cc79a7", |m| m.turnaround_ns),
    ("back", "#0072b2", |m| m.back_ns),
];
/// The same where the legs are not known apart: two clocks, or no row of the pong.
const WHOLE: [Part; 2] = [PARTS[0], ("round trip", "#56b4e9", |m| m.round_trip_ns)];

fn total(message: &Message) -> i64 {
    message.from_intended_ns.or(message.round_trip_ns).unwrap_or(0)
}

pub(super) fn draw(report: &Report) -> Option<String> {
    let worst = |c: &&ConditionReport| c.worst.first().map_or(0, total);
    let condition = report.conditions.iter().filter(|c| !c.worst.is_empty()).max_by_key(worst)?;
    let median = condition.median_message.iter().map(|m| ("median".to_owned(), m));
    let worst = condition.worst.iter().take(10).zip(1..).map(|(m, i)| (format!("{i}: slot {}", count(m.slot)), m));
    let bars: Vec<(String, &Message)> = median.chain(worst).collect();
    let most = bars.iter().map(|(_, m)| total(m)).max()?.max(1) as f64;
    let bottom = TOP + STEP * bars.len() as f64;
    let mut canvas = Canvas::new(WIDTH, bottom + 8.0);
    canvas.text((16.0, 22.0), &format!("From due to answered: {}", condition.name), Hold::Start, INK);
    let mut at = 16.0;
    let parts: &[Part] = if bars.iter().all(|(_, m)| m.out_ns.is_some()) { &PARTS } else { &WHOLE };
    for (words, colour, _) in parts {
        canvas.rect((at, 34.0), (9.0, 9.0), colour, "");
        canvas.text((at + 14.0, 43.0), words, Hold::Start, MUTED);
        at += 34.0 + 7.0 * words.len() as f64;
    }
    let x = |ns: f64| LEFT + (RIGHT - LEFT) * ns / most;
    let unit = Unit::of(most);
    for tick in linear_ticks(most, 6) {
        canvas.line((x(tick), TOP - 6.0), (x(tick), bottom - 6.0), HAIR, "");
        canvas.text((x(tick), TOP - 13.0), &unit.with(tick), Hold::Middle, MUTED);
    }
    for (i, (name, message)) in bars.iter().enumerate() {
        let y = TOP + STEP * i as f64;
        canvas.text((LEFT - 10.0, y + 12.0), name, Hold::End, if i == 0 { hue(0) } else { INK });
        let mut from = 0.0;
        for (_, colour, of) in parts {
            let Some(ns) = of(message).filter(|ns| *ns > 0) else { continue };
            let width = (x(from + ns as f64) - x(from)).max(0.6);
            canvas.rect((x(from), y), (width, 15.0), colour, &format!(" data-value-ns=\"{ns}\""));
            from += ns as f64;
        }
        canvas.text((x(from) + 7.0, y + 12.0), &time(total(message) as f64), Hold::Start, MUTED);
    }
    Some(canvas.finish(report))
}
