//! The study's main factor against the round trip.

use super::axis::Log;
use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue, spread};
use super::{Shown, whole_axis};
use crate::condition::QuantileReport;
use crate::document::Report;
use crate::number::time;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 440.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = HEIGHT - 48.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 210.0;

pub(super) fn draw(report: &Report, shown: &[Shown<'_>]) -> String {
    let factor = &report.view.x;
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    let (low, high) = whole_axis(shown);
    let y = Log { low, high, from: BOTTOM, to: TOP };
    for tick in y.ticks(11) {
        canvas.line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), HAIR, "");
        canvas.text((LEFT - 8.0, y.at(tick) + 4.0), &time(tick), Hold::End, MUTED);
    }
    let x = places(shown, factor);
    canvas.line((LEFT, BOTTOM), (RIGHT, BOTTOM), MUTED, "");
    let mut named: Vec<&str> = Vec::new();
    for (s, at) in shown.iter().zip(&x) {
        let level = s.condition.levels.get(factor).map_or("", String::as_str);
        if !named.contains(&level) {
            named.push(level);
            canvas.text((*at, BOTTOM + 18.0), level, Hold::Middle, MUTED);
        }
    }
    canvas.text(((LEFT + RIGHT) / 2.0, BOTTOM + 38.0), factor, Hold::Middle, MUTED);
    canvas.text(
        (LEFT, 22.0),
        "Round trip: median with its 95 % interval, p99 thin, maximum as a triangle",
        Hold::Start,
        INK,
    );
    let mut ends: Vec<(f64, (String, usize))> = Vec::new();
    let count = shown.iter().map(|s| s.hue).max().unwrap_or(0) + 1;
    for series in 0..count {
        let of: Vec<(&Shown<'_>, f64)> = shown.iter().zip(x.iter().copied()).filter(|(s, _)| s.hue == series).collect();
        ends.extend(draw_series(&mut canvas, &of, y, series));
    }
    spread(&mut ends, 14.0, BOTTOM);
    for (at, (words, series)) in ends {
        canvas.text((RIGHT + 14.0, at + 4.0), &words, Hold::Start, hue(series));
    }
    canvas.finish(report)
}

/// Gives the names at the ends of its lines.
fn draw_series(canvas: &mut Canvas, of: &[(&Shown<'_>, f64)], y: Log, series: usize) -> Vec<(f64, (String, usize))> {
    let colour = hue(series);
    let mut ends = Vec::new();
    let name = of.first().map_or("", |(s, _)| s.series.as_str());
    for (q, width, radius) in [(0.5, 2.25, 4.0), (0.99, 1.0, 2.5)] {
        let known: Vec<(f64, i64, i64, i64)> = of
            .iter()
            .filter_map(|(s, x)| match s.figures.quantile(q)? {
                QuantileReport::Value { value_ns, low_ns, high_ns, .. } => {
                    Some((*x, *value_ns, *low_ns, high_ns.unwrap_or(*value_ns)))
                }
                _ => None,
            })
            .collect();
        let line = |of: fn(&(f64, i64, i64, i64)) -> i64| -> Vec<(f64, f64)> {
            known.iter().map(|k| (k.0, y.at(of(k) as f64))).collect()
        };
        if q == 0.5 {
            canvas.band(&line(|k| k.2), &line(|k| k.3), colour);
        }
        canvas.path(&line(|k| k.1), colour, width);
        for (x, value, ..) in &known {
            canvas.dot((*x, y.at(*value as f64)), radius, colour, *value);
        }
        ends.extend(known.last().map(|k| (y.at(k.1 as f64), (format!("{name} {}", crate::number::label(q)), series))));
    }
    for (s, x) in of {
        canvas.triangle((*x, y.at(s.max_ns)), colour, s.max_ns as i64);
    }
    ends.extend(of.last().map(|(s, _)| (y.at(s.max_ns), (format!("{name} max"), series))));
    ends.iter_mut().for_each(|(_, (words, _))| *words = words.trim().to_owned());
    ends
}

/// Numbers on a logarithmic axis; other levels side by side.
fn places(shown: &[Shown<'_>], factor: &str) -> Vec<f64> {
    let number = |s: &Shown<'_>| match factor {
        "payload" => Some(s.condition.payload_bytes as f64),
        "rate" => s.condition.period_ns.map(|p| 1e9 / p as f64),
        other => s.condition.levels.get(other)?.parse().ok(),
    };
    let numbers: Option<Vec<f64>> = shown.iter().map(|s| number(s).filter(|n| *n > 0.0)).collect();
    if let Some(numbers) = numbers {
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = numbers.iter().copied().fold(0.0, f64::max);
        let x = Log { low, high, from: LEFT + 20.0, to: RIGHT - 20.0 };
        return numbers.into_iter().map(|n| x.at(n)).collect();
    }
    let mut levels: Vec<&str> = Vec::new();
    let of = |s: &Shown<'_>| s.condition.levels.get(factor).map_or("", String::as_str).to_owned();
    let all: Vec<String> = shown.iter().map(of).collect();
    for level in &all {
        if !levels.contains(&level.as_str()) {
            levels.push(level);
        }
    }
    let step = (RIGHT - LEFT) / levels.len() as f64;
    let at = |level: &String| levels.iter().position(|l| l == level).unwrap_or(0) as f64;
    all.iter().zip(shown).map(|(level, s)| LEFT + step * (at(level) + 0.35) + 14.0 * (s.hue % 6) as f64).collect()
}
