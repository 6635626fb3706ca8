//! How rare a round trip is: the complementary distribution, both axes logarithmic.

use super::axis::{Log, nice};
use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue, spread};
use super::{Shown, longest};
use crate::condition::{MetricReport, QuantileReport};
use crate::document::Report;
use crate::number::{count, time};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 480.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = HEIGHT - 48.0;
const LEFT: f64 = 104.0;
const RIGHT: f64 = WIDTH - 250.0;

pub(super) fn draw(report: &Report, shown: &[Shown<'_>]) -> String {
    let (chosen, all) = longest(shown);
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    canvas.text((16.0, 22.0), &format!("How rare it is that a round trip takes longer{all}"), Hold::Start, INK);
    let (low, high) = nice(
        chosen.iter().map(|s| s.min_ns).fold(f64::INFINITY, f64::min),
        chosen.iter().map(|s| s.max_ns).fold(1.0, f64::max),
    );
    let x = Log { low, high, from: LEFT, to: RIGHT };
    let scheduled = chosen.iter().map(|s| s.figures.scheduled).max().unwrap_or(1);
    let y = Log { low: 1.0, high: 1.0 / (1.6 * scheduled as f64), from: TOP, to: BOTTOM };
    for n in (0..).map(|e| 10u64.pow(e)).take_while(|n| *n <= scheduled) {
        let at = y.at(1.0 / n as f64);
        canvas.line((LEFT, at), (RIGHT, at), HAIR, "");
        let words = if n == 1 { "all".to_owned() } else { format!("1 in {}", count(n)) };
        canvas.text((LEFT - 8.0, at + 4.0), &words, Hold::End, MUTED);
    }
    for tick in x.ticks(9) {
        canvas.line((x.at(tick), TOP), (x.at(tick), BOTTOM), HAIR, "");
        canvas.text((x.at(tick), BOTTOM + 18.0), &time(tick), Hold::Middle, MUTED);
    }
    let mut ends = Vec::new();
    for (i, s) in chosen.iter().enumerate() {
        ends.push(one(&mut canvas, s, x, y, i));
    }
    spread(&mut ends, 15.0, BOTTOM);
    for (at, (words, i)) in ends {
        canvas.text((RIGHT + 14.0, at + 4.0), &words, Hold::Start, hue(i));
    }
    canvas.finish(report)
}

/// Gives the name at the end of its line.
fn one(canvas: &mut Canvas, s: &Shown<'_>, x: Log, y: Log, i: usize) -> (f64, (String, usize)) {
    let colour = hue(i);
    let value = |q: &QuantileReport| match q {
        QuantileReport::Value { q, value_ns, low_ns, high_ns, .. } => {
            Some((y.at(1.0 - q), *value_ns, x.at(*low_ns as f64), high_ns.map_or(RIGHT, |h| x.at(h as f64))))
        }
        _ => None,
    };
    let known: Vec<(f64, i64, f64, f64)> = s.figures.quantiles.iter().filter_map(value).collect();
    let side =
        |of: fn(&(f64, i64, f64, f64)) -> f64| -> Vec<(f64, f64)> { known.iter().map(|k| (of(k), k.0)).collect() };
    canvas.band(&side(|k| k.2), &side(|k| k.3), colour);
    let points: Vec<(f64, f64)> =
        exceedance(s.figures).into_iter().map(|(ns, share)| (x.at(ns), y.at(share))).collect();
    canvas.path(&points, colour, 2.0);
    for (at, value_ns, ..) in &known {
        canvas.dot((x.at(*value_ns as f64), *at), 3.0, colour, *value_ns);
    }
    let end = points.last().copied().unwrap_or((RIGHT, BOTTOM));
    let lost = s.figures.scheduled - s.figures.n;
    let mut words = s.name.chars().take(30).collect::<String>();
    if lost > 0 {
        canvas.line(end, (RIGHT, end.1), colour, " stroke-dasharray=\"5 3\"");
        words.push_str(&format!(
            ", no answer: 1 in {}",
            count((s.figures.scheduled as f64 / lost as f64).round() as u64)
        ));
    }
    canvas.hollow(end, colour);
    (end.1, (words, i))
}

/// Latency, and the share of messages that take longer; those without an answer are longer than all.
pub(super) fn exceedance(figures: &MetricReport) -> Vec<(f64, f64)> {
    let (Some(min), Some(max)) = (figures.min_ns, figures.max_ns) else { return Vec::new() };
    let all = figures.scheduled as f64;
    let mut left = figures.scheduled;
    let mut points = vec![(min as f64, 1.0)];
    for (_, high, n) in &figures.histogram {
        left -= n;
        if left > 0 && *high < max {
            points.push((*high as f64, left as f64 / all));
        }
    }
    // The longest itself is one message.
    points.push((max as f64, (figures.scheduled - figures.n).max(1) as f64 / all));
    points.retain(|(ns, _)| *ns > 0.0);
    points
}
