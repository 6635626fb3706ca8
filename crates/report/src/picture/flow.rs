//! Flows second by second: sent dashed, received by each subscriber, of the first trial of each condition.

use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue};
use crate::document::Report;
use crate::flow::{FlowSecond, FlowTrial};
use crate::number::{THIN, count, three_digits};

const WIDTH: f64 = 960.0;
const ROW: f64 = 130.0;
const HEAD: f64 = 40.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = WIDTH - 30.0;

pub(super) fn draw(report: &Report) -> Option<String> {
    let trial =
        |c: &'_ crate::ConditionReport| c.flow.as_ref()?.trials.first().filter(|t| t.seconds.len() > 1).cloned();
    let all: Vec<(&str, FlowTrial)> =
        report.conditions.iter().filter_map(|c| Some((c.name.as_str(), trial(c)?))).collect();
    if all.is_empty() {
        return None;
    }
    let bottom = HEAD + ROW * all.len() as f64;
    let mut canvas = Canvas::new(WIDTH, bottom + 8.0);
    let words = "Samples in each second of the window: sent dashed, received by each subscriber";
    canvas.text((16.0, 22.0), words, Hold::Start, INK);
    for (i, (name, trial)) in all.iter().enumerate() {
        row(&mut canvas, name, trial, HEAD + ROW * i as f64);
    }
    Some(canvas.finish(report))
}

fn row(canvas: &mut Canvas, name: &str, trial: &FlowTrial, top: f64) {
    let (base, high) = (top + ROW - 32.0, top + 22.0);
    let received = || trial.subscribers.iter().map(|s| s.seconds.as_slice());
    let seconds = || received().chain([trial.seconds.as_slice()]).flatten();
    let most = seconds().map(|s| s.samples).max().unwrap_or(1).max(1) as f64;
    let span = seconds().map(|s| s.after_ns).max().unwrap_or(1).max(1) as f64;
    let point = |s: &FlowSecond| {
        let across = LEFT + (RIGHT - LEFT) * s.after_ns as f64 / span;
        (across, base - (base - high) * s.samples as f64 / most)
    };
    canvas.text((LEFT, top + 14.0), name, Hold::Start, INK);
    for part in [0.0, 0.5, 1.0] {
        let y = base - (base - high) * part;
        canvas.line((LEFT, y), (RIGHT, y), HAIR, "");
        canvas.text((LEFT - 8.0, y + 4.0), &three_digits(most * part), Hold::End, MUTED);
    }
    canvas.text((LEFT, base + 16.0), &format!("0{THIN}s"), Hold::Middle, MUTED);
    canvas.text((RIGHT, base + 16.0), &format!("{}{THIN}s", three_digits(span / 1e9)), Hold::Middle, MUTED);
    for (i, seconds) in received().enumerate() {
        canvas.path(&seconds.iter().map(point).collect::<Vec<_>>(), hue(i), 2.0);
    }
    for pair in trial.seconds.windows(2) {
        let more = format!(" stroke-dasharray=\"4 3\" data-sent=\"{}\"", pair[0].samples);
        canvas.line(point(&pair[0]), point(&pair[1]), INK, &more);
    }
    let lost: u64 = trial.subscribers.iter().map(|s| s.lost).sum();
    canvas.text((RIGHT, top + 14.0), &format!("{} lost", count(lost)), Hold::End, MUTED);
}
