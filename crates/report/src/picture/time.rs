//! Chart of one trial over time: every column spans its lowest to its highest message, and no maximum is left out.
//!
//! Everything is drawn in the scale of the whole trial, with all columns of the document. The shapes that move when a
//! reader zooms are in one clipped part of the drawing; the script chooses the section of this part that is visible.

use crate::picture::axis::{Log, linear_ticks, nice};
use crate::picture::canvas::{Canvas, Hold, Mark, WIDTH, n};
use crate::picture::series::Chart;
use crate::picture::steps::{Column, Steps, Units, outlines};
use crate::picture::{Plot, across, limits};
use tailbound_document::number::{THIN, Unit, count, time};
use tailbound_document::{ColumnValues, ConditionReport, IncidentReport, Message, OverTime, Report, TrialReport};
use tailbound_model::Metric;

const PLOT: Plot = Plot { left: 64.0, right: WIDTH - 24.0, top: 26.0, bottom: 300.0 };

/// Height of the picture of the whole trial, which is below the plot.
const WHOLE: f64 = 58.0;

/// Height of a strip with a name below the axis, for example for a load.
const STRIP: f64 = 16.0;

/// Length in pixels to which positions are rounded: a fifth of a pixel.
const FIFTH: f64 = 0.2;

/// Largest number of strips: more strips would be taller than the plot.
const MOST_STRIPS: usize = 6;

/// Number of worst messages that are marked with a number.
const WORST: usize = 10;

/// A trial with the columns of one metric and their positions in time.
struct View<'r> {
    chart: &'r Chart<'r>,
    trial: &'r TrialReport,
    condition: &'r ConditionReport,
    over: &'r OverTime,
    values: &'r ColumnValues,
    edges: Vec<f64>,
    y: Log,
}

/// Trials that are stored over time, with their conditions; the trial with the worst message is first.
pub(crate) fn trials<'r>(chart: &Chart<'r>) -> Vec<(&'r TrialReport, &'r ConditionReport)> {
    let followed = |t: &&TrialReport| t.over_time.as_ref().is_some_and(|o| o.slots > 0);
    let of = |t: &'r TrialReport| Some((t, *chart.measured.iter().find(|c| c.id == t.condition)?));
    let mut all: Vec<_> = chart.report.trials.iter().filter(followed).filter_map(of).collect();
    let late = |m: &Message| m.from_intended_ns.or(m.round_trip_ns);
    let worst = |c: &ConditionReport| c.worst.first().and_then(late);
    let is_worst = |t: &TrialReport, c: &ConditionReport| c.worst.first().is_some_and(|m| m.trial == t.id);
    all.sort_by_key(|(t, c)| std::cmp::Reverse((worst(c), is_worst(t, c))));
    all
}

/// Metrics for which the trial is stored over time.
pub(crate) fn metrics(trial: &TrialReport) -> Vec<Metric> {
    let intended = trial.over_time.as_ref().is_some_and(|o| o.from_intended.is_some());
    if intended { vec![Metric::RoundTrip, Metric::FromIntended] } else { vec![Metric::RoundTrip] }
}

/// Draws the chosen part of the trial. For the HTML page, a small picture of the whole trial is drawn below it. The
/// result is empty if no message was answered.
pub(crate) fn draw(chart: &Chart<'_>, trial: &TrialReport, condition: &ConditionReport) -> Vec<Canvas> {
    let Some(over) = &trial.over_time else { return Vec::new() };
    let values = match chart.metric {
        Metric::FromIntended => over.from_intended.as_ref().unwrap_or(&over.round_trip),
        _ => &over.round_trip,
    };
    let Some(high) = values.max_ns.iter().flatten().max() else { return Vec::new() };
    let low = values.min_ns.iter().flatten().filter(|v| **v > 0).min().copied().unwrap_or(1);
    let (low, high) = nice(low as f64, (*high).max(1) as f64);
    let y = Log { low, high, from: PLOT.bottom, to: PLOT.top };
    let edges = edges(over, condition.period_ns);
    let view = View { chart, trial, condition, over, values, edges, y };
    let mut drawn = vec![view.draw()];
    if drawn[0].is_page() {
        drawn.push(view.whole());
    }
    drawn
}

