//! Chart of the sender's loop: every trial of a condition over its slots, one drawing per metric. Each column spans the
//! lowest to the highest value of its slots.

use crate::picture::axis::{Log, linear_ticks, nice};
use crate::picture::canvas::{Canvas, Hold, Mark, n};
use crate::picture::look;
use crate::picture::series::Chart;
use crate::picture::{Plot, across};
use tailbound_document::number::{count, time};
use tailbound_document::{ConditionReport, Course, Report, TrialReport};
use tailbound_model::Metric;

const WIDTH: f64 = crate::picture::canvas::WIDTH;

const PLOT: Plot = Plot { left: 64.0, right: WIDTH - 28.0, top: 38.0, bottom: 178.0 };

/// Smallest height of a bar, in SVG units: a fifth of a pixel.
const FIFTH: f64 = 0.2;

const PANELS: [(Metric, &str); 3] = [
    (Metric::WakeToSent, "M2 woken to sent"),
    (Metric::RoundTrip, "M3 round trip"),
    (Metric::WakePeriod, "M4 wake-up to wake-up"),
];

/// Largest number of repeats whose hues are named.
const REPEATS: usize = 10;

/// Names of the repeats with their hues, as HTML.
pub(crate) fn keys(report: &Report) -> String {
    let most = report.conditions.iter().map(|c| trials(report, c).len()).max().unwrap_or(0).min(REPEATS);
    (0..most).map(|i| format!("<span class=\"key s{}\"></span>repeat {}", i % look::HUES, i + 1)).collect()
}

fn trials<'r>(report: &'r Report, condition: &ConditionReport) -> Vec<(&'r TrialReport, &'r Course)> {
    let trials = condition.used_trial_ids.iter().filter_map(|id| report.trial(*id));
    trials.filter_map(|t| Some((t, t.course.as_ref().filter(|c| c.slots > 0)?))).collect()
}

/// Conditions whose trials are stored slot by slot; the condition with the longest send call is first.
pub(crate) fn conditions<'r>(chart: &Chart<'r>) -> Vec<&'r ConditionReport> {
    let drawn = |c: &&ConditionReport| !trials(chart.report, c).is_empty();
    let mut all: Vec<&ConditionReport> = chart.measured.iter().copied().filter(drawn).collect();
    all.sort_by_key(|c| std::cmp::Reverse(c.wake_to_sent.as_ref().and_then(|m| m.max_ns)));
    all
}

pub(crate) fn draw(chart: &Chart<'_>, condition: &ConditionReport) -> Vec<Canvas> {
    let trials = trials(chart.report, condition);
    let there =
        |(metric, _): &&(Metric, &str)| trials.iter().any(|(_, c)| c.columns(*metric).iter().any(Option::is_some));
    let panels: Vec<_> = PANELS.iter().filter(there).collect();
    let slots = trials.iter().map(|(_, c)| c.slots).max().unwrap_or(1);
    let mut drawn: Vec<Canvas> = panels.iter().map(|p| panel(chart, condition, &trials, **p, slots)).collect();
    if let Some(last) = drawn.last_mut() {
        last.grow(32.0);
        for slot in linear_ticks(slots as f64, 8) {
            let at = (x(slot, slots), PLOT.bottom + 17.0);
            last.text("tick", at, &count(slot.round() as u64), Hold::Middle);
        }
        across(last, &PLOT, "loop number (measured slots)");
    }
    drawn
}

fn x(slot: f64, slots: u64) -> f64 {
    PLOT.left + (PLOT.right - PLOT.left) * slot / slots as f64
}

/// Horizontal position of the middle of a column.
fn middle(course: &Course, column: usize, slots: u64) -> f64 {
    x(((column as f64 + 0.5) * course.slots_per_column as f64).min(course.slots as f64), slots)
}

