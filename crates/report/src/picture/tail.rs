//! Chart of the complementary distribution of a latency: the share of messages that take longer than each time, with
//! two logarithmic axes. Slots without an answer count as later than all answers, so a line may end horizontally.

use crate::picture::axis::Log;
use crate::picture::canvas::{Canvas, Hold, Mark, Medium, d};
use crate::picture::names::Name;
use crate::picture::reading::{beyond, of_quantile, share};
use crate::picture::series::Chart;
use crate::picture::{Plot, across, limits, strength};
use tailbound_document::number::{THIN, count, time};
use tailbound_document::{ConditionReport, MetricReport, QuantileReport};

const WIDTH: f64 = crate::picture::canvas::WIDTH;

const HEIGHT: f64 = 420.0;

/// Returns the drawing, and a note if it does not contain all conditions.
pub(crate) fn draw(chart: &Chart<'_>) -> (Vec<Canvas>, String) {
    let (some, note) = chart.overlaid();
    let Some((low, high)) = chart.axis_of_values(&some) else { return (Vec::new(), note) };
    let rarest = 1.6 * some.iter().map(|(_, m)| m.scheduled).max().unwrap_or(1) as f64;
    let longest = some.iter().map(|(c, m)| end_words(chart, c, m).chars().count()).max().unwrap_or(0) as f64;
    let right = WIDTH - (40.0 + 6.8 * longest).min(300.0);
    let plot = Plot { left: 104.0, right, top: 14.0, bottom: HEIGHT - 46.0 };
    let x = Log { low, high, from: plot.left, to: plot.right };
    let y = Log { low: 1.0, high: 1.0 / rarest, from: plot.top, to: plot.bottom };
    let mut canvas = chart.canvas(HEIGHT, format!("How rare each {} is", chart.words())).plot(plot.left, plot.right);
    for n in (0..).map(|e| 10f64.powi(e)).take_while(|n| *n <= rarest) {
        canvas.line("grid", (plot.left, y.at(1.0 / n)), (plot.right, y.at(1.0 / n)));
        canvas.text("tick", (plot.left - 8.0, y.at(1.0 / n) + 4.0), &share(1.0 / n), Hold::End);
    }
    for tick in x.ticks(plot.ticks()) {
        canvas.line(strength(tick), (x.at(tick), plot.top), (x.at(tick), plot.bottom));
        canvas.text("tick", (x.at(tick), plot.bottom + 18.0), &time(tick), Hold::Middle);
    }
    let conditions: Vec<&ConditionReport> = some.iter().map(|(c, _)| *c).collect();
    limits::upright(&mut canvas, chart, &conditions, x, &plot);
    across(&mut canvas, &plot, chart.words());
    let ids: Vec<usize> = match chart.medium {
        Medium::Page => chart.overlay(),
        Medium::Still => some.iter().map(|(c, _)| c.id).collect(),
    };
    let hue = |c: &ConditionReport| chart.overlay_hue(c, &ids);
    for (condition, figures) in &some {
        canvas.open_condition(hue(condition), condition);
        band(&mut canvas, figures, x, y, &plot);
        canvas.close();
    }
    let mut names = Vec::new();
    for (condition, figures) in &some {
        canvas.open_condition(hue(condition), condition);
        let end = line(&mut canvas, chart, (condition, figures), (x, y), &plot);
        canvas.close();
        let (words, hue) = (end_words(chart, condition, figures), hue(condition));
        names.push(Name { end, words, class: "", hue, conditions: vec![condition.id] });
    }
    canvas.names(plot.right + 9.0, 15.0, (plot.top + 4.0, plot.bottom), names);
    (vec![canvas], note)
}

fn band(canvas: &mut Canvas, figures: &MetricReport, x: Log, y: Log, plot: &Plot) {
    let ends = |q: &QuantileReport| match q {
        QuantileReport::Value { q, low_ns, high_ns, .. } if *q < 1.0 => {
            Some((y.at(1.0 - q), x.at(*low_ns as f64), high_ns.map_or(plot.right, |h| x.at(h as f64))))
        }
        _ => None,
    };
    let known: Vec<(f64, f64, f64)> = figures.quantiles.iter().filter_map(ends).collect();
    if known.len() > 1 {
        let lower = known.iter().map(|(y, low, _)| (*low, *y));
        let upper = known.iter().rev().map(|(y, _, high)| (*high, *y));
        canvas.path("band", &format!("{}z", d(&lower.chain(upper).collect::<Vec<_>>())));
    }
}

/// Draws the line of a condition with its marks, and returns the position of its end.
fn line(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    (condition, figures): (&ConditionReport, &MetricReport),
    (x, y): (Log, Log),
    plot: &Plot,
) -> (f64, f64) {
    let points: Vec<(f64, f64)> = exceedance(figures).iter().map(|(ns, share)| (x.at(*ns), y.at(*share))).collect();
    canvas.path_with("line", &d(&points), &[("condition", condition.id.to_string())]);
    let end = points.last().copied().unwrap_or((plot.right, plot.bottom));
    let lost = figures.scheduled > figures.n;
    if lost {
        canvas.path("line flat", &d(&[end, (plot.right, end.1)]));
    }
    for quantile in &figures.quantiles {
        if let Some(value) = quantile.value_ns().filter(|_| quantile.q() < 1.0) {
            let mark = of_quantile(chart.words(), quantile, figures);
            canvas.mark(&mark, |c| c.dot("", (x.at(value as f64), y.at(1.0 - quantile.q())), 3.0));
        }
    }
    end_mark(canvas, chart, condition, figures, end);
    if lost { (plot.right, end.1) } else { end }
}

/// Writes the name of the condition beside the end of the condition's line.
fn end_words(chart: &Chart<'_>, condition: &ConditionReport, figures: &MetricReport) -> String {
    let name: String = chart.short_name(condition).chars().take(30).collect();
    let lost = figures.scheduled - figures.n;
    if lost == 0 {
        return name;
    }
    format!("{name}, {}: {}", beyond(condition), share(lost as f64 / figures.scheduled as f64))
}

/// Draws a hollow dot at the end of the line, which is the latest message.
pub(crate) fn end_mark(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    condition: &ConditionReport,
    figures: &MetricReport,
    at: (f64, f64),
) {
    let Some(max) = figures.max_ns else { return };
    let mut lines = vec![format!("{}, the longest of {}", chart.words(), count(figures.n)), time(max as f64)];
    if let Some(rule) = figures.rule_of_three {
        lines.push(format!("at most {} is later (95{THIN}%)", share(rule)));
    }
    if figures.scheduled > figures.n {
        let lost = count(figures.scheduled - figures.n);
        lines.push(format!("{lost} of {} {}", count(figures.scheduled), beyond(condition)));
    }
    let mark = Mark { lines, data: Vec::new() }.with("quantile", "max").with("value-ns", max);
    canvas.mark(&mark, |c| c.dot("gone", at, 4.0));
}

/// Points of the line: latency in ns, and the share of messages that take longer. Messages without an answer take
/// longer than every other message.
pub(crate) fn exceedance(figures: &MetricReport) -> Vec<(f64, f64)> {
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
    // The longest round trip is one message, so its share is not zero.
    points.push((max as f64, (figures.scheduled - figures.n).max(1) as f64 / all));
    points.retain(|(ns, _)| *ns > 0.0);
    points
}
