//! Chart of the overhead of each level relative to the study's baseline, over the main factor of the study (the factor
//! on the horizontal axis): one panel for each statistic, and one line for each combination of the other levels.

use crate::picture::axis::linear_ticks;
use crate::picture::canvas::{Canvas, Hold, Mark, Medium, WIDTH};
use crate::picture::names::spread;
use crate::tables::against::set;
use crate::tables::summary::differing;
use tailbound_document::{AgainstReport, AgainstRow, OVERHEAD_FIGURES, Overhead, OverheadFigure, Report};

const PLOT: f64 = 260.0;

const LEFT: f64 = 72.0;

const RIGHT: f64 = WIDTH - 230.0;

/// An interval is cut off if it extends beyond all values by more than this many times the span of the values.
const FAR: f64 = 2.0;

/// A row of the table of overheads, with its position on the chart's horizontal axis and its line in the chart.
struct Point<'a> {
    row: &'a AgainstRow,
    /// Index of the row's level of the factor on the chart's horizontal axis, in the order of the plan.
    place: usize,
    line: usize,
}

/// Description of what the drawings of overheads show.
pub(crate) fn title(against: &AgainstReport) -> String {
    format!("Overhead in % against {}, with 95 % intervals; above zero is a cost", against.name())
}

/// Makes one drawing for each figure whose overhead is known; returns no drawing if no overhead is known.
pub(crate) fn draw(report: &Report, medium: Medium) -> Vec<Canvas> {
    let Some(against) = &report.against else { return Vec::new() };
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
        // A row without figures keeps its position on the axis, which stays empty, and takes no space next to other
        // rows.
        if row.overheads.is_empty() {
            continue;
        }
        let name: Vec<String> = others.iter().filter_map(|f| levels.get(f).cloned()).collect();
        points.push(Point { row, place, line: at(&mut lines, name.join(", ")) });
    }
    let known = |figure| points.iter().any(|p| told(p.row, figure).is_some());
    let figures: Vec<_> = OVERHEAD_FIGURES.into_iter().filter(|f| known(*f)).collect();
    figures.into_iter().map(|figure| plot(medium, figure, &points, (&places, &lines))).collect()
}

/// The overhead for one statistic in a row of the table of overheads, and its value in %.
fn told(row: &AgainstRow, figure: OverheadFigure) -> Option<(&Overhead, f64)> {
    row.overheads.iter().find(|o| o.is_of(figure)).and_then(|o| Some((o, o.per_cent?)))
}

fn plot(
    medium: Medium,
    figure: OverheadFigure,
    points: &[Point<'_>],
    (places, lines): (&[String], &[String]),
) -> Canvas {
    let all: Vec<(&Point<'_>, &Overhead, f64)> =
        points.iter().filter_map(|p| told(p.row, figure).map(|(o, v)| (p, o, v))).collect();
    let span = |of: &mut dyn Iterator<Item = f64>| of.fold((0.0f64, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    let values = span(&mut all.iter().map(|(_, _, v)| *v));
    let room = FAR * (values.1 - values.0).max(1.0);
    let ends = span(&mut all.iter().flat_map(|(_, o, v)| o.interval.unwrap_or([*v, *v])));
    let (low, high) = (ends.0.max(values.0 - room), ends.1.min(values.1 + room));
    let (base, head) = (PLOT - 44.0, 30.0);
    let y = |v: f64| base - (base - head) * (v.clamp(low, high) - low) / (high - low).max(1e-9);
    let (metric, statistic) = (all[0].1.metric.replace('_', " "), &all[0].1.statistic);
    let title = format!("{metric}, {statistic}: overhead in %");
    let mut canvas = Canvas::new(medium, PLOT, title.as_str()).plot(LEFT, RIGHT);
    let step = linear_ticks((high - low).max(1e-9), 6).get(1).copied().unwrap_or(1.0);
    for k in (low / step).ceil() as i64..=(high / step).floor() as i64 {
        let tick = k as f64 * step;
        canvas.line(if k == 0 { "axis" } else { "grid" }, (LEFT, y(tick)), (RIGHT, y(tick)));
        canvas.text("tick", (LEFT - 8.0, y(tick) + 4.0), &set(tick), Hold::End);
    }
    canvas.text("", (LEFT, 14.0), &title, Hold::Start);
    let across = (RIGHT - LEFT) / places.len() as f64;
    for (i, level) in places.iter().enumerate() {
        canvas.text("tick", (LEFT + across * (i as f64 + 0.5), base + 20.0), level, Hold::Middle);
    }
    // The points of one level are placed side by side, so that their intervals do not overlap.
    let apart = (across * 0.6 / lines.len() as f64).min(14.0);
    let x = |p: &Point<'_>| {
        LEFT + across * (p.place as f64 + 0.5) + apart * (p.line as f64 - (lines.len() - 1) as f64 / 2.0)
    };
    let mut names: Vec<(f64, usize)> = Vec::new();
    for line in 0..lines.len() {
        canvas.open("", line, &[]);
        let of: Vec<_> = all.iter().filter(|(p, ..)| p.line == line).collect();
        canvas.polyline("line thin", &of.iter().map(|(p, _, v)| (x(p), y(*v))).collect::<Vec<_>>());
        for (p, o, v) in &of {
            if let Some([low, high]) = o.interval {
                let class = if o.within_runs { "interval within" } else { "interval" };
                canvas.line(class, (x(p), y(low)), (x(p), y(high)));
            }
            let mark = Mark::default().with("ratio", 1.0 + v / 100.0);
            canvas.plain_mark(&mark, |c| c.dot("", (x(p), y(*v)), 3.5));
        }
        canvas.close();
        names.extend(of.last().map(|(_, _, v)| (y(*v), line)));
    }
    spread(&mut names, 14.0, base);
    for (at, line) in names {
        canvas.open("", line, &[]);
        canvas.text("end", (RIGHT + 12.0, at + 4.0), &lines[line], Hold::Start);
        canvas.close();
    }
    canvas
}
