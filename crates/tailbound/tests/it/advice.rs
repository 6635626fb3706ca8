//! Tests of `tailbound advice` and of the ranking, the exit codes and the errors of `tailbound doctor`.

use crate::support::{Bench, exit_and_stderr};
use serde_json::Value;

/// Exit code and standard output of a command.
fn output(arguments: &[&str]) -> (i32, String) {
    let output = Bench::new().tailbound().args(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_table_of_rules_is_printed_as_text_and_as_json() {
    let (code, text) = output(&["advice", "--list"]);
    assert_eq!(code, 0);
    let head: Vec<&str> = text.lines().take(8).collect();
    insta::assert_snapshot!(head.join("\n"));
    assert_eq!(output(&["advice"]).1, text);
    let rules: Vec<Value> = serde_json::from_str(&output(&["advice", "--list", "--format", "json"]).1).unwrap();
    assert!(rules.len() > 50);
    for rule in &rules {
        let key = rule["key"].as_str().unwrap();
        assert!(text.lines().any(|line| line.starts_with(key)), "{key}");
        assert!(["live", "restart", "reboot"].contains(&rule["scope"].as_str().unwrap()), "{rule}");
    }
}

#[test]
fn doctor_shows_five_settings_and_with_v_all() {
    let (_, text) = output(&["doctor", "--format", "json"]);
    let of: Value = serde_json::from_str(&text).unwrap();
    let findings = of["findings"].as_array().unwrap();
    let bad: Vec<&str> =
        findings.iter().filter(|f| f["verdict"] == "will_widen_tail").map(|f| f["key"].as_str().unwrap()).collect();
    let named = |text: &str| bad.iter().filter(|key| text.contains(&format!("[{key}]"))).count();
    let (code, short) = output(&["doctor"]);
    assert_eq!((code, named(&short)), (0, bad.len().min(5)), "{short}");
    assert_eq!(short.contains("more that widen the tail"), bad.len() > 5, "{short}");
    assert_eq!(named(&output(&["doctor", "-v"]).1), bad.len());
    let strict = output(&["doctor", "--strict"]).0;
    assert_eq!(strict, if bad.is_empty() { 0 } else { 3 });
}

#[test]
fn the_short_flag_for_json_stays() {
    let members = |arguments: &[&str]| {
        let of: Value = serde_json::from_str(&output(arguments).1).unwrap();
        of.as_object().unwrap().keys().cloned().collect::<Vec<String>>()
    };
    assert_eq!(members(&["doctor", "--json"]), members(&["doctor", "--format", "json"]));
}

#[test]
fn doctor_of_a_directory_that_is_no_record() {
    let bench = Bench::new();
    let (code, text) = exit_and_stderr(&bench.tailbound().args(["doctor", "--record", "nowhere"]).output().unwrap());
    let text = text.replace(bench.dir.path().to_str().unwrap(), "BENCH");
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
}

/// Test: the hosts of a record are judged, and the exit code of `--strict` follows from them.
#[test]
fn doctor_judges_the_hosts_of_a_record() {
    let bench = Bench::new();
    let study = "study: s\nquestion: q\nmeasure: { ping-pong: { slots: 200, warm_up: 0, timeout: 100 ms } }\n\
        rate: 1 kHz\ndriver: udp\npath: loopback\nplace: process\n";
    assert_eq!(exit_and_stderr(&bench.run(study, &[])).0, 0);
    let record = bench.path("record");
    let of = |more: &[&str]| {
        let output = bench.tailbound().arg("doctor").arg("--record").arg(&record).args(more).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let hosts: Vec<Value> = serde_json::from_str(&of(&["--format", "json"]).1).unwrap();
    assert_eq!(hosts.len(), 1);
    let host = hosts[0]["facts"]["host"].as_str().unwrap();
    assert!(of(&[]).1.starts_with(&format!("host {host}\n")), "{}", of(&[]).1);
    let bad = hosts[0]["findings"].as_array().unwrap().iter().any(|f| f["verdict"] == "will_widen_tail");
    assert_eq!(of(&["--strict"]).0, if bad { 3 } else { 0 });
}
