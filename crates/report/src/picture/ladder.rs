//! Draws every quantile of every condition with its interval on one common axis: one drawing with the axis, and one for
//! each condition.

use crate::picture::axis::Log;
use crate::picture::canvas::{Canvas, Hold, n};
use crate::picture::reading::{cut, of_max, of_quantile};
use crate::picture::series::Chart;
use crate::picture::{Plot, limits, strength};
use tailbound_document::number::{count, label, time};
use tailbound_document::{ConditionReport, MetricReport, QuantileReport};

const WIDTH: f64 = crate::picture::canvas::WIDTH;

const ROW: f64 = 36.0;

const HEAD: f64 = 26.0;

pub(crate) fn draw(chart: &Chart<'_>) -> Vec<Canvas> {
    let Some((low, high)) = chart.whole_axis() else { return Vec::new() };
    let rows: Vec<_> = chart.known().collect();
    let longest = rows.iter().map(|(c, _)| chart.short_name(c).chars().count()).max().unwrap_or(0) as f64;
    let gutter = rows.iter().map(|(_, m)| open_width(m)).fold(24.0, f64::max);
    let left = (16.0 + 7.0 * longest).min(240.0) + 8.0;
    let plot = Plot { left, right: WIDTH - gutter, top: 0.0, bottom: ROW };
    let x = Log { low, high, from: plot.left, to: plot.right };
    let ticks = x.ticks(plot.ticks());
    let mut head = chart.canvas(HEAD, format!("Percentiles of {}", chart.words())).plot(plot.left, plot.right);
    for tick in &ticks {
        head.text("tick", (x.at(*tick), HEAD - 8.0), &time(*tick), Hold::Middle);
    }
    let row = |(condition, figures): &(&ConditionReport, &MetricReport)| {
        let name = chart.short_name(condition);
        let mut canvas =
            chart.canvas(ROW, format!("Percentiles of {name}")).of(condition.id).plot(plot.left, plot.right);
        for class in ["grid", "grid strong"] {
            let some = ticks.iter().filter(|t| strength(**t) == class);
            canvas.upright(class, some.map(|t| x.at(*t)), (0.0, ROW));
        }
        limits::upright_in_row(&mut canvas, chart, condition, x, ROW);
        canvas.text("row", (left - 8.0, ROW / 2.0 + 9.0), &cut(&name, 32), Hold::End);
        canvas.open_condition(chart.hue(condition), condition);
        rung(&mut canvas, chart, figures, x, &plot);
        canvas.close();
        canvas
    };
    [head].into_iter().chain(rows.iter().map(row)).collect()
}

fn rung(canvas: &mut Canvas, chart: &Chart<'_>, figures: &MetricReport, x: Log, plot: &Plot) {
    let y = ROW / 2.0 + 5.0;
    let at = |ns: i64| x.at(ns as f64);
    let known: Vec<&QuantileReport> = figures.quantiles.iter().filter(|q| q.value_ns().is_some()).collect();
    let first = known.first().and_then(|q| q.value_ns()).or(figures.min_ns);
    if let (Some(first), Some(last)) = (first, figures.max_ns.or(first)) {
        canvas.line("rung", (at(first), y), (at(last), y));
    }
    for quantile in &known {
        let QuantileReport::Value { low_ns, high_ns, too_narrow, .. } = quantile else { continue };
        let (low, high) = (n(at(*low_ns)), n(high_ns.map_or(plot.right, at)));
        let class = if *too_narrow { "interval narrow" } else { "interval" };
        canvas.path(class, &format!("M{low},{0}v8M{high},{0}v8M{low},{y}H{high}", y - 4.0));
    }
    let mut names = Vec::new();
    for (i, quantile) in known.iter().enumerate() {
        let Some(value) = quantile.value_ns() else { continue };
        let mark = of_quantile(chart.words(), quantile, figures);
        canvas.mark(&mark, |c| c.dot("", (at(value), y), (4.4 - 0.5 * i as f64).max(2.4)));
        names.push((at(value), label(quantile.q()).trim_start_matches('p').to_owned()));
    }
    if let Some(max) = figures.max_ns {
        canvas.mark(&of_max(chart.words(), max, figures), |c| c.triangle((at(max), y)));
        names.push((at(max), "max".into()));
    }
    name_marks(canvas, &names, y - 9.0);
    // Quantiles without a number stand beside the axis, the rarest last.
    let mut free = plot.right + 26.0;
    for quantile in figures.quantiles.iter().filter(|q| q.value_ns().is_none()) {
        let class = if matches!(quantile, QuantileReport::Needs { .. }) { "needs" } else { "lost" };
        canvas.mark(&of_quantile(chart.words(), quantile, figures), |c| c.dot(class, (free, y), 3.6));
        free += 11.0;
    }
    if free > plot.right + 26.0 {
        canvas.text("open", (free, y + 4.0), &open_words(figures), Hold::Start);
    }
}

/// Writes the names of quantiles above their marks where there is room: first the name of the median, then the other
/// names, beginning with the highest quantile.
fn name_marks(canvas: &mut Canvas, names: &[(f64, String)], y: f64) {
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for (at, words) in names.first().into_iter().chain(names.iter().skip(1).rev()) {
        let half = words.chars().count() as f64 * 3.1 + 1.5;
        if taken.iter().all(|(low, high)| at + half <= *low || at - half >= *high) {
            taken.push((at - half, at + half));
            canvas.text("quantile", (*at, y), words, Hold::Middle);
        }
    }
}

/// Width of the space beside the axis for quantiles without a value, in SVG units.
fn open_width(figures: &MetricReport) -> f64 {
    let open = figures.quantiles.iter().filter(|q| q.value_ns().is_none()).count() as f64;
    if open > 0.0 { 36.0 + 11.0 * open + 6.1 * open_words(figures).chars().count() as f64 } else { 0.0 }
}

/// Reasons why quantiles have no value: the first quantile that is later than every answer, and the first quantile that
/// needs more messages.
fn open_words(figures: &MetricReport) -> String {
    let lost = figures.quantiles.iter().find_map(|q| match q {
        QuantileReport::Beyond { q, beyond, .. } => Some(format!("{} {}", label(*q), beyond.words())),
        _ => None,
    });
    let lacking = figures.quantiles.iter().find_map(|q| match q {
        QuantileReport::Needs { q, needs } => Some(format!("{} needs {}", label(*q), count(*needs))),
        _ => None,
    });
    lost.into_iter().chain(lacking).collect::<Vec<_>>().join(", ")
}
