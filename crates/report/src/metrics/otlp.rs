//! JSON of the OpenTelemetry protocol, one message `MetricsData`
//! (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): 64-bit numbers are texts.

use super::{Metric, Point, Times};
use serde_json::{Value, json};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: values count from the begin of the capture.
const CUMULATIVE: i32 = 2;

/// All metrics that have values, in one line.
pub(super) fn json(metrics: &[Metric], times: Times) -> String {
    let metrics: Vec<Value> =
        metrics.iter().filter(|metric| !metric.points.is_empty()).map(|metric| one(metric, times)).collect();
    let scope = json!({ "name": "tailbound", "version": env!("CARGO_PKG_VERSION") });
    let resource = json!({ "attributes": [attribute("service.name", "tailbound")] });
    let all = json!({ "resourceMetrics": [{ "resource": resource, "scopeMetrics": [{ "scope": scope, "metrics": metrics }] }] });
    format!("{all}\n")
}

fn one(metric: &Metric, times: Times) -> Value {
    let points: Vec<Value> = metric.points.iter().map(|point| data_point(point, times)).collect();
    let mut value = json!({ "name": metric.name, "description": metric.help, "unit": metric.unit });
    let (kind, data) = match metric.is_total {
        true => ("sum", json!({ "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points })),
        false => ("gauge", json!({ "dataPoints": points })),
    };
    value[kind] = data;
    value
}

fn data_point(point: &Point, times: Times) -> Value {
    let attributes: Vec<Value> = point.labels.iter().map(|(name, value)| attribute(name, value)).collect();
    json!({
        "attributes": attributes,
        "startTimeUnixNano": times.begin_ns.to_string(),
        "timeUnixNano": times.end_ns.to_string(),
        "asDouble": point.value,
    })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}
