//! Histograms of round trips over a common axis: one drawing for each condition, and one with the axis. Counts have a
//! logarithmic scale, so that a single message is visible.

use crate::picture::axis::Log;
use crate::picture::canvas::{Canvas, Hold, Mark};
use crate::picture::reading::beyond;
use crate::picture::series::Chart;
use crate::picture::{Plot, across, limits};
use tailbound_document::number::{count, time};
use tailbound_document::{ConditionReport, MetricReport};

const WIDTH: f64 = crate::picture::canvas::WIDTH;

const ROW: f64 = 104.0;

const PLOT: Plot = Plot { left: 64.0, right: WIDTH - 96.0, top: 26.0, bottom: ROW - 2.0 };

/// Returns the drawings, and a note if the drawings do not show all conditions.
pub(crate) fn draw(chart: &Chart<'_>) -> (Vec<Canvas>, String) {
    let (some, note) = chart.overlaid();
    let Some((low, high)) = chart.axis_of_values(&some) else { return (Vec::new(), note) };
    let x = Log { low, high, from: PLOT.left, to: PLOT.right };
    let most = some.iter().flat_map(|(_, m)| &m.histogram).map(|b| b.2).max().unwrap_or(1) as f64;
    // Half a message is the floor: one message is seen, none is not.
    let y = Log { low: 0.5, high: most * 1.1, from: PLOT.bottom, to: PLOT.top };
    let ids: Vec<usize> = if chart.medium == crate::picture::canvas::Medium::Page {
        chart.overlay()
    } else {
        some.iter().map(|(c, _)| c.id).collect()
    };
    let one = |(condition, figures): &(&ConditionReport, &MetricReport)| {
        let label = format!("Histogram of {}, {}", chart.words(), condition.name);
        let mut canvas = chart.canvas(ROW, label).of(condition.id).plot(PLOT.left, PLOT.right);
        canvas.upright("grid", x.ticks(PLOT.ticks()).into_iter().map(|t| x.at(t)), (PLOT.top, PLOT.bottom));
        limits::upright_in_row(&mut canvas, chart, condition, x, PLOT.bottom);
        canvas.open_condition(chart.overlay_hue(condition, &ids), condition);
        row(&mut canvas, chart, (condition, figures), x, y);
        canvas.close();
        canvas
    };
    let mut foot = chart.canvas(40.0, format!("Axis of {}", chart.words())).plot(PLOT.left, PLOT.right);
    for tick in x.ticks(PLOT.ticks()) {
        foot.text("tick", (x.at(tick), 18.0), &time(tick), Hold::Middle);
    }
    across(&mut foot, &Plot { bottom: 0.0, ..PLOT }, chart.words());
    (some.iter().map(one).chain([foot]).collect(), note)
}

fn row(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    (condition, figures): (&ConditionReport, &MetricReport),
    x: Log,
    y: Log,
) {
    let base = PLOT.bottom;
    let words = format!("{}, n = {}", chart.short_name(condition), count(figures.n));
    canvas.text("end", (PLOT.left, 20.0), &words, Hold::Start);
    let ticks: Vec<f64> = [1.0, 100.0, 1e4, 1e6, 1e8].into_iter().filter(|t| y.at(*t) > base - 80.0).collect();
    canvas.level("grid", ticks.iter().map(|t| y.at(*t)), (PLOT.left, PLOT.right));
    for tick in ticks {
        canvas.text("tick", (PLOT.left - 8.0, y.at(tick) + 4.0), &count(tick as u64), Hold::End);
    }
    canvas.line("axis", (PLOT.left, base), (PLOT.right, base));
    for (low, high, n) in figures.histogram.iter().filter(|b| b.1 >= 1) {
        let (from, to) = (x.at((*low).max(1) as f64), x.at(*high as f64 + 1.0));
        let top = y.at(*n as f64);
        // There are many: the script takes what a bar stands for from the document.
        let mark = Mark::default().with("bucket", low).with("count", n);
        canvas.bar("count", (from, top), ((to - from - 0.4).max(0.8), base - top), &mark);
    }
    let lost = figures.scheduled - figures.n;
    if lost > 0 {
        let (top, kind) = (y.at(lost as f64), beyond(condition));
        let lines = vec![format!("{} of {} messages", count(lost), count(figures.scheduled)), kind.to_owned()];
        let mark = Mark { lines, data: Vec::new() }.with("bucket", "beyond").with("count", lost);
        canvas.bar("count lost", (PLOT.right + 26.0, top), (9.0, base - top), &mark);
        canvas.text("tick", (PLOT.right + 40.0, base - 4.0), &format!("{kind} {}", count(lost)), Hold::Start);
    }
}