/// Begin of each column of the chart over time, in ns after slot 0, and the end of the last column.
pub(crate) fn edges(over: &OverTime, period_ns: Option<i64>) -> Vec<f64> {
    let per = over.slots_per_column.max(1);
    let warm = over.warm_up_slots.div_ceil(per);
    let columns = over.round_trip.max_ns.len() as u64;
    let slot = |i: u64| match i {
        i if i == columns => over.slots,
        i if i < warm => i * per,
        i => (over.warm_up_slots + (i - warm) * per).min(over.slots),
    };
    match period_ns {
        Some(period) => (0..=columns).map(|i| slot(i) as f64 * period as f64).collect(),
        None => {
            let begun: Vec<f64> = over.begin_ns.iter().map(|ns| *ns as f64).collect();
            let last = begun.last().copied().unwrap_or(0.0);
            let each = if columns > 1 { last / slot(columns - 1).max(1) as f64 } else { 1.0 };
            let end = last + each * (over.slots - slot(columns.saturating_sub(1))) as f64;
            begun.into_iter().chain([end]).collect()
        }
    }
}

/// The times of a trial in which a clock was stepped or not known to be in step, monotonic ns.
pub(crate) fn bad_times(report: &Report, trial: usize) -> impl Iterator<Item = (i64, i64)> + '_ {
    let stepped = report.clocks.iter().flat_map(|c| &c.invalid_windows);
    let stepped = stepped.filter(move |w| w.trial == trial).map(|w| (w.from_ns, w.to_ns));
    // The times of a history are comparable with the times of messages only if it counts messages.
    let histories = report.clock_history.iter().filter(move |of| of.trial == trial && of.messages.is_some());
    stepped.chain(histories.flat_map(|of| &of.windows).map(|w| (w.from_ns, w.to_ns)))
}

/// The incident to which a message belongs, if the report describes it.
fn incident_of<'a>(condition: &'a ConditionReport, message: &Message) -> Option<&'a IncidentReport> {
    let due = due(message);
    condition.incidents.iter().find(|i| i.trial == message.trial && (i.begin_ns..=i.end_ns).contains(&due))
}

fn due(message: &Message) -> i64 {
    message.intended_ns.or(message.send_begin_ns).unwrap_or(0)
}

/// Begin and end of an event or period, in ns after slot 0.
type Spans = Vec<(f64, f64)>;

