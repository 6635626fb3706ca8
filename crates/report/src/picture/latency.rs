//! Chart of the latency over a factor: median with its interval, p99 as a thin line, maximum as a hollow triangle.

use crate::picture::axis::Log;
use crate::picture::canvas::{Canvas, Hold};
use crate::picture::names::Name;
use crate::picture::reading::{cut, of_max, of_quantile};
use crate::picture::series::{Chart, Group, Series, x_value};
use crate::picture::{Plot, across, limits};
use tailbound_document::number::{THIN, count, label, time};
use tailbound_document::{ConditionReport, QuantileReport};

const WIDTH: f64 = crate::picture::canvas::WIDTH;

const QUANTILES: [(f64, &str, f64); 2] = [(0.5, "line", 4.0), (0.99, "line thin", 2.5)];

/// Makes one drawing for each panel; returns no drawing if no message has a value.
pub(crate) fn draw(chart: &Chart<'_>) -> Vec<Canvas> {
    let Some(domain) = chart.whole_axis() else { return Vec::new() };
    chart.groups().iter().map(|group| panel(chart, group, domain)).collect()
}

fn panel(chart: &Chart<'_>, group: &Group<'_>, (low, high): (f64, f64)) -> Canvas {
    let height = if group.title.is_empty() { 400.0 } else { 330.0 };
    let longest = group.series.iter().map(|s| s.name.chars().count()).max().unwrap_or(0) as f64 + 4.0;
    let lossy = group.series.iter().flat_map(|s| &s.conditions).any(|c| beyond(chart, c).is_some());
    let top = if group.title.is_empty() { 14.0 } else { 34.0 } + if lossy { 26.0 } else { 0.0 };
    let right = WIDTH - (32.0 + 7.6 * longest).min(240.0);
    let plot = Plot { left: 64.0, right, top, bottom: height - 44.0 };
    let name = format!("{} against {} {}", chart.words(), chart.x, group.title);
    let mut canvas = chart.canvas(height, name.trim()).plot(plot.left, plot.right);
    let y = Log { low, high, from: plot.bottom, to: plot.top };
    canvas.text("strong", (plot.left, 16.0), &group.title, Hold::Start);
    for tick in y.ticks(11) {
        canvas.line(crate::picture::strength(tick), (plot.left, y.at(tick)), (plot.right, y.at(tick)));
        canvas.text("tick", (plot.left - 8.0, y.at(tick) + 4.0), &time(tick), Hold::End);
    }
    let x = places(chart, group, &plot);
    axis(&mut canvas, chart, &x, &plot);
    let shown: Vec<&ConditionReport> = group.series.iter().flat_map(|s| s.conditions.iter().copied()).collect();
    limits::level(&mut canvas, chart, &shown, y, &plot);
    let known: Vec<Known<'_>> = group.series.iter().map(|s| Known::of(chart, s, &x)).collect();
    known.iter().for_each(|k| k.bands(&mut canvas, y));
    known.iter().for_each(|k| k.lines(&mut canvas, y));
    known.iter().for_each(|k| k.marks(&mut canvas, chart, y));
    mtu(&mut canvas, chart, &x, &plot);
    if lossy {
        lost(&mut canvas, chart, group, &x, &plot);
    }
    let names = known.iter().flat_map(|k| k.names(y)).collect();
    set_names(&mut canvas, names, x.scale.is_some(), &plot);
    canvas
}

/// The lowest quantile of the chart without a value for this condition: so many messages were lost that the quantile is
/// later than every answer.
fn beyond<'c>(chart: &Chart<'_>, condition: &'c ConditionReport) -> Option<&'c QuantileReport> {
    let quantiles = &condition.metric(chart.metric)?.quantiles;
    let shown = |q: &&QuantileReport| QUANTILES.iter().any(|(shown, ..)| (q.q() - shown).abs() < 5e-16);
    quantiles.iter().find(|q| matches!(q, QuantileReport::Beyond { .. }) && shown(q))
}

/// Positions of the conditions on the horizontal axis.
struct Places {
    /// Sorts levels into two kinds: levels that are numbers have positions on a logarithmic axis; other levels are
    /// drawn side by side, and no line connects them.
    scale: Option<Log>,
    at: Vec<(usize, f64)>,
    ticks: Vec<(String, f64)>,
}

impl Places {
    fn of(&self, condition: &ConditionReport) -> f64 {
        self.at.iter().find(|(id, _)| *id == condition.id).map_or(0.0, |(_, at)| *at)
    }
}

