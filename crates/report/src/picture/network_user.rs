//! Draws the times that messages took to the kernel's receive stamp ("network") and to the thread ("user") in one histogram, one drawing
//! for each condition and direction, with the same axes.

use crate::picture::Plot;
use crate::picture::axis::{Log, nice};
use crate::picture::canvas::{Canvas, Hold, Mark, Medium};
use crate::picture::series::Chart;
use crate::picture::steps::{Column, Units, outlines};
use tailbound_document::number::{Unit, count, time};
use tailbound_document::{ConditionReport, MetricReport, QuantileReport, Report, StagePart, StageWord};
use tailbound_model::Metric;

const WIDTH: f64 = crate::picture::canvas::WIDTH;
const ROW: f64 = 160.0;
const PLOT: Plot = Plot { left: 64.0, right: WIDTH - 214.0, top: 26.0, bottom: ROW - 24.0 };

/// A bucket of a histogram: its smallest and largest value, ns, and the number of messages.
type Buckets = [(i64, i64, u64)];

/// One histogram of a drawing.
struct Series<'r> {
    name: &'static str,
    hue: usize,
    /// What the values are.
    definition: &'static str,
    buckets: &'r Buckets,
    /// If the ends have different clocks: the longest possible times, while `buckets` are the shortest possible ones.
    longest: Option<&'r Buckets>,
    messages: u64,
    /// True if the values are a part of the other ones: an outline distinguishes them.
    is_part: bool,
    /// Median, and the largest value, in words.
    figures: [String; 2],
}

/// Messages of a condition in one direction, with what is known of them.
struct Row<'r> {
    condition: &'r ConditionReport,
    is_out: bool,
    series: Vec<Series<'r>>,
}

/// True if a message has a receive stamp of the kernel.
pub(crate) fn is_there(report: &Report) -> bool {
    report.conditions.iter().any(|condition| [true, false].iter().any(|out| !series(condition, *out).is_empty()))
}

/// True if the ends of a condition have different clocks, so that a way has a shortest and a longest possible time.
pub(crate) fn has_ranges(report: &Report) -> bool {
    report.conditions.iter().any(|condition| condition.out_network_range.is_some())
}

/// True if messages are not drawn because their time, which is exactly known, is negative or zero.
pub(crate) fn has_early(report: &Report) -> bool {
    let all = report.conditions.iter().flat_map(|condition| [true, false].map(|out| series(condition, out)));
    all.flatten().any(|series| series.longest.is_none() && hidden(&series) > 0)
}

/// One drawing for each condition and direction with receive stamps of the kernel.
pub(crate) fn draw(report: &Report, medium: Medium) -> Vec<Canvas> {
    let chart = Chart::new(report, medium, Metric::RoundTrip, &report.view.x);
    let of = |condition| [true, false].map(|is_out| Row { condition, is_out, series: series(condition, is_out) });
    let rows: Vec<Row> = chart.measured.iter().flat_map(|c| of(c)).filter(|row| !row.series.is_empty()).collect();
    let all = || rows.iter().flat_map(|row| &row.series).flat_map(|s| [s.buckets, s.longest.unwrap_or(&[])]);
    let values = || all().flatten().filter(|(_, high, _)| *high >= 1);
    let low = values().map(|(low, ..)| (*low).max(1)).min().unwrap_or(1);
    let high = values().map(|(_, high, _)| *high).max().unwrap_or(1);
    let (low, high) = nice(low as f64, high as f64);
    let x = Log { low, high, from: PLOT.left, to: PLOT.right };
    let most = values().map(|(.., n)| *n).max().unwrap_or(1) as f64;
    // Half a message is the floor: one message is seen, none is not.
    let y = Log { low: 0.5, high: most * 1.1, from: PLOT.bottom, to: PLOT.top };
    rows.iter().map(|row| row.draw(&chart, (x, y))).collect()
}

/// The histograms of one direction; none without receive stamps of the kernel.
fn series(condition: &ConditionReport, is_out: bool) -> Vec<Series<'_>> {
    let (to_kernel, to_thread, end) = match is_out {
        true => (Metric::OutNetwork, Metric::Out, "ping"),
        false => (Metric::BackNetwork, Metric::Back, "pong"),
    };
    let network = of_metric(condition, to_kernel, ("network", 0));
    let user = of_metric(condition, to_thread, ("user", 2));
    let stages = condition.stages.iter().find(|stages| stages.end == end);
    let thread = stages.and_then(|of| of.parts.iter().find(|part| part.stages == [StageWord::Thread]));
    match network {
        Some(network) => [Some(network), user, thread.and_then(of_part)].into_iter().flatten().collect(),
        None => Vec::new(),
    }
}

fn of_metric<'r>(
    condition: &'r ConditionReport,
    metric: Metric,
    (name, hue): (&'static str, usize),
) -> Option<Series<'r>> {
    let value = |of: &MetricReport| of.quantile(0.5).and_then(QuantileReport::value_ns);
    let said = |ns: Option<i64>| ns.map_or_else(|| "unknown".to_owned(), |ns| time(ns as f64));
    let exact = condition.metric(metric).map(|of| Series {
        name,
        hue,
        definition: definition(metric),
        buckets: &of.histogram,
        longest: None,
        is_part: false,
        messages: of.n,
        figures: [said(value(of)), said(of.max_ns)],
    });
    let range = || {
        let of = condition.range(metric)?;
        let both = |low: Option<i64>, high: Option<i64>| match low.zip(high) {
            Some((low, high)) => {
                let unit = Unit::of(high as f64);
                format!("{} {}", unit.range(low, high), unit.name())
            }
            None => "unknown".to_owned(),
        };
        Some(Series {
            name,
            hue,
            definition: definition(metric),
            buckets: &of.low.histogram,
            longest: Some(&of.high.histogram),
            is_part: false,
            messages: of.low.n,
            figures: [both(value(&of.low), value(&of.high)), both(of.low.max_ns, of.high.max_ns)],
        })
    };
    exact.or_else(range).filter(|series| series.messages > 0)
}

