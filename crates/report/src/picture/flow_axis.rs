//! Charts of flows over payload, number of subscribers or rate: one drawing for each panel.

use crate::picture::axis::{Log, nice};
use crate::picture::canvas::{Canvas, Hold, Mark, Medium, WIDTH, d, n};
use crate::picture::names::Name;
use crate::picture::{Plot, across};
use crate::tables::flow_axis::{Axis, Line, Panel, Point, Unit};
use tailbound_document::number::{three_digits, time};

const HEIGHT: f64 = 300.0;

pub(crate) fn draw(axis: &Axis, medium: Medium) -> Vec<Canvas> {
    axis.panels.iter().map(|p| panel(p, &axis.factor, medium)).collect()
}

fn panel(panel: &Panel, factor: &str, medium: Medium) -> Canvas {
    let points = || panel.lines.iter().flat_map(|l| &l.points);
    let ends = |of: fn(&Point) -> f64| {
        points().map(of).fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (low, high) = nice(ends(|p| p.low).0, ends(|p| p.high).1);
    let longest = panel.lines.iter().map(|l| label(l).chars().count()).max().unwrap_or(0) as f64;
    let right = WIDTH - (24.0 + 7.0 * longest).clamp(40.0, 330.0);
    let plot = Plot { left: 72.0, right, top: 34.0, bottom: HEIGHT - 44.0 };
    let y = Log { low, high, from: plot.bottom, to: plot.top };
    let x_ends = ends(|p| p.x);
    let x = Log { low: x_ends.0, high: x_ends.1, from: plot.left + 20.0, to: right - 20.0 };
    let set = |v: f64| if panel.unit == Unit::Time { time(v) } else { three_digits(v) };
    let mut canvas = Canvas::new(medium, HEIGHT, format!("{} against {factor}", panel.title)).plot(plot.left, right);
    canvas.text("strong", (plot.left, 16.0), panel.title, Hold::Start);
    for tick in y.ticks(7) {
        canvas.line("grid", (plot.left, y.at(tick)), (right, y.at(tick)));
        canvas.text("tick", (plot.left - 8.0, y.at(tick) + 4.0), &set(tick), Hold::End);
    }
    canvas.line("axis", (plot.left, plot.bottom), (right, plot.bottom));
    let mut levels: Vec<(f64, &str)> = points().map(|p| (x.at(p.x), p.level.as_str())).collect();
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = f64::NEG_INFINITY;
    for (at, level) in levels {
        // A level whose name would lie over the one before it goes without.
        let half = 3.6 * level.chars().count() as f64;
        if at - half > free {
            canvas.text("tick", (at, plot.bottom + 17.0), level, Hold::Middle);
            free = at + half + 4.0;
        }
    }
    across(&mut canvas, &plot, factor);
    let mut names = Vec::new();
    for line in &panel.lines {
        canvas.open("", line.hue, &[]);
        let places: Vec<(f64, f64)> = line.points.iter().map(|p| (x.at(p.x), y.at(p.value))).collect();
        canvas.path("line", &d(&places));
        for p in &line.points {
            let (at, low, high) = (x.at(p.x), y.at(p.low), y.at(p.high));
            let (from, low, high) = (n(at - 3.0), n(low), n(high));
            canvas.path("interval", &format!("M{},{low}V{high}M{from},{low}h6M{from},{high}h6", n(at)));
            let words = format!("{} {}", line.name, p.level);
            let lines = vec![words.trim().to_owned(), format!("{} ({} to {})", set(p.value), set(p.low), set(p.high))];
            let mark = Mark { lines, data: Vec::new() }.with("value", p.value);
            canvas.mark(&mark, |c| c.dot("", (at, y.at(p.value)), 4.0));
        }
        canvas.close();
        let name =
            |end: &(f64, f64)| Name { end: *end, words: label(line), class: "", hue: line.hue, conditions: Vec::new() };
        names.extend(places.last().map(name));
    }
    canvas.names(right + 3.0, 14.0, (plot.top, plot.bottom), names);
    canvas
}

/// Writes the name of a line beside the end of the line.
fn label(line: &Line) -> String {
    let growth = line.growth.map(|(b, error)| format!("N^{b:.2} \u{b1} {error:.2}"));
    [line.name.clone(), growth.unwrap_or_default()].into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(", ")
}
