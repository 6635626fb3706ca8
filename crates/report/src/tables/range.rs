//! Tables of the figures over the part of each trial that the study chose, and of the number of messages whose latency
//! is above a limit, for the terminal, for Markdown and for the HTML page.

use crate::tables::legs;
use crate::tables::summary::{cell, shown};
use crate::tables::value_column::ValueColumn;
use tailbound_document::number::{Unit, count, label, three_digits};
use tailbound_document::{AboveCount, AboveReport, ChosenReport, LegRange, MetricReport, Report};
use tailbound_model::{Metric, Nanos};

/// Metrics that the tables about the chosen range contain, if the report has them.
const METRICS: [Metric; 6] =
    [Metric::RoundTrip, Metric::FromIntended, Metric::Out, Metric::OutNetwork, Metric::Back, Metric::BackNetwork];

/// Figures of a metric: exact figures, or a range if the timestamps come from two clocks.
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

/// Makes the tables about the chosen range and the limit, with their titles; empty if the study sets neither a range
/// nor a limit.
pub(crate) fn tables(report: &Report) -> Vec<(String, Vec<ValueColumn>)> {
    chosen(report).into_iter().chain(above(report)).collect()
}

fn chosen(report: &Report) -> Option<(String, Vec<ValueColumn>)> {
    let all: Vec<Option<&ChosenReport>> = report.conditions.iter().map(|c| c.range.as_ref()).collect();
    let first = all.iter().flatten().next()?;
    let [messages, of] =
        [|c: &ChosenReport| c.messages, |c: &ChosenReport| c.of].map(|f| all.iter().flatten().map(|c| f(c)).sum());
    let title = format!(
        "chosen range: {} to {} of each trial, {} of {} messages; below each figure, the figure over the whole trials",
        Nanos(first.from_ns),
        Nanos(first.to_ns),
        count(messages),
        count(of),
    );
    let mut columns = vec![ValueColumn {
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
                columns.push(ValueColumn { head, unit: unit.name(), cells: (0..all.len()).map(cell).collect() });
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
        // The standard deviation of a leg between two clocks does not lie between the standard deviations of its
        // minimum and maximum.
        let deviation = |m: &MetricReport| m.stddev_ns;
        add(format!("{key} st. dev."), &deviation, &|of, unit| match of {
            Of::Exact(figures) => figures.stddev_ns.map_or_else(String::new, |ns| unit.number(ns)),
            Of::Leg(_) => String::new(),
        });
    }
    columns.retain(|c| c.cells.iter().any(|(value, below)| !value.is_empty() || !below.is_empty()));
    Some((title, columns))
}

fn above(report: &Report) -> Option<(String, Vec<ValueColumn>)> {
    let limit = Nanos(report.conditions.iter().find_map(|c| c.above.as_ref())?.limit_ns);
    let range = report.conditions.iter().find_map(|c| c.range.as_ref());
    let title = match range {
        Some(c) => format!(
            "messages above {limit} in the chosen range, {} to {} of each trial, of the messages that have the figure \
                (lost messages, and messages that were not sent, have none); below, in the whole trials",
            Nanos(c.from_ns),
            Nanos(c.to_ns)
        ),
        None => {
            format!(
                "messages above {limit}, of the messages that have the figure (lost messages, and messages that were not sent, have \
                none)"
            )
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
        let cell = |c: &tailbound_document::ConditionReport| {
            let whole = told(c.above.as_ref(), metric);
            match &c.range {
                Some(chosen) => (told(chosen.above.as_ref(), metric), whole),
                None => (whole, String::new()),
            }
        };
        ValueColumn { head: metric.key().into(), unit: "", cells: report.conditions.iter().map(cell).collect() }
    };
    let columns: Vec<ValueColumn> = METRICS.into_iter().map(column).collect();
    let some = |c: &ValueColumn| c.cells.iter().any(|(value, below)| !value.is_empty() || !below.is_empty());
    Some((title, columns.into_iter().filter(some).collect()))
}

/// Formats a count with its share, for example `12 (0.1 %)`.
fn share(of: &AboveCount) -> String {
    format!("{} ({} %)", count(of.messages), three_digits(100.0 * of.share))
}
