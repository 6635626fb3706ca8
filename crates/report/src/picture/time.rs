//! The trial of the worst message over time: every column from its lowest to its highest message, no maximum left out.

use super::axis::{Log, linear_ticks, nice};
use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, WARN, hue};
use crate::circumstances::TrialReport;
use crate::condition::Message;
use crate::document::Report;
use crate::number::{Unit, count, time};
use crate::over_time::OverTime;

const WIDTH: f64 = 960.0;
const TOP: f64 = 58.0;
const BASE: f64 = 360.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 24.0;

pub(super) fn draw(report: &Report) -> Option<String> {
    let there =
        |t: &&TrialReport| t.over_time.as_ref().is_some_and(|o| o.round_trip.max_ns.iter().any(Option::is_some));
    let trials = || report.trials.iter().filter(there);
    let latest = |t: &&TrialReport| t.over_time.as_ref().and_then(|o| *o.round_trip.max_ns.iter().max()?);
    let trial = trials().max_by_key(latest)?;
    let over = trial.over_time.as_ref()?;
    let condition = report.conditions.iter().find(|c| c.id == trial.condition)?;
    let edges = edges(over, condition.period_ns);
    let loads: Vec<_> = report.loads.iter().filter(|l| l.trial == trial.id && l.began_after_ns.is_some()).collect();
    let mut canvas = Canvas::new(WIDTH, BASE + 48.0 + 18.0 * loads.len() as f64);
    canvas.text((16.0, 22.0), &format!("Round trips of trial {}: {}", trial.id, condition.name), Hold::Start, INK);
    let values = &over.round_trip;
    let least = values.min_ns.iter().flatten().filter(|v| **v > 0).min().copied().unwrap_or(1);
    let (low, high) = nice(least as f64, latest(&trial)?.max(1) as f64);
    let y = Log { low, high, from: BASE, to: TOP };
    let end = edges.last().copied()?.max(1.0);
    let x = |ns: f64| LEFT + (RIGHT - LEFT) * (ns / end).clamp(0.0, 1.0);
    shades(&mut canvas, report, trial, over, &edges, &x);
    for tick in y.ticks(8) {
        canvas.line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), HAIR, "");
        canvas.text((LEFT - 8.0, y.at(tick) + 4.0), &time(tick), Hold::End, MUTED);
    }
    columns(&mut canvas, over, &edges, &x, y, hue(0));
    for (column, n) in &over.unanswered {
        let at = x(edges[*column]);
        canvas.line((at, TOP - 14.0), (at, TOP - 6.0), INK, &format!(" data-lost=\"{n}\""));
    }
    if !over.unanswered.is_empty() {
        canvas.text((LEFT - 8.0, TOP - 6.0), "no answer", Hold::End, MUTED);
    }
    canvas.line((LEFT, BASE), (RIGHT, BASE), MUTED, "");
    let unit = Unit::of(end);
    for at in linear_ticks(end, 8) {
        canvas.text((x(at), BASE + 17.0), &unit.number(at), Hold::Middle, MUTED);
    }
    canvas.text(((LEFT + RIGHT) / 2.0, BASE + 35.0), &format!("{} after slot 0", unit.name()), Hold::Middle, MUTED);
    for (i, load) in loads.iter().enumerate() {
        let top = BASE + 42.0 + 18.0 * i as f64;
        let began = load.began_after_ns.unwrap_or(0) as f64;
        let (from, to) = (x(began), x(began + load.ran_ns as f64));
        canvas.rect((from, top), ((to - from).max(1.5), 5.0), MUTED, "");
        canvas.text((LEFT, top + 15.0), &format!("{} at {}", load.run, load.at), Hold::Start, MUTED);
    }
    let worst = condition.worst.iter().take(10).enumerate().filter(|(_, m)| m.trial == trial.id);
    // Of those that lie together the worst is named.
    let mut named: Vec<f64> = Vec::new();
    for (i, m) in worst {
        let Some(ns) = m.round_trip_ns else { continue };
        let at = x((due(m) - trial.t0_ns.unwrap_or(0)) as f64);
        if named.iter().any(|other| (other - at).abs() < 14.0) {
            continue;
        }
        named.push(at);
        canvas.text((at, y.at(ns as f64) - 5.0), &count(i as u64 + 1), Hold::Middle, INK);
    }
    Some(canvas.finish(report))
}