impl View<'_> {
    fn end(&self) -> f64 {
        self.edges.last().copied().unwrap_or(1.0).max(1.0)
    }

    fn x(&self, ns: f64) -> f64 {
        PLOT.left + (PLOT.right - PLOT.left) * (ns / self.end()).clamp(0.0, 1.0)
    }

    fn t0(&self) -> i64 {
        self.trial.t0_ns.unwrap_or(0)
    }

    fn draw(&self) -> Canvas {
        let strips = self.strips();
        let height = PLOT.bottom + 44.0 + STRIP * strips.len() as f64;
        let label = format!("{} of trial {} over time", self.chart.words(), self.trial.id);
        let mut canvas = self.chart.canvas(height, label).plot(PLOT.left, PLOT.right);
        let pattern = "pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
                       patternTransform=\"rotate(45)\"";
        canvas.define(pattern, |c| c.rect("hatch", (0.0, 0.0), (2.0, 6.0)));
        let ticks = self.y.ticks(8);
        canvas.level("grid", ticks.iter().map(|t| self.y.at(*t)), (PLOT.left, PLOT.right));
        for tick in ticks {
            canvas.text("tick", (PLOT.left - 8.0, self.y.at(tick) + 4.0), &time(tick), Hold::End);
        }
        limits::level(&mut canvas, self.chart, &[self.condition], self.y, &PLOT);
        let hue = self.chart.hue(self.condition);
        let size = (PLOT.right - PLOT.left, height - 8.0);
        canvas.window("moves", (PLOT.left, 8.0), size, |canvas| {
            self.shades(canvas);
            canvas.open("own", hue, &[("condition", self.condition.id.to_string())]);
            self.bars(canvas);
            canvas.close();
            self.strip_bars(canvas, &strips);
            let lost = |(c, _): &(usize, u64)| {
                let at = self.x((self.edges[*c] + self.edges[*c + 1]) / 2.0);
                format!("M{},{}v8", n(at), PLOT.top - 15.0)
            };
            if !self.over.unanswered.is_empty() {
                canvas.path("gone-tick", &self.over.unanswered.iter().map(lost).collect::<String>());
            }
        });
        if !self.over.unanswered.is_empty() {
            canvas.text("tick", (PLOT.left - 8.0, PLOT.top - 9.0), "lost", Hold::End);
        }
        if self.over.warm_up_slots > 0 {
            canvas.text("quantile from-begin", (PLOT.left + 5.0, PLOT.top + 13.0), "warm-up", Hold::Start);
        }
        for (i, (name, _)) in strips.iter().enumerate() {
            let at = (PLOT.left, PLOT.bottom + 55.0 + STRIP * i as f64);
            canvas.text("quantile halo", at, name, Hold::Start);
        }
        self.axis(&mut canvas);
        canvas.only_page(&format!(
            "<g class=\"cursor\" tabindex=\"0\" role=\"slider\" aria-label=\"column\" aria-valuemin=\"0\" \
             aria-valuemax=\"{5}\" aria-valuenow=\"0\" aria-valuetext=\"\"><rect \
             class=\"pane\" x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\"/><line class=\"hit at\" x1=\"-9\" x2=\"-9\" \
             y1=\"{1}\" y2=\"{4}\"/></g>\n",
            PLOT.left,
            PLOT.top,
            PLOT.right - PLOT.left,
            PLOT.bottom - PLOT.top,
            PLOT.bottom,
            self.values.max_ns.len().saturating_sub(1)
        ));
        self.worst(&mut canvas);
        canvas
    }

    /// Draws the warm-up in grey, and hatches the periods in which a clock was stepped or not known to be in step.
    fn shades(&self, canvas: &mut Canvas) {
        let mut shade = |class: &str, from: f64, to: f64| {
            let (from, to) = (self.x(from), self.x(to));
            canvas.rect(class, (from, PLOT.top), ((to - from).max(1.0), PLOT.bottom - PLOT.top));
        };
        let warm = self.over.warm_up_slots.div_ceil(self.over.slots_per_column.max(1)) as usize;
        if warm > 0 {
            shade("warm-up", 0.0, self.edges.get(warm).copied().unwrap_or(0.0));
        }
        for (from_ns, to_ns) in bad_times(self.chart.report, self.trial.id) {
            shade("invalid-window", (from_ns - self.t0()) as f64, (to_ns - self.t0()) as f64);
        }
    }

    /// Draws a bar from the lowest to the highest message of each column, and the median of the column as a darker
    /// line.
    ///
    /// A column may be much narrower than a pixel. The shapes therefore have strokes that stay as wide as they are when
    /// the script stretches the shapes, so that each column is seen at every zoom.
    fn bars(&self, canvas: &mut Canvas) {
        let data = [
            ("trial", self.trial.id.to_string()),
            ("low", self.y.low.to_string()),
            ("high", self.y.high.to_string()),
            ("foot", n(PLOT.bottom)),
            ("head", n(PLOT.top)),
        ];
        // In the page a step is a whole column in most cases, and heights are fifths of a pixel: a page holds many.
        let column = (PLOT.right - PLOT.left) * self.over.slots_per_column as f64 / self.over.slots.max(1) as f64;
        let units = match canvas.is_page() {
            true => Units { left: PLOT.left, unit: (column, FIFTH), digits: (3, 0) },
            false => Units { left: 0.0, unit: (1.0, 1.0), digits: (2, 1) },
        };
        let columns = self.columns();
        let mut medians = Steps::new(units);
        for column in &columns {
            medians.begin((column.from, column.median));
            medians.level(column.to);
        }
        canvas.only_page("<g id=\"time-bars\">");
        canvas.path_in_units("span", &outlines(&columns, units), (units.left, units.unit), &data);
        canvas.only_page("</g>");
        canvas.path_in_units("middle", &medians.d, (units.left, units.unit), &[]);
    }

    /// Columns in which a message was answered, with their positions in the drawing.
    fn columns(&self) -> Vec<Column> {
        let y = |ns: i64| self.y.at(ns.max(1) as f64);
        let place = |(i, edge): (usize, &[f64])| {
            let value = |of: &[Option<i64>]| of.get(i).copied().flatten();
            let (low, median) = (value(&self.values.min_ns)?, value(&self.values.median_ns)?);
            let high = value(&self.values.max_ns)?;
            let (from, to) = (self.x(edge[0]), self.x(edge[1]));
            Some(Column { from, to, top: y(high), median: y(median), bottom: y(low) })
        };
        self.edges.windows(2).enumerate().filter_map(place).collect()
    }

    /// Draws the loads that ran during the trial, and the periods in which a thread of a late message was delayed.
    fn strips(&self) -> Vec<(String, Spans)> {
        let mut all: Vec<(String, Spans)> = Vec::new();
        for load in self.chart.report.loads.iter().filter(|l| l.trial == self.trial.id) {
            let Some(began) = load.began_after_ns else { continue };
            let part = load.part.as_ref().map_or(String::new(), |p| format!(" ({p})"));
            let name = format!("{}{part} at {}", load.run, load.at);
            let span = (began as f64, (began + load.ran_ns) as f64);
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, spans)) => spans.push(span),
                None => all.push((name, vec![span])),
            }
        }
        let of_trial = self.condition.incidents.iter().filter(|i| i.trial == self.trial.id);
        let spans: Spans = of_trial.map(|i| ((i.begin_ns - self.t0()) as f64, (i.end_ns - self.t0()) as f64)).collect();
        if !spans.is_empty() {
            all.push(("worst incidents".into(), spans));
        }
        all.truncate(MOST_STRIPS);
        all
    }

    fn strip_bars(&self, canvas: &mut Canvas, strips: &[(String, Spans)]) {
        for (i, (_, spans)) in strips.iter().enumerate() {
            let top = PLOT.bottom + 42.0 + STRIP * i as f64;
            for (from, to) in spans.iter().filter(|(from, to)| *to > 0.0 && *from < self.end()) {
                let (from, to) = (self.x(*from), self.x(*to));
                canvas.rect("strip", (from, top), ((to - from).max(1.5), 5.0));
            }
        }
    }

    fn value(&self, message: &Message) -> Option<i64> {
        if self.chart.metric == Metric::FromIntended { message.from_intended_ns } else { message.round_trip_ns }
    }

    /// Draws the axis of the whole trial; the script draws the ticks for a part of the trial.
    fn axis(&self, canvas: &mut Canvas) {
        canvas.line("axis", (PLOT.left, PLOT.bottom), (PLOT.right, PLOT.bottom));
        let unit = Unit::of(self.end());
        canvas.only_page("<g class=\"ticks\">");
        for tick in linear_ticks(self.end(), 8) {
            canvas.line("axis", (self.x(tick), PLOT.bottom), (self.x(tick), PLOT.bottom + 4.0));
            let words = unit.with(tick);
            let words = words.split(THIN).next().unwrap_or_default();
            let words = if words.contains('.') { words.trim_end_matches('0').trim_end_matches('.') } else { words };
            canvas.text("tick", (self.x(tick), PLOT.bottom + 17.0), words, Hold::Middle);
        }
        across(canvas, &Plot { bottom: PLOT.bottom - 2.0, ..PLOT }, &format!("{} after slot 0", unit.name()));
        canvas.only_page("</g>\n");
    }

    /// Draws the worst messages of the condition that belong to this trial, each with its number in the list of worst
    /// messages.
    fn worst(&self, canvas: &mut Canvas) {
        let data = [("condition", self.condition.id.to_string())];
        canvas.open("", 5, &data);
        for (message, i) in self.condition.worst.iter().take(WORST).zip(1..) {
            let (after, Some(ns)) = ((due(message) - self.t0()) as f64, self.value(message)) else { continue };
            if message.trial != self.trial.id || after < 0.0 || after > self.end() {
                continue;
            }
            let mut lines = vec![
                format!("{i}: slot {}, trial {}", count(message.slot), message.trial),
                format!("{} {}", self.chart.words(), time(ns as f64)),
            ];
            lines.extend(incident_of(self.condition, message).map(|i| i.text.clone()));
            let mark = Mark { lines, data: Vec::new() }
                .with("slot", message.slot)
                .with("trial", message.trial)
                .with("part", format!("{}_ns", self.chart.metric.key()))
                .with("value-ns", ns)
                .with("row", format!("worst-{}-{i}", self.condition.id));
            let (x, y) = (self.x(after), self.y.at(ns.max(1) as f64));
            canvas.mark(&mark, |c| {
                c.dot("gone", (x, y), 3.5);
                c.text("quantile halo", (x + 6.0, y - 5.0), &i.to_string(), Hold::Start);
            });
        }
        canvas.close();
    }

    /// Draws the whole trial below the plot; a reader chooses a range in it. The drawing has the same bars as the plot,
    /// less tall.
    fn whole(&self) -> Canvas {
        let mut canvas = self
            .chart
            .canvas(WHOLE, "The whole trial, and the range that is shown")
            .class("whole")
            .plot(PLOT.left, PLOT.right);
        canvas.text("tick", (PLOT.left - 8.0, 32.0), "whole", Hold::End);
        let scale = 48.0 / (PLOT.bottom - PLOT.top);
        let width = PLOT.right - PLOT.left;
        canvas.only_page(&format!(
            "<use class=\"span whole\" href=\"#time-bars\" transform=\"translate(0,{}) scale(1,{scale:.4})\"/>\n<rect \
             class=\"window\" x=\"{1}\" y=\"1\" width=\"{width}\" height=\"{2}\"/>\n<rect class=\"pane\" x=\"{1}\" y=\"0\" width=\"{width}\" \
             height=\"{WHOLE}\"/>\n",
            n(4.0 - PLOT.top * scale),
            PLOT.left,
            WHOLE - 2.0,
        ));
        canvas
    }
}
