//! The figures of flows over what the study varies: payload, number of subscribers, or rate.

use super::{FlowReport, Spread, growth};
use crate::condition::{ConditionReport, QuantileReport};
use crate::document::Report;

/// What can lie on the axis, in the order in which it is looked for; what the study names as its own comes first.
const FACTORS: [&str; 4] = ["payload", growth::FACTOR, "rate", growth::PUBLISHERS];

/// Figures over one factor, each with a scale of its own.
pub(crate) struct Axis {
    /// The factor on the horizontal axis.
    pub factor: String,
    /// One below the other.
    pub panels: Vec<Panel>,
}

/// One figure.
pub(crate) struct Panel {
    pub title: &'static str,
    pub unit: Unit,
    pub lines: Vec<Line>,
}

/// How its values are set.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Number,
    Time,
}

/// Conditions that differ in the factor alone.
pub(crate) struct Line {
    /// Their other levels.
    pub name: String,
    pub hue: usize,
    pub points: Vec<Point>,
    /// y grows as x to this power, and the standard error of it; from three numbers of subscribers on.
    pub growth: Option<(f64, f64)>,
}

/// One condition.
pub(crate) struct Point {
    pub x: f64,
    pub level: String,
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

type Value = fn(&FlowReport) -> Option<(f64, f64, f64)>;
const PANELS: [(&str, Unit, Value); 6] = [
    ("samples/s at the slowest subscriber", Unit::Number, |f| spread(f.samples_per_s)),
    ("payload at the slowest subscriber, Mbit/s", Unit::Number, |f| spread(f.payload_mbit_s)),
    ("until the last subscriber has a message, median", Unit::Time, |f| quantile(f, 0.5)),
    ("until the last subscriber has a message, p99", Unit::Time, |f| quantile(f, 0.99)),
    ("CPU time of the publisher per sample", Unit::Time, |f| spread(f.publisher_cpu_ns)),
    ("discovery of all ends", Unit::Time, |f| spread(f.discovery_ns)),
];

fn spread(of: Option<Spread>) -> Option<(f64, f64, f64)> {
    of.map(|s| (s.median, s.low, s.high))
}

fn quantile(flow: &FlowReport, q: f64) -> Option<(f64, f64, f64)> {
    match flow.slowest.as_ref()?.quantile(q)? {
        QuantileReport::Value { value_ns, low_ns, high_ns, .. } => {
            Some((*value_ns as f64, *low_ns as f64, high_ns.unwrap_or(*value_ns) as f64))
        }
        _ => None,
    }
}

/// The figures; `None` where the study varies none of the factors.
pub(crate) fn axis(report: &Report) -> Option<Axis> {
    let flows: Vec<(&ConditionReport, &FlowReport)> =
        report.conditions.iter().filter_map(|c| Some((c, c.flow.as_ref()?))).collect();
    let varied = |factor: &str| {
        let mut all: Vec<u64> = flows.iter().filter_map(|(c, f)| Some(place(factor, c, f)?.to_bits())).collect();
        all.sort_unstable();
        all.dedup();
        all.len() > 1
    };
    let own = FACTORS.into_iter().filter(|f| *f == report.view.x);
    let factor = own.chain(FACTORS).find(|f| varied(f))?;
    let factors = crate::summary::differing(report);
    let mut names: Vec<String> = Vec::new();
    let line_of: Vec<usize> = flows
        .iter()
        .map(|(condition, _)| {
            let others =
                factors.iter().filter(|f| *f != factor).filter_map(|f| Some(words(f, condition.levels.get(f)?)));
            let name = others.collect::<Vec<_>>().join(", ");
            names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        })
        .collect();
    // The payload in Mbit/s is samples/s in another unit where the payload stays the same.
    let redundant = |title: &str| title.starts_with("payload") && factor != "payload" && !varied("payload");
    // How long discovery takes hangs on the number of ends.
    let beside = |title: &str| title.starts_with("discovery") && factor != growth::FACTOR;
    let panels = PANELS.into_iter().filter(|(title, ..)| !redundant(title) && !beside(title)).filter_map(
        |(title, unit, value)| {
            let line = |hue: usize, name: &String| {
                let of = flows.iter().zip(&line_of).filter(|(_, line)| **line == hue);
                let point = |(c, f): &(&ConditionReport, &FlowReport)| {
                    let (value, low, high) = value(f).filter(|v| v.0 > 0.0)?;
                    let level = c.levels.get(factor).cloned().unwrap_or_default();
                    Some(Point { x: place(factor, c, f)?, level, value, low: low.max(f64::MIN_POSITIVE), high })
                };
                let mut points: Vec<Point> = of.filter_map(|(flow, _)| point(flow)).collect();
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                let pairs: Vec<(f64, f64)> = points.iter().map(|p| (p.x, p.value)).collect();
                let growth = growth::power(&pairs).filter(|_| factor == growth::FACTOR);
                Line { name: name.clone(), hue, points, growth }
            };
            let lines: Vec<Line> = names.iter().enumerate().map(|(hue, name)| line(hue, name)).collect();
            let lines: Vec<Line> = lines.into_iter().filter(|l| !l.points.is_empty()).collect();
            lines.iter().any(|l| l.points.len() > 1).then_some(Panel { title, unit, lines })
        },
    );
    let panels: Vec<Panel> = panels.collect();
    (!panels.is_empty()).then(|| Axis { factor: factor.to_owned(), panels })
}

/// A level; with the name of its factor where the bare word would tell nothing.
fn words(factor: &str, level: &str) -> String {
    let bare = ["driver", "payload", "rate", "path", "place"].contains(&factor);
    let name = factor.rsplit('.').next().unwrap_or(factor).replace('_', " ");
    if bare { level.to_owned() } else { format!("{name} {level}") }
}

/// Where a condition lies.
fn place(factor: &str, condition: &ConditionReport, flow: &FlowReport) -> Option<f64> {
    match factor {
        "payload" => Some(condition.payload_bytes as f64),
        "rate" => condition.period_ns.map(|p| 1e9 / p as f64),
        growth::PUBLISHERS => Some(f64::from(flow.publishers)),
        _ => Some(f64::from(flow.subscribers)),
    }
    .filter(|x| *x > 0.0)
}