fn due(message: &Message) -> i64 {
    message.intended_ns.or(message.send_begin_ns).unwrap_or(0)
}

/// When each column begins, ns after slot 0, and when the last one ends.
fn edges(over: &OverTime, period_ns: Option<i64>) -> Vec<f64> {
    let per = over.slots_per_column.max(1);
    let warm = over.warm_up_slots.div_ceil(per);
    let columns = over.round_trip.max_ns.len() as u64;
    let slot = |i: u64| match i {
        i if i == columns => over.slots,
        i if i < warm => i * per,
        i => (over.warm_up_slots + (i - warm) * per).min(over.slots),
    };
    match period_ns {
        Some(period) => (0..=columns).map(|i| slot(i) as f64 * period as f64).collect(),
        None => {
            let begun: Vec<f64> = over.begin_ns.iter().map(|ns| *ns as f64).collect();
            let last = begun.last().copied().unwrap_or(0.0);
            let each = if columns > 1 { last / slot(columns - 1).max(1) as f64 } else { 1.0 };
            let end = last + each * (over.slots - slot(columns.saturating_sub(1))) as f64;
            begun.into_iter().chain([end]).collect()
        }
    }
}

/// Warm-up grey, windows in which a clock was stepped in the hue of warnings.
fn shades(
    canvas: &mut Canvas,
    report: &Report,
    trial: &TrialReport,
    over: &OverTime,
    edges: &[f64],
    x: &dyn Fn(f64) -> f64,
) {
    let mut shade = |from: f64, to: f64, colour: &str| {
        let (from, to) = (x(from), x(to));
        canvas.rect((from, TOP), ((to - from).max(1.0), BASE - TOP), colour, " fill-opacity=\"0.35\"");
    };
    let warm = over.warm_up_slots.div_ceil(over.slots_per_column.max(1)) as usize;
    if warm > 0 {
        shade(0.0, edges.get(warm).copied().unwrap_or(0.0), "#cfcfc8");
    }
    let t0 = trial.t0_ns.unwrap_or(0);
    for window in report.clocks.iter().flat_map(|c| &c.invalid_windows).filter(|w| w.trial == trial.id) {
        shade((window.from_ns - t0) as f64, (window.to_ns - t0) as f64, WARN);
    }
    if warm > 0 {
        canvas.text((LEFT + 5.0, TOP + 13.0), "warm-up", Hold::Start, MUTED);
    }
}

/// Lowest to highest of each pixel, and its medians darker.
fn columns(canvas: &mut Canvas, over: &OverTime, edges: &[f64], x: &dyn Fn(f64) -> f64, y: Log, colour: &str) {
    let values = &over.round_trip;
    let (mut at, mut held): (f64, Option<(i64, i64, i64)>) = (LEFT, None);
    let mut draw = |from: f64, to: f64, (low, median, high): (i64, i64, i64)| {
        let width = (to - from).max(1.0);
        let (top, bottom) = (y.at(high as f64) - 0.6, y.at(low.max(1) as f64) + 0.6);
        let more = format!(" fill-opacity=\"0.4\" data-value-ns=\"{high}\"");
        canvas.rect((from, top), (width, bottom - top), colour, &more);
        canvas.rect((from, y.at(median as f64) - 0.8), (width, 1.6), colour, "");
    };
    for (i, edge) in edges.windows(2).enumerate() {
        let (Some(low), Some(median), Some(high)) = (values.min_ns[i], values.median_ns[i], values.max_ns[i]) else {
            continue;
        };
        let from = x(edge[0]);
        // Columns narrower than a pixel share it; the highest of them stays.
        held = match held {
            Some((l, m, h)) if from - at < 1.0 => Some((l.min(low), m, h.max(high))),
            Some(done) => {
                draw(at, from, done);
                at = from;
                Some((low, median, high))
            }
            None => {
                at = from;
                Some((low, median, high))
            }
        };
    }
    if let Some(done) = held {
        draw(at, x(edges[edges.len() - 1]), done);
    }
}
