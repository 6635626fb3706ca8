//! The text format of Prometheus, version 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats).

use super::Metric;

/// All metrics that have values.
pub(super) fn text(metrics: &[Metric]) -> String {
    let mut text = String::new();
    for metric in metrics.iter().filter(|metric| !metric.points.is_empty()) {
        let kind = if metric.is_total { "counter" } else { "gauge" };
        text.push_str(&format!("# HELP {0} {1}\n# TYPE {0} {kind}\n", metric.name, metric.help));
        for point in &metric.points {
            let labels: Vec<String> =
                point.labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            text.push_str(&format!("{}{{{}}} {}\n", metric.name, labels.join(","), point.value));
        }
    }
    text
}

/// The value of a label. Names of topics are texts of others.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
