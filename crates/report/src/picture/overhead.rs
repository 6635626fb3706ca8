//! What each level costs against the study's baseline, over its main factor: one line for each level with the rest of
//! what differs, one plot for each figure.

use super::axis::linear_ticks;
use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue, spread};
use crate::against::{AgainstRow, FIGURES, Overhead, Which, set};
use crate::document::Report;
use crate::summary::differing;

const WIDTH: f64 = 960.0;
const PLOT: f64 = 260.0;
const HEAD: f64 = 44.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 230.0;
/// An interval that reaches farther beyond all values than this many times their span is cut off.
const FAR: f64 = 2.0;

/// A row with its place on the axis and its line.
struct Point<'a> {
    row: &'a AgainstRow,
    /// Its level of the factor on the axis, by order of the plan.
    place: usize,
    line: usize,
}

/// The drawing without its frame; `None` where no overhead is known.
pub(crate) fn canvas(report: &Report) -> Option<Canvas> {
    let against = report.against.as_ref()?;
    let factor = &report.view.x;
    let (mut places, mut lines): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let others: Vec<String> = differing(report).into_iter().filter(|f| f != factor).collect();
    let at = |all: &mut Vec<String>, name: String| {
        all.iter().position(|n| *n == name).unwrap_or_else(|| {
            all.push(name);
            all.len() - 1
        })
    };
    let mut points = Vec::new();
    for row in &against.rows {
        let levels = &report.conditions[row.condition].levels;
        let place = at(&mut places, levels.get(factor).cloned().unwrap_or_default());
        // A row without figures keeps its place on the axis, which stays empty, and takes no room beside others.
        if row.overheads.is_empty() {
            continue;
        }
        let name: Vec<String> = others.iter().filter_map(|f| levels.get(f).cloned()).collect();
        points.push(Point { row, place, line: at(&mut lines, name.join(", ")) });
    }
    let known = |figure| points.iter().any(|p| told(p.row, figure).is_some());
    let figures: Vec<_> = FIGURES.into_iter().filter(|f| known(*f)).collect();
    figures.first()?;
    let mut canvas = Canvas::new(WIDTH, HEAD + PLOT * figures.len() as f64);
    let words = format!("Overhead in % against {}, with 95 % intervals; above zero is a cost", against.name());
    canvas.text((16.0, 22.0), &words, Hold::Start, INK);
    for (i, figure) in figures.into_iter().enumerate() {
        plot(&mut canvas, HEAD + PLOT * i as f64, figure, &points, (&places, &lines));
    }
    Some(canvas)
}

pub(super) fn draw(report: &Report) -> Option<String> {
    Some(canvas(report)?.finish(report))
}

/// The overhead with its value.
fn told(row: &AgainstRow, figure: Which) -> Option<(&Overhead, f64)> {
    row.overheads.iter().find(|o| o.is_of(figure)).and_then(|o| Some((o, o.per_cent?)))
}

fn plot(canvas: &mut Canvas, top: f64, figure: Which, points: &[Point<'_>], (places, lines): (&[String], &[String])) {
    let all: Vec<(&Point<'_>, &Overhead, f64)> =
        points.iter().filter_map(|p| told(p.row, figure).map(|(o, v)| (p, o, v))).collect();
    let span = |of: &mut dyn Iterator<Item = f64>| of.fold((0.0f64, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    let values = span(&mut all.iter().map(|(_, _, v)| *v));
    let room = FAR * (values.1 - values.0).max(1.0);
    let ends = span(&mut all.iter().flat_map(|(_, o, v)| o.interval.unwrap_or([*v, *v])));
    let (low, high) = (ends.0.max(values.0 - room), ends.1.min(values.1 + room));
    let (base, head) = (top + PLOT - 44.0, top + 30.0);
    let y = |v: f64| base - (base - head) * (v.clamp(low, high) - low) / (high - low).max(1e-9);
    let step = linear_ticks((high - low).max(1e-9), 6).get(1).copied().unwrap_or(1.0);
    for k in (low / step).ceil() as i64..=(high / step).floor() as i64 {
        let tick = k as f64 * step;
        canvas.line((LEFT, y(tick)), (RIGHT, y(tick)), if k == 0 { MUTED } else { HAIR }, "");
        canvas.text((LEFT - 8.0, y(tick) + 4.0), &set(tick), Hold::End, MUTED);
    }
    let (metric, statistic) = (all[0].1.metric.replace('_', " "), &all[0].1.statistic);
    canvas.text((LEFT, top + 14.0), &format!("{metric}, {statistic}: overhead in %"), Hold::Start, INK);
    let across = (RIGHT - LEFT) / places.len() as f64;
    for (i, level) in places.iter().enumerate() {
        canvas.text((LEFT + across * (i as f64 + 0.5), base + 20.0), level, Hold::Middle, MUTED);
    }
    // Beside each other within a level, so that no interval lies over another.
    let apart = (across * 0.6 / lines.len() as f64).min(14.0);
    let x = |p: &Point<'_>| {
        LEFT + across * (p.place as f64 + 0.5) + apart * (p.line as f64 - (lines.len() - 1) as f64 / 2.0)
    };
    let mut names: Vec<(f64, usize)> = Vec::new();
    for line in 0..lines.len() {
        let colour = hue(line);
        let of: Vec<_> = all.iter().filter(|(p, ..)| p.line == line).collect();
        canvas.path(&of.iter().map(|(p, _, v)| (x(p), y(*v))).collect::<Vec<_>>(), colour, 1.5);
        for (p, o, v) in &of {
            if let Some([low, high]) = o.interval {
                let dashes = if o.within_runs { " stroke-dasharray=\"4 3\"" } else { "" };
                canvas.line((x(p), y(low)), (x(p), y(high)), colour, &format!(" stroke-width=\"2\"{dashes}"));
            }
            canvas.mark((x(p), y(*v)), colour, 1.0 + v / 100.0);
        }
        names.extend(of.last().map(|(_, _, v)| (y(*v), line)));
    }
    spread(&mut names, 14.0, base);
    for (at, line) in names {
        canvas.text((RIGHT + 12.0, at + 4.0), &lines[line], Hold::Start, hue(line));
    }
}