/// What the values of a way are.
fn definition(metric: Metric) -> &'static str {
    match metric {
        Metric::OutNetwork => "from the begin of the send call to the receive stamp of the kernel",
        Metric::Out => "from the begin of the send call to the thread that receives",
        Metric::BackNetwork => "from the end of the pong's send call to the receive stamp of the kernel",
        _ => "from the end of the pong's send call to the thread that receives",
    }
}

/// The time from the kernel's receive stamp to the thread, which is measured for each message if its stages are.
fn of_part(part: &StagePart) -> Option<Series<'_>> {
    (!part.histogram.is_empty()).then(|| Series {
        name: "kernel to thread",
        hue: 1,
        definition: "from the receive stamp of the kernel to the thread that receives",
        buckets: &part.histogram,
        longest: None,
        is_part: true,
        messages: part.messages,
        figures: [part.p50_ns, part.max_ns].map(|ns| time(ns as f64)),
    })
}

impl Row<'_> {
    fn draw(&self, chart: &Chart<'_>, (x, y): (Log, Log)) -> Canvas {
        let way = if self.is_out { "out" } else { "back" };
        let name = chart.short_name(self.condition);
        let label = format!("Histogram of network and user, {way}, {}", self.condition.name);
        let mut canvas = chart.canvas(ROW, label).of(self.condition.id).plot(PLOT.left, PLOT.right);
        canvas.upright("grid", x.ticks(PLOT.ticks()).into_iter().map(|t| x.at(t)), (PLOT.top, PLOT.bottom));
        let ticks: Vec<f64> = [1.0, 100.0, 1e4, 1e6, 1e8].into_iter().filter(|t| y.at(*t) > PLOT.top - 2.0).collect();
        canvas.level("grid", ticks.iter().map(|t| y.at(*t)), (PLOT.left, PLOT.right));
        for tick in ticks {
            canvas.text("tick", (PLOT.left - 8.0, y.at(tick) + 4.0), &count(tick as u64), Hold::End);
        }
        canvas.text("value strong", (PLOT.left, 17.0), &format!("{name}: {way}"), Hold::Start);
        let mut at = PLOT.top + 12.0;
        for series in &self.series {
            canvas.open_fixed(series.hue, self.condition);
            canvas.mark(&mark(series), |canvas| {
                let look = if series.is_part { "line thin" } else { "piece" };
                canvas.path(look, &area(series.buckets, x, y));
                if let Some(longest) = series.longest {
                    canvas.path("line flat", &area(longest, x, y));
                }
            });
            canvas.text("end", (PLOT.right + 12.0, at), series.name, Hold::Start);
            let [median, largest] = &series.figures;
            let words = [Some(format!("p50 {median}, max {largest}")), not_drawn(series)];
            for line in words.into_iter().flatten() {
                at += 13.0;
                canvas.text("quantile", (PLOT.right + 12.0, at), &line, Hold::Start);
            }
            at += 19.0;
            canvas.close();
        }
        canvas.line("axis", (PLOT.left, PLOT.bottom), (PLOT.right, PLOT.bottom));
        for tick in x.ticks(PLOT.ticks()) {
            canvas.text("tick", (x.at(tick), PLOT.bottom + 15.0), &time(tick), Hold::Middle);
        }
        canvas
    }
}

/// The area below a histogram. Values below 1 ns have no place on the axis.
fn area(buckets: &Buckets, x: Log, y: Log) -> String {
    let column = |(low, high, n): &(i64, i64, u64)| {
        let (from, to, top) = (x.at((*low).max(1) as f64), x.at(*high as f64 + 1.0), y.at(*n as f64));
        Column { from, to, top, median: top, bottom: PLOT.bottom }
    };
    let columns: Vec<Column> = buckets.iter().filter(|(_, high, _)| *high >= 1).map(column).collect();
    outlines(&columns, Units { left: 0.0, unit: (1.0, 1.0), digits: (2, 1) })
}

/// Number of messages that have no place on the axis.
fn hidden(series: &Series) -> u64 {
    series.buckets.iter().filter(|(_, high, _)| *high < 1).map(|(.., n)| n).sum()
}

/// Says how many messages are not drawn; `None` if all are.
fn not_drawn(series: &Series) -> Option<String> {
    let hidden = hidden(series);
    let what = if series.longest.is_some() { "shortest possible times" } else { "times" };
    (hidden > 0).then(|| format!("{} {what} below 1 ns: not drawn", count(hidden)))
}

fn mark(series: &Series) -> Mark {
    let [median, largest] = &series.figures;
    let mut lines = vec![
        format!("{}: {} messages", series.name, count(series.messages)),
        series.definition.to_owned(),
        format!("p50 {median}, max {largest}"),
    ];
    lines.extend(not_drawn(series));
    Mark { lines, data: Vec::new() }
}
