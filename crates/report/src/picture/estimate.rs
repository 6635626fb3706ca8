//! Draws the tail estimate of one condition: the measured tail, the fitted tail with its interval, and the range in
//! which there is no estimate.

use crate::picture::axis::{Log, nice};
use crate::picture::canvas::{Canvas, Hold, Mark, d, n};
use crate::picture::reading::share;
use crate::picture::series::Chart;
use crate::picture::tail::{end_mark, exceedance};
use crate::picture::{Plot, across, no_chart, strength};
use tailbound_document::number::{THIN, count, time};
use tailbound_document::{ConditionReport, MetricReport, TailReport};
use tailbound_model::Problem;
use tailbound_stats::FARTHEST;

const HEIGHT: f64 = 420.0;

const PLOT: Plot = Plot { left: 116.0, right: crate::picture::canvas::WIDTH - 24.0, top: 30.0, bottom: HEIGHT - 46.0 };

/// Conditions with a tail estimate, or with the reason why there is none; the condition with the longest estimated
/// latency is first.
pub(crate) fn conditions<'r>(chart: &Chart<'r>) -> Vec<(&'r ConditionReport, &'r MetricReport)> {
    let level = |m: &MetricReport| match m.tail {
        Some(TailReport::Estimate { level_ns, .. }) => level_ns,
        _ => -1,
    };
    let mut all: Vec<_> = chart.answered().into_iter().filter(|(_, m)| m.tail.is_some()).collect();
    all.sort_by_key(|(_, m)| std::cmp::Reverse(level(m)));
    all
}

/// Draws the tail estimate of a condition, or returns the reason why there is none.
pub(crate) fn draw(
    chart: &Chart<'_>,
    condition: &ConditionReport,
    figures: &MetricReport,
) -> Result<Vec<Canvas>, Problem> {
    match &figures.tail {
        Some(tail @ TailReport::Estimate { .. }) => Ok(vec![one(chart, condition, figures, tail)]),
        Some(TailReport::NotApplicable { one_in, not_applicable }) => {
            Err(no_chart(format!("a tail estimate of 1 in {} is not applicable: {not_applicable}", count(*one_in))))
        }
        None => Err(no_chart("the study asks for no tail estimate")),
    }
}

/// Draws both axes, and the curves between them.
fn one(chart: &Chart<'_>, condition: &ConditionReport, figures: &MetricReport, tail: &TailReport) -> Canvas {
    let mut canvas = chart.canvas(HEIGHT, format!("Tail estimate of {}", condition.name)).plot(PLOT.left, PLOT.right);
    let TailReport::Estimate { high_ns, threshold_ns, exceedances, .. } = tail else { return canvas };
    let scheduled = figures.scheduled as f64;
    let (above, farthest) = (*exceedances as f64 / scheduled, FARTHEST as f64 * scheduled);
    let mut points = exceedance(figures);
    points.retain(|(_, share)| *share <= (30.0 * above).min(1.0));
    let first = points.first().copied().unwrap_or((*threshold_ns as f64, above));
    let latest = figures.max_ns.unwrap_or(*high_ns).max(*high_ns) as f64;
    let (low, high) = nice(first.0.min(*threshold_ns as f64), latest);
    let x = Log { low, high, from: PLOT.left, to: PLOT.right };
    let y = Log { low: first.1, high: 1.0 / (4.0 * farthest), from: PLOT.top, to: PLOT.bottom };
    for n in (0..).map(|e| 10f64.powi(e)).take_while(|n| *n <= 4.0 * farthest).filter(|n| 1.0 / n <= first.1) {
        canvas.line("grid", (PLOT.left, y.at(1.0 / n)), (PLOT.right, y.at(1.0 / n)));
        canvas.text("tick", (PLOT.left - 8.0, y.at(1.0 / n) + 4.0), &share(1.0 / n), Hold::End);
    }
    for tick in x.ticks(PLOT.ticks()) {
        canvas.line(strength(tick), (x.at(tick), PLOT.top), (x.at(tick), PLOT.bottom));
        canvas.text("tick", (x.at(tick), PLOT.bottom + 18.0), &time(tick), Hold::Middle);
    }
    let words = format!("{} of {}", chart.words(), condition.name);
    across(&mut canvas, &PLOT, &words.chars().take(110).collect::<String>());
    borders(&mut canvas, figures, tail, x, y);
    canvas.open_fixed(5, condition);
    let places: Vec<(f64, f64)> = points.iter().map(|(ns, share)| (x.at(*ns), y.at(*share))).collect();
    canvas.path_with("line", &d(&places), &[("measured", condition.id.to_string())]);
    canvas.close();
    canvas.open_fixed(0, condition);
    fitted(&mut canvas, tail, above, x, y);
    canvas.close();
    canvas.open_fixed(5, condition);
    if let Some(last) = places.last() {
        end_mark(&mut canvas, chart, condition, figures, *last);
    }
    canvas.close();
    canvas
}

