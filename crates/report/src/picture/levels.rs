//! Draws the round trips over time of each level of a factor, small and side by side, with the same axes.

use crate::picture::axis::{Log, linear_ticks, nice};
use crate::picture::canvas::{self, Canvas, Hold, Mark, Medium};
use crate::picture::series::Chart;
use crate::picture::steps::{Column, Steps, Units, outlines};
use crate::picture::time::{bad_times, edges, trials};
use crate::picture::{Plot, across};
use tailbound_document::number::{Unit, count, time};
use tailbound_document::{ConditionReport, OverTime, Report, TrialReport};
use tailbound_model::Metric;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 190.0;
const PLOT: Plot = Plot { left: 56.0, right: WIDTH - 10.0, top: 40.0, bottom: HEIGHT - 42.0 };
/// Height of the name of a group in a file, in SVG units.
const NAME_HEIGHT: f64 = 24.0;
/// Numbers of levels of a factor that are drawn side by side.
const LEVELS: std::ops::RangeInclusive<usize> = 2..=12;
/// Largest number of drawings of a page.
const MOST: usize = 48;
/// Largest number of columns of a drawing, one for each two units of its width.
const COLUMNS: usize = 120;

/// Conditions that differ in nothing but the factor, with the trial that is drawn of each.
pub(crate) struct Group<'r> {
    /// The other levels in which the conditions of a report differ; empty if they differ in nothing else.
    pub name: String,
    panels: Vec<Panel<'r>>,
}

struct Panel<'r> {
    level: &'r str,
    condition: &'r ConditionReport,
    trial: &'r TrialReport,
    over: &'r OverTime,
}

/// What is drawn side by side.
pub(crate) struct SideBySide<'r> {
    pub factor: String,
    pub groups: Vec<Group<'r>>,
    /// Number of groups that are not drawn, because there would be too many drawings.
    pub left_out: usize,
}

/// The drawings of a report: the factor of the axis, or the first one with 2 to 12 levels; `None` if there is no such factor, or fewer
/// than two of its levels have answered messages. Of each condition, the trial with its worst message is drawn.
pub(crate) fn side_by_side(report: &Report) -> Option<SideBySide<'_>> {
    let chart = Chart::new(report, Medium::Page, Metric::RoundTrip, &report.view.x);
    let trials = trials(&chart);
    let levels_of = |factor: &str| {
        let mut levels: Vec<&str> = Vec::new();
        for level in trials.iter().filter_map(|(_, c)| c.levels.get(factor)) {
            if !levels.contains(&level.as_str()) {
                levels.push(level);
            }
        }
        levels.len()
    };
    let fits = |factor: &&String| LEVELS.contains(&levels_of(factor));
    let by_axis = chart.varied.iter().filter(|factor| **factor == report.view.x);
    let factor = by_axis.chain(&chart.varied).find(fits)?.clone();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for condition in &chart.measured {
        let Some(panel) = panel(&trials, condition, &factor) else { continue };
        let others = chart.varied.iter().filter(|other| **other != factor);
        let name = others.filter_map(|other| Some(format!("{other} {}", condition.levels.get(other)?)));
        let name = name.collect::<Vec<_>>().join(", ");
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.panels.push(panel),
            None => groups.push(Group { name, panels: vec![panel] }),
        }
    }
    groups.retain(|group| group.panels.len() > 1);
    let mut drawn = 0;
    let all = groups.len();
    groups.retain(|group| {
        drawn += group.panels.len();
        drawn <= MOST
    });
    let left_out = all - groups.len();
    (!groups.is_empty()).then_some(SideBySide { factor, groups, left_out })
}

fn panel<'r>(
    trials: &[(&'r TrialReport, &'r ConditionReport)],
    condition: &ConditionReport,
    factor: &str,
) -> Option<Panel<'r>> {
    let (trial, condition) = trials.iter().find(|(_, of)| of.id == condition.id)?;
    let over = trial.over_time.as_ref().filter(|over| over.round_trip.max_ns.iter().any(Option::is_some))?;
    Some(Panel { level: condition.levels.get(factor)?, condition, trial, over })
}

