//! Histograms over a common axis, one row per condition; counts on a log scale, so that one message is seen.

use super::axis::{Log, nice};
use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue};
use super::{Shown, longest};
use crate::document::Report;
use crate::number::{count, time};

const WIDTH: f64 = 960.0;
const ROW: f64 = 104.0;
const HEAD: f64 = 30.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 150.0;

pub(super) fn draw(report: &Report, shown: &[Shown<'_>]) -> String {
    let (chosen, all) = longest(shown);
    let bottom = HEAD + ROW * chosen.len() as f64;
    let mut canvas = Canvas::new(WIDTH, bottom + 30.0);
    canvas.text((16.0, 22.0), &format!("Round trips in each bucket, 16 to an octave{all}"), Hold::Start, INK);
    let (low, high) = nice(
        chosen.iter().map(|s| s.min_ns).fold(f64::INFINITY, f64::min),
        chosen.iter().map(|s| s.max_ns).fold(1.0, f64::max),
    );
    let x = Log { low, high, from: LEFT, to: RIGHT };
    for tick in x.ticks(9) {
        canvas.line((x.at(tick), HEAD + 20.0), (x.at(tick), bottom), HAIR, "");
        canvas.text((x.at(tick), bottom + 18.0), &time(tick), Hold::Middle, MUTED);
    }
    let most = chosen.iter().flat_map(|s| &s.figures.histogram).map(|b| b.2).max().unwrap_or(1) as f64;
    for (i, s) in chosen.iter().enumerate() {
        let base = HEAD + ROW * (i + 1) as f64;
        // Half a message is the floor: one is seen, none is not.
        let y = Log { low: 0.5, high: most * 1.1, from: base, to: base - ROW + 26.0 };
        row(&mut canvas, s, i, x, y);
    }
    canvas.finish(report)
}

fn row(canvas: &mut Canvas, s: &Shown<'_>, i: usize, x: Log, y: Log) {
    let (base, colour) = (y.from, hue(i));
    canvas.text((LEFT, base - 84.0), &format!("{}, n = {}", s.name, count(s.figures.n)), Hold::Start, colour);
    for tick in [1.0, 100.0, 1e4, 1e6, 1e8].into_iter().filter(|t| y.at(*t) > base - 80.0) {
        canvas.text((LEFT - 8.0, y.at(tick) + 4.0), &count(tick as u64), Hold::End, MUTED);
        canvas.line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), HAIR, "");
    }
    canvas.line((LEFT, base), (RIGHT, base), MUTED, "");
    for (low, high, n) in s.figures.histogram.iter().filter(|b| b.1 >= 1) {
        let (from, to) = (x.at((*low).max(1) as f64), x.at(*high as f64 + 1.0));
        let top = y.at(*n as f64);
        canvas.rect((from, top), ((to - from - 0.4).max(0.8), base - top), colour, &format!(" data-count=\"{n}\""));
    }
    let lost = s.figures.scheduled - s.figures.n;
    if lost > 0 {
        let top = y.at(lost as f64);
        canvas.rect((RIGHT + 26.0, top), (9.0, base - top), INK, &format!(" data-count=\"{lost}\""));
        canvas.text((RIGHT + 40.0, base - 4.0), &format!("no answer {}", count(lost)), Hold::Start, MUTED);
    }
}
