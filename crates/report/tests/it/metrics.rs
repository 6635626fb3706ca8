//! Metrics for monitoring systems, read by the libraries of Prometheus and OpenTelemetry.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tailbound_report::{
    BudgetCheck, BudgetOutcome, BudgetReport, MetricsFormat, WatchReport, WatchedLateness, WatchedQos, WatchedRange,
    WatchedTopic, WatchedWriter, render_budget_metrics, render_watch_metrics,
};

const SECOND: i64 = 1_000_000_000;

/// Path of a Python interpreter with the libraries; `dev/setup test` installs this interpreter.
fn python() -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    std::env::var_os("TAILBOUND_PYTHON").map_or(made, PathBuf::from)
}

/// What the libraries read of both formats, which must be the same.
fn read(render: impl Fn(MetricsFormat) -> String) -> Vec<(String, Value, f64)> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, format| {
        let path = folder.path().join(name);
        std::fs::write(&path, render(format)).unwrap();
        path
    };
    let files = [file("m.prom", MetricsFormat::Prometheus), file("m.json", MetricsFormat::Otlp)];
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_metrics.py");
    let output = Command::new(python()).arg(script).args(&files).output().expect("python: run dev/setup test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let both: [Vec<(String, Value, f64)>; 2] = serde_json::from_slice(&output.stdout).unwrap();
    let [prometheus, telemetry] = both;
    assert_eq!(prometheus, telemetry);
    prometheus
}

/// The name of the topic has all characters that the text of Prometheus escapes.
fn watched() -> WatchReport {
    let range = WatchedRange { count: 400, min_ns: 1, p50_ns: 40_000, p99_ns: Some(2_000_000), max_ns: 5_000_000 };
    let writer = WatchedWriter {
        guid: "01100000.00000000.00000001.00000103".into(),
        vendor: "Cyclone DDS".into(),
        node: None,
        participant: None,
        address: Some("127.0.0.1".into()),
        is_here: true,
        qos: Some(WatchedQos {
            reliability: "reliable".into(),
            durability: "volatile".into(),
            deadline_ns: Some(SECOND / 10),
        }),
        samples: 400,
        rate_hz: Some(40.0),
        interval: Some(WatchedRange { max_ns: 30_000_000, ..range }),
        bytes: Some((100, 8_204)),
        lateness: Some(WatchedLateness { range, is_above_fastest: false, begins: String::new() }),
        without_time: 0,
        protocol: Default::default(),
    };
    let silent = WatchedWriter { samples: 0, lateness: None, rate_hz: None, bytes: None, ..writer.clone() };
    let few = WatchedWriter {
        guid: "02100000.00000000.00000001.00000103".into(),
        samples: 3,
        qos: None,
        lateness: Some(WatchedLateness {
            range: WatchedRange { p99_ns: None, ..range },
            is_above_fastest: true,
            begins: String::new(),
        }),
        ..writer.clone()
    };
    let topic = |topic: Option<&str>, writers| WatchedTopic {
        topic: topic.map(str::to_owned),
        ros_topic: None,
        type_name: None,
        readers_announced: 1,
        writers,
    };
    WatchReport {
        begin_ns: 1_796_000_000 * SECOND,
        duration_ns: 10 * SECOND,
        place: "interface lo of this network namespace".into(),
        packets: 1_234,
        copies: 1_234,
        left_within: None,
        from_file: false,
        is_partial: false,
        clock_step_ns: None,
        also: None,
        cost: None,
        cpu_ns: None,
        not_copied: 7,
        unread: Default::default(),
        zenoh_packets: 0,
        shared_memory: Default::default(),
        participants: 2,
        topics: vec![topic(Some("a\\b \"c\"\n}d"), vec![writer, silent]), topic(None, vec![few])],
        chain: None,
        incidents: Vec::new(),
        calls: None,
        warnings: Vec::new(),
    }
}

fn value(all: &[(String, Value, f64)], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let has = |found: &Value| labels.iter().all(|(name, value)| found[name] == *value);
    let mut found = all.iter().filter(|(n, l, _)| n == name && has(l));
    let first = found.next().map(|(.., value)| *value);
    assert!(found.next().is_none(), "{name} {labels:?}");
    first
}

