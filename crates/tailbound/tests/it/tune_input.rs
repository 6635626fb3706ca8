//! Tests of wrong input of `tailbound tune`: each message says what is wrong and what to do.

use crate::support::{Bench, exit_and_stderr};

fn said(bench: &Bench, arguments: &[&str]) -> String {
    let mut command = bench.tailbound();
    let output = command.arg("tune").args(arguments).current_dir(bench.dir.path()).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    format!("exit code {code}\n{text}").replace(&bench.dir.path().display().to_string(), "DIR")
}

#[test]
fn each_wrong_input_has_its_message() {
    let bench = Bench::new();
    let at = |name: &str, text: &str| std::fs::write(bench.path(name), text).unwrap();
    at("one.yaml", "study: one\nmeasure: ping-pong\ndriver: udp\npath: loopback\nplace: process\n");
    at("two.yaml", "study: two\nmeasure: ping-pong\ndriver: udp\nfactors: { payload: [64 B, 1 KiB] }\n");
    at("cut.json", "{ \"format\": [1, 0], ");
    at("newer.json", "{ \"format\": [9, 0] }");
    at("other.json", "{ \"format\": [1, 0], \"study\": 3 }");
    std::fs::create_dir(bench.path("there")).unwrap();
    std::fs::create_dir(bench.path("ended")).unwrap();
    at("flow.yaml", "study: flow\nmeasure: throughput\ndriver: udp\n");
    let cases: [&[&str]; 18] = [
        &[],
        &["nosuch.yaml"],
        &["one.yaml"],
        &["one.yaml", "--for", "p42"],
        &["one.yaml", "--for", "max"],
        &["one.yaml", "--budget", "soon"],
        &["one.yaml", "--budget", "0s"],
        &["one.yaml", "--candidates", "0"],
        &["one.yaml", "--rule", "guess"],
        &["one.yaml", "--yes", "--out", "there"],
        &["one.yaml", "--set", "rate=fast"],
        &["two.yaml", "--yes"],
        &["flow.yaml", "--yes"],
        &["one.yaml", "--yes", "--set", "attribution=off"],
        &["resume", "there"],
        &["replay", "nosuch.json"],
        &["replay", "cut.json"],
        &["replay", "newer.json"],
    ];
    let mut all: Vec<String> = Vec::new();
    for arguments in cases.iter().copied().chain([&["replay", "other.json"][..]]) {
        all.push(format!("tailbound tune {}\n{}", arguments.join(" "), said(&bench, arguments)));
    }
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn a_dry_run_says_what_would_be_done() {
    let bench = Bench::new();
    let study =
        bench.study("study: one\nmeasure: ping-pong\ndriver: udp\npath: loopback\nplace: process\nattribution: auto\n");
    let mut command = bench.tailbound();
    let output = command.args(["tune", "--dry-run", "--set", "measure.duration=2s"]).arg(&study).output().unwrap();
    assert_eq!(exit_and_stderr(&output).0, 0);
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}