fn panel(
    chart: &Chart<'_>,
    condition: &ConditionReport,
    trials: &[(&TrialReport, &Course)],
    (metric, words): (Metric, &str),
    slots: u64,
) -> Canvas {
    let mut canvas =
        chart.canvas(PLOT.bottom + 8.0, format!("{words} over the loop number")).plot(PLOT.left, PLOT.right);
    canvas.text("strong", (PLOT.left, 14.0), words, Hold::Start);
    // The page has the hues of the repeats above the figure, where a narrow screen has room for them.
    let repeats = if canvas.is_page() { 0 } else { REPEATS };
    for (i, (trial, _)) in trials.iter().enumerate().take(repeats) {
        canvas.open("", i, &[]);
        let at = (PLOT.left + 190.0 + 66.0 * i as f64, 14.0);
        canvas.text("end", at, &format!("repeat {}", trial.repeat + 1), Hold::Start);
        canvas.close();
    }
    let ranges = || trials.iter().flat_map(|(_, c)| c.columns(metric).iter().flatten());
    let low = ranges().map(|r| r.0.max(1)).min().unwrap_or(1);
    let high = ranges().map(|r| r.1.max(2)).max().unwrap_or(2);
    let (low, high) = nice(low as f64, high as f64);
    let y = Log { low, high, from: PLOT.bottom, to: PLOT.top };
    canvas.level("grid", y.ticks(5).into_iter().map(|t| y.at(t)), (PLOT.left, PLOT.right));
    for tick in y.ticks(5) {
        canvas.text("tick", (PLOT.left - 8.0, y.at(tick) + 4.0), &time(tick), Hold::End);
    }
    canvas.line("axis", (PLOT.left, PLOT.bottom), (PLOT.right, PLOT.bottom));
    let lost = |(_, c): &(&TrialReport, &Course)| c.unanswered.iter().any(|n| *n > 0);
    if metric == Metric::RoundTrip && trials.iter().any(lost) {
        canvas.text("tick", (PLOT.left - 8.0, PLOT.top - 9.0), "lost", Hold::End);
    }
    for (i, (trial, course)) in trials.iter().enumerate() {
        canvas.open("", i, &[]);
        columns(&mut canvas, trial, course, metric, slots, y);
        canvas.close();
    }
    for (i, (trial, course)) in trials.iter().enumerate() {
        let columns = course.columns(metric).iter().enumerate();
        let highest = columns.filter_map(|(c, r)| Some((c, (*r)?))).rev().max_by_key(|(_, r)| r.1);
        let Some((column, (low, high))) = highest else { continue };
        let mark = worst(trial, course, (metric, words), column, (low, high));
        let at = (middle(course, column, slots), y.at((high as f64).max(y.low)));
        canvas.open("", i, &[("condition", condition.id.to_string())]);
        canvas.mark(&mark, |c| c.triangle(at));
        canvas.close();
    }
    canvas
}

/// Draws the columns of one trial, and ticks above the plot for slots that were never answered.
fn columns(canvas: &mut Canvas, trial: &TrialReport, course: &Course, metric: Metric, slots: u64, y: Log) {
    let all = course.columns(metric);
    let step = (0.8 * (PLOT.right - PLOT.left) / all.len().max(1) as f64).clamp(1.0, 7.0);
    // A little more at both ends, so that a column whose slots agree is seen; more where columns are few.
    let pad = if step > 2.0 { 1.5 } else { 0.5 };
    // Nothing, as a virtual clock has it, lies at the foot.
    let at = |ns: i64| y.at((ns as f64).max(y.low));
    // In whole columns and fifths of a pixel, each bar from where the one before it ended: a page holds many.
    let (mut path, mut held) = (String::new(), (0, 0));
    for (c, range) in all.iter().enumerate() {
        let Some((low, high)) = *range else { continue };
        let [top, bottom] = [at(high) - pad, at(low) + pad].map(|y| (y / FIFTH).round() as i64);
        path.push_str(&format!("m{} {}v{}", c as i64 - held.0, top - held.1, bottom - top));
        held = (c as i64, bottom);
    }
    let data = [("trial", trial.id.to_string()), ("metric", metric.key().to_owned()), ("pad", pad.to_string())];
    let column = (PLOT.right - PLOT.left) * course.slots_per_column as f64 / slots as f64;
    canvas.stroke("loop", &path, step / column, (PLOT.left + column / 2.0, (column, FIFTH)), &data);
    let lost = course.unanswered.iter().enumerate().filter(|(_, n)| **n > 0 && metric == Metric::RoundTrip);
    let path: String = lost.map(|(c, _)| format!("M{},{}v7", n(middle(course, c, slots)), PLOT.top - 15.0)).collect();
    if !path.is_empty() {
        canvas.path("loop", &path);
    }
}

/// The column with the worst slot of a trial.
fn worst(
    trial: &TrialReport,
    course: &Course,
    (metric, words): (Metric, &str),
    column: usize,
    (low, high): (i64, i64),
) -> Mark {
    let first = column as u64 * course.slots_per_column;
    let end = course.slots.min(first + course.slots_per_column) - 1;
    let more = match end > first {
        true => format!(" to {}, the shortest there {}", count(end), time(low as f64)),
        false => String::new(),
    };
    let lines = vec![
        format!("{words}, trial {} (repeat {})", trial.id, trial.repeat + 1),
        format!("{}, the longest of this trial", time(high as f64)),
        format!("loop {}{more}", count(first)),
    ];
    let mark = Mark { lines, data: Vec::new() }.with("trial", trial.id).with("metric", metric.key());
    mark.with("column", column).with("value-ns", high)
}
