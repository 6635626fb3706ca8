//! Figures of flows as columns of tables for the terminal, for Markdown and for the HTML page.

use crate::tables::summary::cell;
use crate::tables::value_column::ValueColumn;
use crate::tables::writer;
use tailbound_document::number::{Unit, count, label, three_digits};
use tailbound_document::{FlowReport, MetricReport, Report, Spread};

/// Title of the table with the counts and rates of flows.
const COUNTS: &str = "flow: samples and payload at the slowest subscriber, losses of all subscribers; second line: \
    the lowest and the highest value of the trials, and the number of datagrams for each message";

const LATENCIES: &str = "fan-out: time from sending a message until the fastest subscriber, and until the last \
    subscriber, had received it, with 95 % intervals";

/// The tables about flows with their titles; empty if there is no flow.
pub(crate) fn tables(report: &Report) -> Vec<(&'static str, Vec<ValueColumn>)> {
    let all = [(COUNTS, columns(report)), (LATENCIES, latencies(report)), (writer::TITLE, writer::columns(report))];
    all.into_iter().filter(|(_, columns)| !columns.is_empty()).collect()
}

/// True if the report has flows and no round trips.
pub(crate) fn is_all(report: &Report) -> bool {
    let mut conditions = report.conditions.iter();
    report.conditions.iter().any(|c| c.flow.is_some()) && conditions.all(|c| c.round_trip.is_none())
}

/// Columns of counts and rates of flows; empty if there is no flow.
fn columns(report: &Report) -> Vec<ValueColumn> {
    let flows: Vec<Option<&FlowReport>> = report.conditions.iter().map(|c| c.flow.as_ref()).collect();
    if flows.iter().all(Option::is_none) {
        return Vec::new();
    }
    let mut columns = Vec::new();
    let mut plain = |head: &str, unit, text: &dyn Fn(&FlowReport) -> (String, String)| {
        let cells: Vec<(String, String)> = flows.iter().map(|f| f.map_or_else(Default::default, text)).collect();
        if cells.iter().any(|c| !c.0.is_empty()) {
            columns.push(ValueColumn { head: head.into(), unit, cells });
        }
    };
    let rate = |s: Option<Spread>| spread(s, three_digits);
    plain("samples/s", "", &|f| rate(f.samples_per_s));
    plain("payload", "Mbit/s", &|f| rate(f.payload_mbit_s));
    plain("wire", "Mbit/s", &|f| rate(f.wire_mbit_s));
    plain("sent", "", &|f| (count(f.sent), String::new()));
    plain("lost", "", &|f| (count(f.lost), String::new()));
    let some = |value: fn(&FlowReport) -> u64| flows.iter().flatten().any(|f| value(f) > 0);
    if some(|f| f.out_of_order) {
        plain("out of order", "", &|f| (count(f.out_of_order), String::new()));
    }
    if some(|f| f.duplicates) {
        plain("duplicates", "", &|f| (count(f.duplicates), String::new()));
    }
    let cast = |f: &FlowReport| {
        let cast = f.trials.iter().find_map(|t| t.cast.as_ref())?;
        let same = f.trials.iter().filter_map(|t| t.cast.as_ref()).all(|c| c.way == cast.way);
        let way = if same { cast.way.as_str() } else { "mixed" };
        Some((way.to_owned(), three_digits(cast.to_groups + cast.to_single)))
    };
    plain("datagrams", "", &|f| cast(f).unwrap_or_default());
    plain("slow calls", "%", &|f| spread(f.slow_calls_share, |v| three_digits(100.0 * v)));
    plain("CPU send", "ns", &|f| rate(f.publisher_cpu_ns));
    plain("CPU receive", "ns", &|f| rate(f.subscriber_cpu_ns));
    let discovery = flows.iter().flatten().filter_map(|f| f.discovery_ns).map(|s| s.median as i64);
    if let Some(unit) = Unit::of_all(discovery) {
        plain("discovery", unit.name(), &|f| spread(f.discovery_ns, |v| unit.number(v)));
    }
    plain("controller", "% CPU", &|f| spread(f.controller_share, |v| three_digits(100.0 * v)));
    columns
}

/// Formats the median over trials and, if trials differ, the minimum and maximum.
fn spread(spread: Option<Spread>, set: impl Fn(f64) -> String) -> (String, String) {
    let Some(s) = spread else { return Default::default() };
    let (low, high) = (set(s.low), set(s.high));
    (set(s.median), if low == high { String::new() } else { format!("{low}-{high}") })
}

/// Columns of the latency of a flow's messages: at the fastest subscriber, and until the last subscriber has received a
/// message.
fn latencies(report: &Report) -> Vec<ValueColumn> {
    let flows: Vec<Option<&FlowReport>> = report.conditions.iter().map(|c| c.flow.as_ref()).collect();
    let mut columns = Vec::new();
    let mut metric = |name: &str, of: &dyn Fn(&FlowReport) -> Option<&MetricReport>, quantiles: &[f64]| {
        let figures: Vec<Option<&MetricReport>> = flows.iter().map(|f| f.and_then(of)).collect();
        for &q in quantiles {
            let found: Vec<_> = figures.iter().map(|m| m.and_then(|m| m.quantile(q))).collect();
            let Some(unit) = Unit::of_all(found.iter().flatten().filter_map(|f| f.value_ns())) else { continue };
            let set = |f: &Option<_>| f.map_or(Default::default(), |f| cell(f, unit));
            let cells = found.iter().map(set).map(|c| (c.value, c.interval)).collect();
            columns.push(ValueColumn { head: format!("{name} {}", label(q)), unit: unit.name(), cells });
        }
        let Some(unit) = Unit::of_all(figures.iter().flatten().filter_map(|m| m.max_ns)) else { return };
        let most = |m: &Option<&MetricReport>| m.and_then(|m| m.max_ns).map(|v| unit.number(v as f64));
        let cells = figures.iter().map(|m| (most(m).unwrap_or_default(), String::new())).collect();
        columns.push(ValueColumn { head: format!("{name} max"), unit: unit.name(), cells });
    };
    metric("fastest", &fastest, &[0.5]);
    metric("last", &|f| f.slowest.as_ref(), &[0.5, 0.99, 0.999]);
    metric("last from due", &|f| f.slowest_from_intended.as_ref(), &[0.99]);
    columns
}

/// Figures of the subscriber with the smallest median; `None` if there is only one subscriber.
fn fastest(flow: &FlowReport) -> Option<&MetricReport> {
    let median = |m: &&MetricReport| m.quantile(0.5).and_then(|q| q.value_ns()).unwrap_or(i64::MAX);
    flow.one_way.iter().map(|s| &s.figures).min_by_key(median).filter(|_| flow.one_way.len() > 1)
}
