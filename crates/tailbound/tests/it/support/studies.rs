//! Runs of built-in studies, and the tables of published numbers in their reports.

use super::{Bench, succeeded};
use serde_json::Value;
use std::process::Command;

/// Runs a built-in study with these settings into `record`, and returns its report, which must be valid. `command`: the binary, with
/// the environment of the test.
pub fn built_in(bench: &Bench, mut command: Command, name: &str, settings: &[&str]) -> Value {
    command.args(["run", name, "--quiet", "--out"]).arg(bench.path("record"));
    for setting in settings.iter().chain(&["quiet=off"]) {
        command.args(["--set", setting]);
    }
    succeeded(&command.output().unwrap());
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{name}: {}", report["warnings"]);
    report
}

/// The cells of a row of a published table in a report.
pub fn published(report: &Value, table: &str, row: &str) -> Vec<Value> {
    let named = |of: &Value, name: &str| {
        let found = of.as_array().and_then(|all| all.iter().find(|one| one["name"] == name));
        found.unwrap_or_else(|| panic!("no `{name}`: {of:#}")).clone()
    };
    let cells = named(&named(&report["published"], table)["table"]["rows"], row)["cells"].clone();
    cells.as_array().unwrap().clone()
}

/// Runs a fan-out of a driver to three subscribers of one host, and checks that each of them received every message and has figures.
pub fn fan_out_to_three(driver: &str) {
    let bench = Bench::new();
    let text = format!(
        "study: fan-out\nquestion: q\nquiet: off\nplace: process\npath: loopback\nrate: 200 Hz\npayload: 1 KiB\ndriver: {driver}\n\
         measure: {{ fan-out: {{ subscribers: 3, duration: 1 s, receive: block }} }}\nqos: {{ history: keep-all }}\n"
    );
    succeeded(&bench.run(&text, &[]));
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{driver}: {}", report["warnings"]);
    let flow = &report["conditions"][0]["flow"];
    let sent = flow["sent"].as_i64().unwrap();
    assert!(sent >= 150 && flow["lost"] == 0, "{driver}: {flow:#}");
    let each = flow["one_way"].as_array().unwrap();
    assert_eq!(each.len(), 3, "{driver}: {flow:#}");
    let median = |of: &Value| {
        let quantiles = of["quantiles"].as_array().unwrap_or_else(|| panic!("{of:#}"));
        quantiles.iter().find(|x| x["q"] == 0.5).unwrap()["value_ns"].as_i64().unwrap()
    };
    // The last of three subscribers has a message no earlier than each of them.
    for subscriber in each {
        assert!(median(&subscriber["figures"]) <= median(&flow["slowest"]), "{driver}: {flow:#}");
    }
}