/// Draws three marks on the axis: where the tail begins, where the measured messages end, and from where on there is no
/// estimate.
fn borders(canvas: &mut Canvas, figures: &MetricReport, tail: &TailReport, x: Log, y: Log) {
    let TailReport::Estimate { threshold_ns, exceedances, clusters, .. } = tail else { return };
    let farthest = FARTHEST * figures.scheduled;
    let (refused, ended) = (y.at(1.0 / farthest as f64), y.at(1.0 / figures.scheduled as f64));
    let at = x.at(*threshold_ns as f64);
    canvas.rect("refused", (PLOT.left, refused), (PLOT.right - PLOT.left, PLOT.bottom - refused));
    let words = format!("no estimate beyond 1 in {} ({FARTHEST} times the number of messages)", count(farthest));
    canvas.text("quantile halo", (PLOT.left + 8.0, refused + 17.0), &words, Hold::Start);
    canvas.line("mtu", (PLOT.left, ended), (PLOT.right, ended));
    let words = format!("measured: {} messages", count(figures.scheduled));
    canvas.text("quantile halo", (PLOT.left + 8.0, ended - 5.0), &words, Hold::Start);
    canvas.line("mtu", (at, PLOT.top), (at, PLOT.bottom));
    let words = format!("threshold {}: {} later", time(*threshold_ns as f64), count(*exceedances));
    let words = format!("{words}, in {} clusters", count(*clusters));
    canvas.text("quantile halo", (at + 5.0, PLOT.top - 8.0), &words, Hold::Start);
}

/// Draws the fitted tail with its interval, from the threshold to the rarity that the study asks for (one message in
/// `one_in`).
fn fitted(canvas: &mut Canvas, tail: &TailReport, above: f64, x: Log, y: Log) {
    let TailReport::Estimate { one_in, level_ns, low_ns, high_ns, threshold_ns, shape, scale_ns, course, .. } = tail
    else {
        return;
    };
    let start = (x.at(*threshold_ns as f64), y.at(above));
    if !course.is_empty() {
        let low = course.iter().map(|l| (x.at(l.2 as f64), y.at(1.0 / l.0)));
        let high = course.iter().rev().map(|l| (x.at(l.3 as f64), y.at(1.0 / l.0)));
        canvas.path("band", &format!("{}z", d(&[start].into_iter().chain(low).chain(high).collect::<Vec<_>>())));
    }
    let mut points = Vec::new();
    let mut share = above;
    while share > 1.0 / *one_in as f64 {
        let level = *threshold_ns as f64 + excess(*scale_ns as f64, *shape, above / share);
        points.push((x.at(level), y.at(share)));
        share /= 1.3;
    }
    let (at, end) = (x.at(*level_ns as f64), y.at(1.0 / *one_in as f64));
    points.push((at, end));
    canvas.path("line", &d(&points));
    let (low, high, top) = (n(x.at(*low_ns as f64)), n(x.at(*high_ns as f64)), n(end - 5.0));
    canvas.path("interval", &format!("M{low},{top}v10m0,-5H{high}m0,-5v10"));
    canvas.mark(&reading(tail), |c| c.dot("", (at, end), 4.0));
    let unit = tailbound_document::number::Unit::of(*level_ns as f64);
    let [low, level, high] = [low_ns, level_ns, high_ns].map(|ns| unit.with(*ns as f64));
    let words = format!("1 in {}: about {level} (95{THIN}%: {low} to {high})", count(*one_in));
    canvas.text("end halo", (x.at(*low_ns as f64) - 10.0, end + 4.0), &words, Hold::End);
}

fn reading(tail: &TailReport) -> Mark {
    let TailReport::Estimate {
        one_in,
        level_ns,
        low_ns,
        high_ns,
        shape,
        scale_ns,
        extremal_index,
        anderson_darling,
        critical,
        held_out_found,
        held_out_expected,
        ..
    } = tail
    else {
        return Mark::default();
    };
    let [low, level, high, scale] = [low_ns, level_ns, high_ns, scale_ns].map(|ns| time(*ns as f64));
    let lines = vec![
        format!("one message in {} is later than about {level}", count(*one_in)),
        format!("95{THIN}%: {low} to {high}; an estimate, not a bound"),
        format!("shape {shape}, scale {scale}, extremal index {extremal_index}"),
        format!(
            "fit: Anderson-Darling {anderson_darling}, critical {critical}; held out: {held_out_found} clusters, \
             {held_out_expected} expected"
        ),
    ];
    let mark = Mark { lines, data: Vec::new() }.with("quantile", "estimate").with("value-ns", level_ns);
    mark.with("low-ns", low_ns).with("high-ns", high_ns)
}

/// Distance in ns from the threshold to the level that one in `rarity` of the messages above the threshold exceeds.
fn excess(scale: f64, shape: f64, rarity: f64) -> f64 {
    scale * if shape.abs() < 1e-6 { rarity.ln() } else { (shape * rarity.ln()).exp_m1() / shape }
}
