//! The figures of a flow as cells of the CSV table.

use tailbound_document::{FlowReport, Spread};

/// Heads of the additional CSV columns of a report with flows. Only rows whose metric is `flow` have values in these
/// columns.
pub(crate) const HEADS: [&str; 32] = [
    "publishers",
    "subscribers",
    "pack",
    "samples_per_s",
    "samples_per_s_low",
    "samples_per_s_high",
    "payload_mbit_s",
    "payload_mbit_s_low",
    "payload_mbit_s_high",
    "wire_mbit_s",
    "sent",
    "lost_of_all",
    "out_of_order",
    "duplicates",
    "slow_calls_share",
    "publisher_cpu_ns",
    "subscriber_cpu_ns",
    "discovery_ns",
    "controller_share",
    "datagrams_way",
    "datagrams_per_message",
    "batching",
    "unacked_limit",
    "unacked_limit_bytes",
    "unacked_limit_by",
    "data_way",
    "retransmitted_bytes",
    "retransmitted_by",
    "throttled_times",
    "throttled_ns",
    "throttled_by",
    "trials_told",
];

/// One CSV row about a flow: medians over trials, and the sums of counters that the driver reports.
pub(crate) fn cells(flow: &FlowReport) -> Vec<String> {
    let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    let middle = |s: Option<Spread>| number(s.map(|s| s.median));
    let three = |s: Option<Spread>| [s.map(|s| s.median), s.map(|s| s.low), s.map(|s| s.high)].map(number);
    let told: Vec<_> = flow.trials.iter().filter_map(|t| t.told.as_ref()).collect();
    let first = |key: &str| match told.first().map(|t| &t[key]) {
        None | Some(serde_json::Value::Null) => String::new(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let by = |key: &str| told.first().and_then(|t| t["by"][key].as_str()).unwrap_or_default().to_owned();
    let sum = |key: &str| {
        let all: Vec<u64> = told.iter().filter_map(|t| t[key].as_u64()).collect();
        if all.is_empty() { String::new() } else { all.iter().sum::<u64>().to_string() }
    };
    let cast = flow.trials.iter().find_map(|t| t.cast.as_ref());
    let mut cells = vec![flow.publishers.to_string(), flow.subscribers.to_string(), flow.pack.to_string()];
    cells.extend(three(flow.samples_per_s));
    cells.extend(three(flow.payload_mbit_s));
    cells.push(middle(flow.wire_mbit_s));
    cells.extend([flow.sent, flow.lost, flow.out_of_order, flow.duplicates].map(|n| n.to_string()));
    let medians = [
        flow.slow_calls_share,
        flow.publisher_cpu_ns,
        flow.subscriber_cpu_ns,
        flow.discovery_ns,
        flow.controller_share,
    ];
    cells.extend(medians.map(middle));
    cells.push(cast.map_or_else(String::new, |c| c.way.clone()));
    cells.push(number(cast.map(|c| c.to_groups + c.to_single)));
    cells.extend([first("batching"), first("unacked_limit"), first("unacked_limit_bytes"), by("unacked_limit")]);
    cells.extend([first("data"), sum("retransmitted_bytes"), by("retransmitted")]);
    cells.extend([sum("throttled_times"), sum("throttled_ns"), by("throttled"), told.len().to_string()]);
    cells
}
