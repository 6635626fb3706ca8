//! Every quantile of every condition with its interval, on one axis.

use super::axis::Log;
use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue};
use super::{Shown, whole_axis};
use crate::condition::QuantileReport;
use crate::document::Report;
use crate::number::{count, label, time};

const WIDTH: f64 = 960.0;
const ROW: f64 = 36.0;
const TOP: f64 = 66.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = WIDTH - 190.0;

pub(super) fn draw(report: &Report, shown: &[Shown<'_>]) -> String {
    let bottom = TOP + ROW * shown.len() as f64;
    let mut canvas = Canvas::new(WIDTH, bottom + 16.0);
    canvas.text(
        (16.0, 22.0),
        "Round trip: quantiles with their 95 % intervals, maximum as a triangle",
        Hold::Start,
        INK,
    );
    let (low, high) = whole_axis(shown);
    let x = Log { low, high, from: LEFT, to: RIGHT };
    for tick in x.ticks(9) {
        canvas.line((x.at(tick), TOP - 8.0), (x.at(tick), bottom), HAIR, "");
        canvas.text((x.at(tick), TOP - 16.0), &time(tick), Hold::Middle, MUTED);
    }
    for (i, s) in shown.iter().enumerate() {
        rung(&mut canvas, s, x, TOP + ROW * (i as f64 + 0.5) + 5.0);
    }
    canvas.finish(report)
}

fn rung(canvas: &mut Canvas, s: &Shown<'_>, x: Log, y: f64) {
    let colour = hue(s.hue);
    canvas.text((LEFT - 12.0, y + 4.0), &s.name.chars().take(32).collect::<String>(), Hold::End, INK);
    let (mut open, mut first) = (Vec::new(), None);
    for quantile in &s.figures.quantiles {
        match quantile {
            QuantileReport::Value { value_ns, low_ns, high_ns, too_narrow, .. } => {
                let (from, to) = (x.at(*low_ns as f64), high_ns.map_or(RIGHT, |h| x.at(h as f64)));
                canvas.line((from, y), (to, y), colour, if *too_narrow { " stroke-dasharray=\"3 2\"" } else { "" });
                [from, to].into_iter().for_each(|end| canvas.line((end, y - 4.0), (end, y + 4.0), colour, ""));
                let at = x.at(*value_ns as f64);
                first.get_or_insert(at);
                canvas.dot((at, y), 3.5, colour, *value_ns);
            }
            QuantileReport::Needs { q, needs, .. } if open.is_empty() => {
                open.push(format!("{} needs {}", label(*q), count(*needs)));
            }
            QuantileReport::Beyond { q, beyond, .. } if open.is_empty() => {
                open.push(format!("{} {}", label(*q), beyond.words()));
            }
            _ => {}
        }
    }
    let max = x.at(s.max_ns);
    canvas.line((first.unwrap_or(max), y), (max, y), colour, " stroke-opacity=\"0.35\"");
    canvas.triangle((max, y), colour, s.max_ns as i64);
    canvas.text((RIGHT + 20.0, y + 4.0), &open.concat(), Hold::Start, MUTED);
}