/// Draws everything for a file: the name of each group, and its drawings in rows. The text is the title.
pub(crate) fn rows(report: &Report) -> Option<(String, Vec<Canvas>)> {
    let all = side_by_side(report)?;
    let mut drawn = Vec::new();
    for (group, drawings) in all.groups.iter().zip(draw(report, &all, Medium::Still)) {
        if !group.name.is_empty() {
            let mut name = Canvas::new(Medium::Still, NAME_HEIGHT, "");
            name.text("value strong", (16.0, 16.0), &group.name, Hold::Start);
            drawn.push(name);
        }
        let mut drawings = drawings.into_iter().peekable();
        while drawings.peek().is_some() {
            let mut row = Canvas::new(Medium::Still, HEIGHT, "");
            let places = (0..).map(|i| (f64::from(i) * WIDTH, 0.0));
            drawings.by_ref().take((canvas::WIDTH / WIDTH) as usize).zip(places).for_each(|(of, at)| row.put(of, at));
            drawn.push(row);
        }
    }
    let left_out =
        if all.left_out > 0 { format!("; {} more combinations", count(all.left_out as u64)) } else { String::new() };
    let title =
        format!("Round trips over time for each level of {}: the trial with the worst message{left_out}", all.factor);
    Some((title, drawn))
}

/// Draws the conditions of all groups, each drawing with the same axes.
pub(crate) fn draw(report: &Report, all: &SideBySide<'_>, medium: Medium) -> Vec<Vec<Canvas>> {
    let panels = || all.groups.iter().flat_map(|group| &group.panels);
    let values = |of: fn(&OverTime) -> &[Option<i64>]| panels().flat_map(move |panel| of(panel.over)).flatten();
    let high = values(|over| &over.round_trip.max_ns).max().copied().unwrap_or(1).max(1);
    let low = values(|over| &over.round_trip.min_ns).filter(|ns| **ns > 0).min().copied().unwrap_or(1);
    let (low, high) = nice(low as f64, high as f64);
    let y = Log { low, high, from: PLOT.bottom, to: PLOT.top };
    let end = |panel: &Panel| edges(panel.over, panel.condition.period_ns).last().copied().unwrap_or(1.0);
    let end_ns = panels().map(end).fold(1.0, f64::max);
    let of_group = |group: &Group| group.panels.iter().map(|panel| panel.draw(report, (end_ns, y), medium)).collect();
    all.groups.iter().map(of_group).collect()
}

/// Columns of a drawing: numbers of the first column of the document, and of the one after the last. Warm-up and measured slots have
/// columns of their own.
fn joined(columns: usize, warm_up: usize) -> Vec<(usize, usize)> {
    let step = columns.div_ceil(COLUMNS).max(1);
    let part = |from: usize, to: usize| (from..to).step_by(step).map(move |begin| (begin, (begin + step).min(to)));
    part(0, warm_up.min(columns)).chain(part(warm_up.min(columns), columns)).collect()
}

