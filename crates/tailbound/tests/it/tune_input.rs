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
    at("lost.yaml", "limits:\n  - round_trip: { lost: none, p99.99: 1 ms }\n    misses: { longest_run: 3 }\n");
    at("baseline.yaml", "baseline: { record: before, tolerance: 5 %, round_trip: [p99] }\n");
    at("where.yaml", "limits:\n  - where: { payload: 4 KiB }\n    round_trip: { p99: 1 ms }\n");
    at("out.yaml", "limits:\n  - out: { p99: 1 ms }\n");
    at("damaged.yaml", "limits:\n  - round_trip: { p99: soon }\n");
    let cases: [&[&str]; 27] = [
        &[],
        &["nosuch.yaml"],
        &["one.yaml"],
        &["one.yaml", "--for", "p42"],
        &["one.yaml", "--for", "max"],
        &["one.yaml", "--yes", "--for", "nosuch.yaml"],
        &["one.yaml", "--yes", "--for", "lost.yaml"],
        &["one.yaml", "--yes", "--for", "baseline.yaml"],
        &["one.yaml", "--yes", "--for", "where.yaml"],
        &["one.yaml", "--yes", "--for", "out.yaml"],
        &["one.yaml", "--yes", "--for", "damaged.yaml"],
        &["one.yaml", "--yes", "--set", "rate=max", "--for", "out.yaml"],
        &["one.yaml", "--budget", "soon"],
        &["one.yaml", "--budget", "0s"],
        &["one.yaml", "--guard", "memory=20%"],
        &["one.yaml", "--guard", "cpu=lots"],
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

/// Test: the first limit of a latency quantile that concerns the condition declares the figure.
#[test]
fn a_budget_declares_the_figure() {
    let bench = Bench::new();
    let study = bench
        .study("study: one\nmeasure: ping-pong\ndriver: udp\nfactors: { payload: [64 B, 4 KiB] }\nattribution: auto\n");
    let budget = "limits:\n  - where: { payload: 64B }\n    round_trip: { p50: 1 ms }\n  \
                  - round_trip: { lost: none, p99: 2 ms, p99.9: 3 ms }\n";
    std::fs::write(bench.path("budget.yaml"), budget).unwrap();
    let declared = |payload: &str| {
        let mut command = bench.tailbound();
        command.args(["tune", "--dry-run", "--for", "budget.yaml", "--set", payload]).arg(&study);
        let output = command.current_dir(bench.dir.path()).output().unwrap();
        assert_eq!(exit_and_stderr(&output).0, 0);
        String::from_utf8(output.stdout).unwrap().lines().next().unwrap().to_owned()
    };
    insta::assert_snapshot!([declared("payload=64 B"), declared("payload=4 KiB")].join("\n"));
}

/// Test: after a reboot with another kernel command line, `resume` says what changed and measures nothing.
#[test]
fn a_changed_host_is_refused_after_a_reboot() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("run")).unwrap();
    let state = serde_json::json!({
        "name": "one.yaml", "study": "study: one\nmeasure: ping-pong\ndriver: udp\npath: loopback\nplace: process\n",
        "directory": "", "settings": [], "figure": "p99", "rule": "looks", "seed": 1, "budget_s": null, "only": [],
        "candidates": 8, "beside": true,
        "host": { "boot_id": "another", "facts": { "kernel.cmdline": "quiet isolcpus=1", "kernel.hz": "1" } },
    });
    std::fs::write(bench.path("run/tune.json"), state.to_string()).unwrap();
    let now = std::fs::read_to_string("/proc/cmdline").unwrap();
    insta::assert_snapshot!(said(&bench, &["resume", "run"]).replace(now.trim(), "NOW"));
    assert_eq!(std::fs::read_dir(bench.path("run")).unwrap().count(), 1);
}