fn places(chart: &Chart<'_>, group: &Group<'_>, plot: &Plot) -> Places {
    let level = |c: &ConditionReport| c.levels.get(&chart.x).cloned().unwrap_or_default();
    let mut levels: Vec<String> = Vec::new();
    for one in chart.measured.iter().map(|c| level(c)) {
        if !levels.contains(&one) {
            levels.push(one);
        }
    }
    let values: Option<Vec<f64>> = chart.measured.iter().map(|c| x_value(c, &chart.x)).collect();
    let ends = values.map(|v| v.into_iter().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v))));
    let scale = ends.filter(|(low, high)| low < high).map(|(low, high)| Log {
        low,
        high,
        from: plot.left + 16.0,
        to: plot.right - 16.0,
    });
    let step = (plot.right - plot.left) / levels.len().max(1) as f64;
    let middle = |name: &str| {
        let place = levels.iter().position(|l| l == name).unwrap_or(0) as f64;
        plot.left + step * (place + 0.5)
    };
    let at = |c: &ConditionReport| match scale {
        Some(scale) => scale.at(x_value(c, &chart.x).unwrap_or(scale.low)),
        None => {
            let series =
                group.series.iter().position(|s| s.conditions.iter().any(|k| k.id == c.id)).unwrap_or(0) as f64;
            let others = group.series.len() as f64;
            middle(&level(c)) + (series - (others - 1.0) / 2.0) * (step / (others + 1.0)).min(18.0)
        }
    };
    let tick = |name: &String| {
        let first = chart.measured.iter().find(|c| level(c) == *name);
        (name.clone(), if scale.is_some() { first.map_or(0.0, |c| at(c)) } else { middle(name) })
    };
    let mut ticks: Vec<(String, f64)> = levels.iter().map(tick).collect();
    ticks.sort_by(|a, b| a.1.total_cmp(&b.1));
    Places { scale, at: chart.measured.iter().map(|c| (c.id, at(c))).collect(), ticks }
}

fn axis(canvas: &mut Canvas, chart: &Chart<'_>, x: &Places, plot: &Plot) {
    canvas.line("axis", (plot.left, plot.bottom), (plot.right, plot.bottom));
    let mut free = f64::NEG_INFINITY;
    for (level, at) in &x.ticks {
        canvas.line("axis", (*at, plot.bottom), (*at, plot.bottom + 4.0));
        // A level whose name would lie over the one before it goes without.
        let half = level.chars().count() as f64 * 3.4 + 4.0;
        if at - half >= free {
            free = at + half;
            let words = level.replacen(' ', &THIN.to_string(), 1);
            canvas.text("tick", (*at, plot.bottom + 18.0), &words, Hold::Middle);
        }
    }
    across(canvas, plot, &chart.x);
}

