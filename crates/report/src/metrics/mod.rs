//! Metrics for monitoring systems: what a budget decided, and what was seen on the wire.
//!
//! Both documents become a list of [`Metric`]s; each format writes such a list. Names follow the conventions of Prometheus
//! (https://prometheus.io/docs/practices/naming): base units, and `_total` for what only grows.

mod budget;
mod otlp;
mod prometheus;
mod watch;

use tailbound_document::{BudgetReport, WatchReport};

/// Formats of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// Text of Prometheus, for the textfile collector of its node exporter.
    Prometheus,
    /// JSON of the protocol of OpenTelemetry (OTLP), as its collector reads it from a file.
    Otlp,
}

/// A figure with its values, one for each set of labels.
struct Metric {
    name: &'static str,
    help: &'static str,
    /// Unit as UCUM writes it, e.g. `s`; `1` for numbers.
    unit: &'static str,
    /// Whether the value only grows while one capture runs.
    is_total: bool,
    points: Vec<Point>,
}

/// A value, with the labels that say of what.
struct Point {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// The time to which values belong, ns since 1970.
#[derive(Clone, Copy)]
struct Times {
    begin_ns: i64,
    end_ns: i64,
}

/// The checks of a budget as metrics. `now_ns`: the time of the check, ns since 1970.
pub fn render_budget_metrics(report: &BudgetReport, now_ns: i64, format: MetricsFormat) -> String {
    render(&budget::metrics(report), Times { begin_ns: now_ns, end_ns: now_ns }, format)
}

/// What was seen on the wire as metrics.
pub fn render_watch_metrics(report: &WatchReport, format: MetricsFormat) -> String {
    let times = Times { begin_ns: report.begin_ns, end_ns: report.begin_ns + report.duration_ns };
    render(&watch::metrics(report), times, format)
}

fn render(metrics: &[Metric], times: Times, format: MetricsFormat) -> String {
    match format {
        MetricsFormat::Prometheus => prometheus::text(metrics),
        MetricsFormat::Otlp => otlp::json(metrics, times),
    }
}