impl Panel<'_> {
    fn draw(&self, report: &Report, (end_ns, y): (f64, Log), medium: Medium) -> Canvas {
        let edges = edges(self.over, self.condition.period_ns);
        let x = |ns: f64| PLOT.left + (PLOT.right - PLOT.left) * (ns / end_ns).clamp(0.0, 1.0);
        let label = format!("Round trips of trial {} over time, {}", self.trial.id, self.condition.name);
        let mut canvas = Canvas::new(medium, HEIGHT, label).wide(WIDTH).of(self.condition.id);
        canvas.text("value strong", (PLOT.left, 15.0), &shortened(self.level), Hold::Start);
        canvas.text("quantile", (PLOT.left, 28.0), &self.figures(), Hold::Start);
        axes(&mut canvas, end_ns, y, &x);
        let warm_up = self.warm_up();
        if warm_up > 0 {
            let to = x(edges.get(warm_up).copied().unwrap_or(0.0));
            canvas.rect("warm-up", (PLOT.left, PLOT.top), ((to - PLOT.left).max(1.0), PLOT.bottom - PLOT.top));
        }
        canvas.open_fixed(0, self.condition);
        let columns = self.columns(warm_up, &edges, &x, y);
        let units = Units { left: 0.0, unit: (1.0, 1.0), digits: (1, 1) };
        let mut middle = Steps::new(units);
        for column in &columns {
            middle.begin((column.from, column.median));
            middle.level(column.to);
        }
        canvas.mark(&Mark { lines: vec![self.figures()], data: Vec::new() }, |canvas| {
            canvas.path("span", &outlines(&columns, units));
            canvas.path("middle", &middle.d);
        });
        canvas.close();
        self.hatch(&mut canvas, report, &x);
        let lost = |(column, _): &(usize, u64)| x((edges[*column] + edges[*column + 1]) / 2.0);
        let lost: String =
            self.over.unanswered.iter().map(|of| format!("M{:.1},{:.1}v5", lost(of), PLOT.top - 6.0)).collect();
        if !lost.is_empty() {
            canvas.path("gone-tick", &lost);
        }
        canvas
    }

    /// Number of columns of the warm-up.
    fn warm_up(&self) -> usize {
        self.over.warm_up_slots.div_ceil(self.over.slots_per_column.max(1)) as usize
    }

    /// The longest round trip of the trial after its warm-up, and the median of the condition, in words.
    fn figures(&self) -> String {
        let of = self.condition.round_trip.as_ref();
        let ns = |ns: Option<i64>| ns.map_or_else(|| "unknown".to_owned(), |ns| time(ns as f64));
        let most = self.over.round_trip.max_ns.iter().skip(self.warm_up()).flatten().max().copied();
        let median = of.and_then(|of| of.quantile(0.5)?.value_ns());
        let trial = format!("trial {}: max {}", self.trial.id, ns(most));
        match self.condition.used_trial_ids.len() {
            ..=1 => format!("{trial}, p50 {}", ns(median)),
            n => format!("{trial}; p50 of {} trials {}", count(n as u64), ns(median)),
        }
    }

    fn columns(&self, warm_up: usize, edges: &[f64], x: &impl Fn(f64) -> f64, y: Log) -> Vec<Column> {
        let values = &self.over.round_trip;
        let at = |ns: i64| y.at(ns.max(1) as f64);
        let place = |(from, to): (usize, usize)| {
            let of =
                |all: &[Option<i64>]| all.get(from..to).unwrap_or(&[]).iter().flatten().copied().collect::<Vec<_>>();
            let mut medians = of(&values.median_ns);
            medians.sort_unstable();
            let median = *medians.get(medians.len().saturating_sub(1) / 2)?;
            let (low, high) = (of(&values.min_ns).into_iter().min()?, of(&values.max_ns).into_iter().max()?);
            let (left, right) = (x(*edges.get(from)?), x(*edges.get(to)?));
            Some(Column { from: left, to: right, top: at(high), median: at(median), bottom: at(low) })
        };
        joined(values.max_ns.len(), warm_up).into_iter().filter_map(place).collect()
    }

    /// Hatches the times in which a clock was stepped or not known to be in step.
    fn hatch(&self, canvas: &mut Canvas, report: &Report, x: &impl Fn(f64) -> f64) {
        let bad: Vec<(i64, i64)> = bad_times(report, self.trial.id).collect();
        let id = format!("hatch-level-{}", self.condition.id);
        if !bad.is_empty() {
            canvas.define_hatch(&id);
        }
        let t0_ns = self.trial.t0_ns.unwrap_or(0);
        for (from_ns, to_ns) in bad {
            let (from, to) = (x((from_ns - t0_ns) as f64), x((to_ns - t0_ns) as f64));
            canvas.hatched(&id, (from, PLOT.top), ((to - from).max(1.0), PLOT.bottom - PLOT.top));
        }
    }
}

fn axes(canvas: &mut Canvas, end_ns: f64, y: Log, x: &impl Fn(f64) -> f64) {
    let ticks = y.ticks(5);
    canvas.level("grid", ticks.iter().map(|tick| y.at(*tick)), (PLOT.left, PLOT.right));
    for tick in ticks {
        canvas.text("tick", (PLOT.left - 6.0, y.at(tick) + 4.0), &time(tick), Hold::End);
    }
    canvas.line("axis", (PLOT.left, PLOT.bottom), (PLOT.right, PLOT.bottom));
    let unit = Unit::of(end_ns);
    for tick in linear_ticks(end_ns, 4) {
        canvas.line("axis", (x(tick), PLOT.bottom), (x(tick), PLOT.bottom + 4.0));
        canvas.text("tick", (x(tick), PLOT.bottom + 17.0), &unit.with(tick), Hold::Middle);
    }
    across(canvas, &Plot { bottom: PLOT.bottom - 2.0, ..PLOT }, "time after slot 0");
}

/// The name of a level, as far as there is room for it.
fn shortened(level: &str) -> String {
    const ROOM: usize = 34;
    match level.chars().count() {
        ..=ROOM => level.to_owned(),
        _ => level.chars().take(ROOM - 1).chain(['\u{2026}']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_columns_contain_every_column_once_and_no_warm_up_with_measured_slots() {
        for (columns, warm_up) in [(0, 0), (1, 0), (119, 7), (8_000, 0), (8_000, 333), (500, 500), (500, 900)] {
            let all = joined(columns, warm_up);
            let numbers: Vec<usize> = all.iter().flat_map(|(from, to)| *from..*to).collect();
            assert_eq!(numbers, (0..columns).collect::<Vec<_>>());
            assert!(all.iter().all(|(from, to)| *to <= warm_up || *from >= warm_up), "{columns} {warm_up}");
            assert!(all.len() <= COLUMNS + 1, "{columns} {warm_up}: {}", all.len());
        }
    }
}