/// One line of the chart: for each condition the position, and the value with its interval.
struct Known<'s> {
    series: &'s Series<'s>,
    joins: bool,
    places: Vec<(&'s ConditionReport, f64, i64)>,
    quantiles: Vec<Vec<(&'s ConditionReport, f64, [i64; 3])>>,
}

impl<'s> Known<'s> {
    fn of(chart: &Chart<'_>, series: &'s Series<'s>, x: &Places) -> Known<'s> {
        let figures = |c: &'s ConditionReport| c.metric(chart.metric).filter(|m| m.n > 0);
        let maximum = |c: &&'s ConditionReport| Some((*c, x.of(c), figures(c)?.max_ns?));
        let value = |c: &&'s ConditionReport, q: f64| match figures(c)?.quantile(q)? {
            QuantileReport::Value { value_ns, low_ns, high_ns, .. } => {
                Some((*c, x.of(c), [*low_ns, *value_ns, high_ns.unwrap_or(*value_ns)]))
            }
            _ => None,
        };
        let of = |q: f64| series.conditions.iter().filter_map(move |c| value(c, q)).collect();
        Known {
            series,
            joins: x.scale.is_some(),
            places: series.conditions.iter().filter_map(maximum).collect(),
            quantiles: QUANTILES.iter().map(|(q, ..)| of(*q)).collect(),
        }
    }

    fn bands(&self, canvas: &mut Canvas, y: Log) {
        canvas.open("", self.series.hue, &[]);
        let side = |of: usize| -> Vec<(f64, f64)> {
            self.quantiles[0].iter().map(|(_, x, v)| (*x, y.at(v[of] as f64))).collect()
        };
        let ids: Vec<usize> = self.quantiles[0].iter().map(|(c, ..)| c.id).collect();
        if self.joins {
            canvas.band_of("band", &side(2), &side(0), &ids);
            let maxima: Vec<(f64, f64)> = self.places.iter().map(|(_, x, v)| (*x, y.at(*v as f64))).collect();
            canvas.line_of("line dotted", &maxima, &self.places.iter().map(|(c, ..)| c.id).collect::<Vec<_>>());
        }
        canvas.close();
    }

    fn lines(&self, canvas: &mut Canvas, y: Log) {
        canvas.open("", self.series.hue, &[]);
        for (known, (_, class, _)) in self.quantiles.iter().zip(QUANTILES).filter(|_| self.joins) {
            let points: Vec<(f64, f64)> = known.iter().map(|(_, x, v)| (*x, y.at(v[1] as f64))).collect();
            canvas.line_of(class, &points, &known.iter().map(|(c, ..)| c.id).collect::<Vec<_>>());
        }
        canvas.close();
    }

    fn marks(&self, canvas: &mut Canvas, chart: &Chart<'_>, y: Log) {
        for (c, at, max) in &self.places {
            let Some(figures) = c.metric(chart.metric) else { continue };
            canvas.open_condition(self.series.hue, c);
            for (known, (q, _, radius)) in self.quantiles.iter().zip(QUANTILES) {
                let Some((_, _, v)) = known.iter().find(|k| k.0.id == c.id) else { continue };
                canvas.line("whisker", (*at, y.at(v[0] as f64)), (*at, y.at(v[2] as f64)));
                let Some(quantile) = figures.quantile(q) else { continue };
                let mark = of_quantile(chart.words(), quantile, figures);
                canvas.mark(&mark, |c| c.dot("", (*at, y.at(v[1] as f64)), radius));
            }
            let mark = of_max(chart.words(), *max, figures);
            canvas.mark(&mark, |c| c.triangle((*at, y.at(*max as f64))));
            canvas.close();
        }
    }

    /// Writes the names of the lines beside the ends of the lines.
    fn names(&self, y: Log) -> Vec<Name> {
        let conditions: Vec<usize> = self.series.conditions.iter().map(|c| c.id).collect();
        let name = |x: f64, ns: i64, what: &str, class| Name {
            end: (x, y.at(ns as f64)),
            words: format!("{} {what}", cut(&self.series.name, 26)).trim().to_owned(),
            class,
            hue: self.series.hue,
            conditions: conditions.clone(),
        };
        let quantile = |(known, (q, ..)): (&Vec<(_, f64, [i64; 3])>, (f64, _, _))| {
            let class = if q == 0.5 { "strong" } else { "" };
            known.last().map(|(_, x, v)| name(*x, v[1], &label(q), class))
        };
        let quantiles = self.quantiles.iter().zip(QUANTILES).filter_map(quantile);
        quantiles.chain(self.places.last().map(|(_, x, max)| name(*x, *max, "max", ""))).collect()
    }
}

/// Writes the names of lines beside the plot. If the stroke that connects a name with its line would look like a part
/// of the line, the name is written inside the plot.
fn set_names(canvas: &mut Canvas, names: Vec<Name>, joins: bool, plot: &Plot) {
    let last = names.iter().map(|n| n.end.0).fold(0.0, f64::max);
    let (early, late): (Vec<Name>, Vec<Name>) = names.into_iter().partition(|n| joins && n.end.0 < last - 20.0);
    for name in early {
        canvas.open("own-place", name.hue, &name.data());
        canvas.text("end halo", (name.end.0 + 9.0, name.end.1 + 4.0), &name.words, Hold::Start);
        canvas.close();
    }
    let at = if joins { plot.right + 10.0 } else { last + 26.0 };
    canvas.names(at, 14.0, (plot.top + 4.0, plot.bottom), late);
}

/// Marks quantiles that are later than every answer above the plot, where the axis has no values.
fn lost(canvas: &mut Canvas, chart: &Chart<'_>, group: &Group<'_>, x: &Places, plot: &Plot) {
    let y = plot.top - 18.0;
    let all = || group.series.iter().flat_map(|s| &s.conditions).filter_map(|c| beyond(chart, c));
    let unsent =
        |q: &QuantileReport| matches!(q, QuantileReport::Beyond { beyond, .. } if beyond.words() == "not sent");
    let name = if all().all(unsent) { "not sent" } else { "lost" };
    canvas.text("tick", (plot.left - 8.0, y + 4.0), name, Hold::End);
    let mut labels: Vec<(f64, f64, String)> = Vec::new();
    for (i, series) in group.series.iter().enumerate() {
        let shift = (i as f64 - (group.series.len() as f64 - 1.0) / 2.0) * 9.0;
        for c in &series.conditions {
            let (Some(quantile), Some(figures)) = (beyond(chart, c), c.metric(chart.metric)) else { continue };
            canvas.open_condition(series.hue, c);
            let mark = of_quantile(chart.words(), quantile, figures);
            canvas.mark(&mark, |canvas| canvas.dot("gone", (x.of(c) + shift, y), 3.5));
            canvas.close();
            // Of several at one place the last is named: there is room beside it alone.
            labels.retain(|l| l.0 != x.of(c));
            labels.push((x.of(c), x.of(c) + shift + 8.0, label(quantile.q())));
        }
    }
    for (_, at, words) in labels {
        canvas.text("quantile", (at, y + 4.0), &words, Hold::Start);
    }
}

fn mtu(canvas: &mut Canvas, chart: &Chart<'_>, x: &Places, plot: &Plot) {
    let Some(scale) = x.scale.filter(|_| chart.x == "payload") else { return };
    let mut all: Vec<u32> = chart.measured.iter().filter_map(|c| c.mtu_bytes).collect();
    all.sort_unstable();
    all.dedup();
    for mtu in all {
        let at = scale.at(f64::from(mtu));
        if at > plot.left && at < plot.right {
            canvas.line("mtu", (at, plot.top), (at, plot.bottom));
            let words = format!("MTU {}{THIN}B", count(u64::from(mtu)));
            canvas.text("tick halo", (at + 5.0, plot.bottom - 7.0), &words, Hold::Start);
        }
    }
}
