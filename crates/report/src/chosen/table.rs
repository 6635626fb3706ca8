//! The chosen range, and counts above a limit, as columns of tables: for the terminal, for Markdown, for the page.

use super::{AboveCount, AboveReport, ChosenReport};
use crate::condition::{LegRange, MetricReport};
use crate::document::Report;
use crate::flow::FlowColumn;
use crate::legs;
use crate::number::{Unit, count, label, three_digits};
use crate::summary::{cell, shown};
use tailbound_model::{Metric, Nanos};

/// Metrics of the tables, where they are there.
const METRICS: [Metric; 6] =
    [Metric::RoundTrip, Metric::FromIntended, Metric::Out, Metric::OutNetwork, Metric::Back, Metric::BackNetwork];

/// A metric over the range, and over the whole.
#[derive(Clone, Copy)]
enum Of<'a> {
    Exact(&'a MetricReport),
    Leg(&'a LegRange),
}

impl Of<'_> {
    fn most(&self) -> &MetricReport {
        match self {
            Of::Exact(figures) => figures,
            Of::Leg(range) => &range.high,
        }
    }
}

/// The tables with their titles; none where no range and no limit was asked for.
pub(crate) fn tables(report: &Report) -> Vec<(String, Vec<FlowColumn>)> {
    chosen(report).into_iter().chain(above(report)).collect()
}

fn chosen(report: &Report) -> Option<(String, Vec<FlowColumn>)> {
    let all: Vec<Option<&ChosenReport>> = report.conditions.iter().map(|c| c.range.as_ref()).collect();
    let first = all.iter().flatten().next()?;
    let [messages, of] =
        [|c: &ChosenReport| c.messages, |c: &ChosenReport| c.of].map(|f| all.iter().flatten().map(|c| f(c)).sum());
    let title = format!(
        "chosen range: {} to {} of each trial, {} of {} messages; below each figure, the same over the whole",
        Nanos(first.from_ns),
        Nanos(first.to_ns),
        count(messages),
        count(of),
    );
    let mut columns = vec![FlowColumn {
        head: "messages".into(),
        unit: "",
        cells: all.iter().map(|c| c.map_or_else(Default::default, |c| (count(c.messages), count(c.of)))).collect(),
    }];
    for metric in METRICS {
        let in_range = |i: usize| {
            let of: &ChosenReport = all[i]?;
            let leg = || of.leg_ranges.get(metric.key()).map(Of::Leg);
            of.metrics.get(metric.key()).map(Of::Exact).or_else(leg)
        };
        let whole = |i: usize| {
            let of = &report.conditions[i];
            of.metric(metric).map(Of::Exact).or_else(|| of.range(metric).map(Of::Leg))
        };
        let mut add =
            |head: String, of: &dyn Fn(&MetricReport) -> Option<f64>, set: &dyn Fn(Of<'_>, Unit) -> String| {
                let values = (0..all.len()).filter_map(|i| of(in_range(i)?.most())).map(|ns| ns as i64);
                let Some(unit) = Unit::of_all(values) else { return };
                let text = |figures: Option<Of<'_>>| figures.map_or_else(String::new, |f| set(f, unit));
                let cell = |i: usize| match all[i] {
                    Some(_) => (text(in_range(i)), text(whole(i))),
                    None => Default::default(),
                };
                columns.push(FlowColumn { head, unit: unit.name(), cells: (0..all.len()).map(cell).collect() });
            };
        let key = metric.key();
        for q in shown(report) {
            let most = |m: &MetricReport| m.quantile(q)?.value_ns().map(|ns| ns as f64);
            let set = |of: Of<'_>, unit: Unit| match of {
                Of::Exact(figures) => figures.quantile(q).map_or_else(String::new, |e| cell(e, unit).value),
                Of::Leg(range) => legs::quantile(range, q, unit).0,
            };
            add(format!("{key} {}", label(q)), &most, &set);
        }
        let ends = |of: Of<'_>, unit: Unit, value: &dyn Fn(&MetricReport) -> Option<f64>| match of {
            Of::Exact(figures) => value(figures).map_or_else(String::new, |ns| unit.number(ns)),
            Of::Leg(LegRange { low, high }) => value(low)
                .zip(value(high))
                .map_or_else(String::new, |(low, high)| unit.range(low.floor() as i64, high.ceil() as i64)),
        };
        let max = |m: &MetricReport| m.max_ns.map(|ns| ns as f64);
        add(format!("{key} max"), &max, &|of, unit| ends(of, unit, &max));
        let mean = |m: &MetricReport| m.mean_ns;
        add(format!("{key} mean"), &mean, &|of, unit| ends(of, unit, &mean));
        // What a leg between two clocks scatters does not lie between what its least and its most do.
        let deviation = |m: &MetricReport| m.stddev_ns;
        add(format!("{key} st. dev."), &deviation, &|of, unit| match of {
            Of::Exact(figures) => figures.stddev_ns.map_or_else(String::new, |ns| unit.number(ns)),
            Of::Leg(_) => String::new(),
        });
    }
    columns.retain(|c| c.cells.iter().any(|(value, below)| !value.is_empty() || !below.is_empty()));
    Some((title, columns))
}

fn above(report: &Report) -> Option<(String, Vec<FlowColumn>)> {
    let limit = Nanos(report.conditions.iter().find_map(|c| c.above.as_ref())?.limit_ns);
    let range = report.conditions.iter().find_map(|c| c.range.as_ref());
    let title = match range {
        Some(c) => format!(
            "messages above {limit} in the chosen range, {} to {} of each trial, of those that have the figure: lost and never \
             sent are not among them; below, in the whole",
            Nanos(c.from_ns),
            Nanos(c.to_ns)
        ),
        None => {
            format!("messages above {limit}, of those that have the figure: lost and never sent are not among them")
        }
    };
    let told = |of: Option<&AboveReport>, metric: Metric| {
        let counted = |end: &str| of.and_then(|a| a.metrics.get(&format!("{}{end}", metric.key())));
        match (counted(""), counted("_low"), counted("_high")) {
            (Some(of), ..) => share(of),
            (_, Some(low), Some(high)) => format!("{} to {}", share(low), share(high)),
            _ => String::new(),
        }
    };
    let column = |metric: Metric| {
        let cell = |c: &crate::condition::ConditionReport| {
            let whole = told(c.above.as_ref(), metric);
            match &c.range {
                Some(chosen) => (told(chosen.above.as_ref(), metric), whole),
                None => (whole, String::new()),
            }
        };
        FlowColumn { head: metric.key().into(), unit: "", cells: report.conditions.iter().map(cell).collect() }
    };
    let columns: Vec<FlowColumn> = METRICS.into_iter().map(column).collect();
    let some = |c: &FlowColumn| c.cells.iter().any(|(value, below)| !value.is_empty() || !below.is_empty());
    Some((title, columns.into_iter().filter(some).collect()))
}

/// `12 (0.1 %)`.
fn share(of: &AboveCount) -> String {
    format!("{} ({} %)", count(of.messages), three_digits(100.0 * of.share))
}