#[test]
fn what_was_seen_is_read_by_both_libraries() {
    let all = read(|format| render_watch_metrics(&watched(), format));
    let named = [("topic", "a\\b \"c\"\n}d")];
    let of = |name: &str, more: (&'static str, &'static str)| value(&all, name, &[named[0], more]);
    let here = ("address", "127.0.0.1");
    assert_eq!(of("tailbound_watch_samples_total", here), Some(400.0));
    assert_eq!(of("tailbound_watch_rate_hertz", here), Some(40.0));
    assert_eq!(of("tailbound_watch_sample_bytes", here), Some(8_204.0));
    assert_eq!(of("tailbound_watch_longest_pause_seconds", here), Some(0.03));
    assert_eq!(of("tailbound_watch_deadline_seconds", here), Some(0.1));
    let late = |quantile| of("tailbound_watch_lateness_seconds", ("quantile", quantile));
    assert_eq!([late("0.5"), late("0.99"), late("1")], [Some(0.000_04), Some(0.002), Some(0.005)]);
    assert_eq!(value(&all, "tailbound_watch_packets_missed_total", &[]), Some(7.0));
    // A writer whose topic is not known, with too few samples for a p99, and another clock.
    let unknown = |quantile| {
        let labels = [("topic", ""), ("above_fastest", "true"), ("quantile", quantile)];
        value(&all, "tailbound_watch_lateness_seconds", &labels)
    };
    assert_eq!([unknown("0.5"), unknown("0.99")], [Some(0.000_04), None]);
    assert_eq!(value(&all, "tailbound_watch_deadline_seconds", &[("topic", "")]), None);
    insta::assert_snapshot!(render_watch_metrics(&watched(), MetricsFormat::Prometheus));
}

#[test]
fn each_limit_of_a_budget_has_one_outcome() {
    let check = |what: &str, outcome| BudgetCheck {
        condition: "driver udp".into(),
        what: what.into(),
        limit: "at most 2 ms".into(),
        found: String::new(),
        outcome,
        why: String::new(),
    };
    let report = BudgetReport {
        name: "robot".into(),
        record: "runs/today".into(),
        checks: vec![
            check("round_trip p50", BudgetOutcome::Holds),
            check("round_trip p99", BudgetOutcome::Broken),
            check("round_trip p99.9", BudgetOutcome::Undecided),
        ],
    };
    let all = read(|format| render_budget_metrics(&report, SECOND, format));
    let state = |what, outcome| value(&all, "tailbound_budget_limit", &[("what", what), ("outcome", outcome)]);
    let states = |what| ["holds", "undecided", "broken"].map(|outcome| state(what, outcome));
    assert_eq!(states("round_trip p50"), [Some(1.0), Some(0.0), Some(0.0)]);
    assert_eq!(states("round_trip p99"), [Some(0.0), Some(0.0), Some(1.0)]);
    assert_eq!(states("round_trip p99.9"), [Some(0.0), Some(1.0), Some(0.0)]);
    for outcome in ["holds", "undecided", "broken"] {
        let labels = [("budget", "robot"), ("record", "runs/today"), ("outcome", outcome)];
        assert_eq!(value(&all, "tailbound_budget_limits", &labels), Some(1.0));
    }
}

/// Test: the dashboard for Grafana asks for metrics, labels and outcomes that exist.
#[test]
fn the_dashboard_asks_for_what_there_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations/grafana/tailbound.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let queries = panels.flat_map(|panel| panel["targets"].as_array().unwrap()).map(|t| t["expr"].as_str().unwrap());
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter().filter_map(|v| v["query"].as_str());
    let budget = BudgetReport {
        name: "robot".into(),
        record: "r".into(),
        checks: vec![BudgetCheck {
            condition: "c".into(),
            what: "w".into(),
            limit: "l".into(),
            found: String::new(),
            outcome: BudgetOutcome::Broken,
            why: String::new(),
        }],
    };
    let mut all = read(|format| render_watch_metrics(&watched(), format));
    all.extend(read(|format| render_budget_metrics(&budget, SECOND, format)));
    let mut found = 0;
    for query in queries.chain(variables).filter(|query| *query != "prometheus") {
        let name: String = query[query.find("tailbound_").expect(query)..]
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || *c == '_')
            .collect();
        let of: Vec<&Value> = all.iter().filter(|(n, ..)| *n == name).map(|(_, labels, _)| labels).collect();
        assert!(!of.is_empty(), "{query}");
        for pair in query.split(['{', ',', '}']).filter(|part| part.contains('=') && !part.contains("$")) {
            let Some((label, value)) = pair.split_once("=\"") else { continue };
            let value = value.trim_end_matches('"');
            assert!(of.iter().any(|labels| labels[label] == value), "{pair} of {query}");
        }
        found += 1;
    }
    assert_eq!(found, 11);
}
