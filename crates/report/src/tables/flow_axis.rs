//! Data for the charts of flows over a factor that the study varies: payload, number of subscribers, rate, or number of
//! publishers.

use crate::tables::growth;
use tailbound_document::{ConditionReport, FlowReport, QuantileReport, Report, Spread};

/// Factors that can be on the horizontal axis, in the order of preference; the factor that the study names comes before
/// them.
const FACTORS: [&str; 4] = ["payload", growth::FACTOR, "rate", growth::PUBLISHERS];

/// Charts of flows over one factor. Each chart has a scale of its own.
pub(crate) struct Axis {
    /// Name of the factor on the horizontal axis of the charts.
    pub factor: String,
    /// The charts of flows over one factor, from top to bottom.
    pub panels: Vec<Panel>,
}

/// One chart of a quantity of flows over a factor.
pub(crate) struct Panel {
    pub title: &'static str,
    pub unit: Unit,
    pub lines: Vec<Line>,
}

/// Unit in which the values of a chart are formatted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Number,
    Time,
}

/// A line of a chart: conditions that differ only in the factor on the axis.
pub(crate) struct Line {
    /// Name of the line in the chart: the levels of its conditions in the other factors.
    pub name: String,
    pub hue: usize,
    pub points: Vec<Point>,
    /// Exponent of the power law through the points of the line, and its standard error; only with at least three
    /// numbers of subscribers.
    pub growth: Option<(f64, f64)>,
}

/// A point of a line in a chart: the position and the value of one condition.
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

/// Computes the data of the charts of flows over a factor; `None` if the study varies none of the possible factors.
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
    let factors = crate::tables::summary::differing(report);
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
    // If the payload does not vary, the payload in Mbit/s is the same figure as samples/s in another unit.
    let redundant = |title: &str| title.starts_with("payload") && factor != "payload" && !varied("payload");
    // The duration of discovery depends on the number of ends.
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

/// Words for a level of a factor, with the name of the factor if the level alone would not be clear.
fn words(factor: &str, level: &str) -> String {
    let bare = ["driver", "payload", "rate", "path", "place"].contains(&factor);
    let name = factor.rsplit('.').next().unwrap_or(factor).replace('_', " ");
    if bare { level.to_owned() } else { format!("{name} {level}") }
}

/// Position of a condition on the horizontal axis of a chart of flows.
fn place(factor: &str, condition: &ConditionReport, flow: &FlowReport) -> Option<f64> {
    match factor {
        "payload" => Some(condition.payload_bytes as f64),
        "rate" => condition.period_ns.map(|p| 1e9 / p as f64),
        growth::PUBLISHERS => Some(f64::from(flow.publishers)),
        _ => Some(f64::from(flow.subscribers)),
    }
    .filter(|x| *x > 0.0)
}
