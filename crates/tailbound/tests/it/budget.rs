//! Tests of `tailbound budget` with records of the scripted driver `null`, whose figures are known.

use crate::support::{Bench, exit_and_stderr};
use serde_json::{Value, json};
use std::fs;
use std::process::Output;

/// A study whose round trips take `base_ns`, and 0.5 % of them 0.9 ms longer; `loss` is the share of lost messages.
fn study(base_ns: u64, loss: f64, more: &str) -> String {
    let script: Value = json!({ "seed": 5, "links": {
        "out": { "delay": { "constant": base_ns - 10_000 }, "loss": { "probability": loss } },
        "back": { "delay": { "constant": 10_000 }, "reorder": { "probability": 0.005, "extra_ns": 900_000 } } } });
    format!(
        "study: budgeted\nquestion: Does it keep its limits?\n\
         measure: {{ ping-pong: {{ slots: 4000, warm_up: 10, timeout: 1 s }} }}\n\
         rate: 1 kHz\nplace: same-process\npath: loopback\n\
         driver: {{ \"null\": {{ clock: scripted, script: '{script}' }} }}\n{more}"
    )
}

/// Runs `tailbound budget`. Returns exit code, standard output with single spaces, and standard error.
fn judged(bench: &Bench, budget: &str, args: &[&str]) -> (i32, String, String) {
    fs::write(bench.path("budget.yaml"), budget).unwrap();
    let output: Output = bench.tailbound().args(["budget", "record", "budget.yaml"]).args(args).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    // Line breaks become spaces, because the output is wrapped.
    let out = String::from_utf8(output.stdout).unwrap();
    (code, out.split_whitespace().collect::<Vec<_>>().join(" "), text)
}

const PAYLOAD: &str = "payload: 64 B\n";

#[test]
fn a_limit_is_kept_broken_or_undecided() {
    let bench = Bench::new();
    // 0.5 % of the messages take 0.93 ms instead of 0.03 ms, so p99.9 is 0.93 ms and p99 is 0.03 ms.
    bench.record("record", &study(30_000, 0.0, PAYLOAD), &["measure.slots=20000"]);
    let limit = |limit: &str| format!("limits:\n  - round_trip: {{ {limit} }}\n");
    for (text, expected) in [
        ("p50: 31 us", 0),
        ("p99: 31 us", 0),
        ("p99.9: 1 ms", 0),
        ("max: 1 ms", 0),
        ("lost: none", 0),
        ("lost: 0.1 %", 0),
        ("p50: 29 us", 5),
        ("p99.9: 500 us", 5),
        ("max: 500 us", 5),
        // The interval of p99.5 contains the limit.
        ("p99.5: 500 us", 7),
        // No message of 20,000 is lost, so the share of lost messages is at most 1 in 5,400.
        ("lost: 0.01 %", 7),
        ("p99.99: 1 ms", 7),
        ("p50: 29 us, p99.99: 1 ms", 5),
    ] {
        let (code, out, err) = judged(&bench, &limit(text), &[]);
        assert_eq!(code, expected, "{text}: {out}{err}");
    }
    let metrics = |file: &str| {
        let (code, _, err) = judged(&bench, &limit("p50: 31 us, max: 500 us"), &["--metrics", file]);
        (code, err, fs::read_to_string(bench.path(file)).unwrap_or_default())
    };
    let (code, _, text) = metrics("budget.prom");
    let count = |outcome: &str| {
        text.lines().any(|line| line.starts_with("tailbound_budget_limits{") && line.ends_with(outcome))
    };
    assert!(code == 5 && count("outcome=\"holds\"} 1") && count("outcome=\"broken\"} 1"), "{text}");
    let (code, _, text) = metrics("budget.json");
    let found: Value = serde_json::from_str(&text).unwrap();
    let names = &found["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert!(code == 5 && names[1]["name"] == "tailbound_budget_limit", "{found:#}");
    insta::assert_snapshot!([metrics("budget.txt").1, metrics("nosuch/budget.prom").1].join("\n"));
    assert_eq!(judged(&bench, &limit("p99.99: 1 ms"), &["--undecided", "pass"]).0, 0);
    assert_eq!(judged(&bench, &limit("p99.99: 1 ms"), &["--undecided", "fail"]).0, 5);
    let (_, out, _) = judged(&bench, &limit("p99.99: 1 ms"), &[]);
    assert!(out.contains("p99.99 needs 36,887 messages; there are 20,000"), "{out}");
}

#[test]
fn a_mean_has_an_interval_over_trials() {
    let bench = Bench::new();
    // Each trial has the delays of the same script: 30 us, and 0.5 % of the messages 0.93 ms.
    bench.record("record", &study(30_000, 0.0, PAYLOAD), &["repeat=5", "measure.slots=1000"]);
    let limit = |limit: &str| format!("limits:\n  - round_trip: {{ mean: {limit} }}\n");
    for (text, expected) in [("60 us", 0), ("31 us", 5)] {
        let (code, out, err) = judged(&bench, &limit(text), &[]);
        assert_eq!(code, expected, "{text}: {out}{err}");
        assert!(out.contains("round_trip mean, at most") && out.contains("(95 %:"), "{out}");
    }
    bench.record("few", &study(30_000, 0.0, PAYLOAD), &["repeat=3", "measure.slots=1000"]);
    bench.remove_record();
    std::fs::rename(bench.path("few"), bench.path("record")).unwrap();
    let (code, out, err) = judged(&bench, &limit("60 us"), &[]);
    assert_eq!(code, 7, "{out}{err}");
    assert!(out.contains("a decision needs 2 more trials, because the interval is computed over trials"), "{out}");
}

#[test]
fn losses_are_judged_by_their_interval() {
    let bench = Bench::new();
    bench.record("record", &study(30_000, 0.02, PAYLOAD), &["measure.slots=10000"]);
    for (text, expected) in [
        ("lost: 3 %", 0),
        ("lost: 1 %", 5),
        ("lost: 2 %", 7),
        ("lost: none", 5),
        // A lost message counts as later than any other message.
        ("p99: 1 s", 5),
        ("p90: 100 us", 0),
    ] {
        let (code, out, err) = judged(&bench, &format!("limits:\n  - round_trip: {{ {text} }}\n"), &[]);
        assert_eq!(code, expected, "{text}: {out}{err}");
    }
}

/// A study like [`study`] whose messages with these numbers are lost; number 10 is the first after the warm-up.
fn losing(lost: &[u64]) -> String {
    let script: Value = json!({ "links": {
        "out": { "delay": { "constant": 20_000 }, "loss": { "counters": lost } },
        "back": { "delay": { "constant": 10_000 } } } });
    study(30_000, 0.0, PAYLOAD)
        .lines()
        .map(|line| match line.starts_with("driver:") {
            true => format!("driver: {{ \"null\": {{ clock: scripted, script: '{script}' }} }}\n"),
            false => format!("{line}\n"),
        })
        .collect()
}

#[test]
fn runs_of_misses_are_limited() {
    let bench = Bench::new();
    // Three messages in a row are lost, so that ten windows of ten messages hold more than one of them.
    bench.record("record", &losing(&[1010, 1011, 1012]), &["repeat=2"]);
    for (text, expected) in [
        ("longest_run: 3", 0),
        ("longest_run: 2", 5),
        ("m_of_k: { m: 1, k: 10 }", 5),
        // Both trials have the same losses.
        ("m_of_k: { m: 1, k: 10, violated_windows: 20 }", 0),
        ("m_of_k: { m: 1, k: 10, violated_windows: 19 }", 5),
        ("m_of_k: { m: 3, k: 100 }", 0),
        ("m_of_k: { m: 2, k: 3, violated_windows: 1 }", 5),
        ("m_of_k: { m: 0, k: 5000 }", 7),
        ("recovery: 3 ms", 0),
        ("recovery: 2999 us", 5),
        // Every answer takes 30 us.
        ("late_above: 20 us, longest_run: 3999", 5),
        ("late_above: 40 us, longest_run: 3", 0),
    ] {
        let (code, out, err) = judged(&bench, &format!("limits:\n  - misses: {{ {text} }}\n"), &[]);
        assert_eq!(code, expected, "{text}: {out}{err}");
    }
    let all = "limits:\n  - misses: { longest_run: 3, m_of_k: { m: 1, k: 10 }, recovery: 50 ms, late_above: 40 us }\n";
    judged(&bench, all, &["--junit", "out.xml"]);
    // The class of a test case contains the name of the condition, with the whole script.
    let junit = fs::read_to_string(bench.path("out.xml")).unwrap();
    let short = |line: &str| match line.split_once("name=\"misses") {
        Some((_, case)) => format!("    <testcase name=\"misses{case}\n"),
        None => format!("{line}\n"),
    };
    insta::assert_snapshot!("misses", junit.lines().map(short).collect::<String>());
}

#[test]
fn a_trial_that_did_not_recover_is_broken_or_undecided() {
    let bench = Bench::new();
    // From slot 3,980 on, nothing is answered: the trial ends 29 ms later.
    bench.record("record", &losing(&(3980..4100).collect::<Vec<u64>>()), &[]);
    let limit = |limit: &str| format!("limits:\n  - misses: {{ {limit} }}\n");
    for (text, expected) in [("recovery: 10 ms", 5), ("recovery: 1 s", 7)] {
        let (code, out, err) = judged(&bench, &limit(text), &[]);
        assert_eq!(code, expected, "{text}: {out}{err}");
        assert!(out.contains("trial 0 ended before 10 consecutive messages were on time"), "{out}");
    }
    // Without any answer, no message is usual, and all messages are missed.
    bench.remove_record();
    bench.record("record", &losing(&(0..4100).collect::<Vec<u64>>()), &[]);
    let (code, out, err) = judged(&bench, &limit("longest_run: 3999"), &[]);
    assert_eq!(code, 5, "{out}{err}");
    let report = bench.report();
    assert_eq!(report["conditions"][0]["misses"]["longest_run"], 4000, "{}", report["conditions"][0]["misses"]);
}

#[test]
fn a_study_chooses_the_windows_of_its_report() {
    let bench = Bench::new();
    let study = losing(&[1010, 1011, 1012]) + "report: { misses: { m: 2, k: 3 } }\n";
    bench.record("record", &study, &[]);
    let report = bench.report();
    let misses = &report["conditions"][0]["misses"];
    assert_eq!(misses["m_of_k"], json!({ "m": 2, "k": 3, "violated_windows": 1 }), "{misses}");
}

#[test]
fn limits_of_some_conditions() {
    let bench = Bench::new();
    bench.record("record", &study(30_000, 0.0, "factors: { payload: [64 B, 1 KiB] }\n"), &[]);
    let (code, out, err) = judged(
        &bench,
        "budget: some\nlimits:\n  - where: { payload: 1KiB }\n    round_trip: { p50: 31 us }\n  \
         - from_intended: { p50: 29 us }\n",
        &["--junit", "out.xml", "--markdown", "out.md"],
    );
    assert_eq!(code, 5, "{out}{err}");
    assert!(out.starts_with("some: 1 limit holds, 2 are broken, 0 are undecided broken "), "{out}");
    // The name of the driver's level contains the whole script, which is replaced here.
    let short = |line: &str| match (line.find("script {"), line.rfind("}}}}")) {
        (Some(from), Some(to)) => format!("{}SCRIPT{}\n", &line[..from], &line[to + 4..]),
        _ => format!("{line}\n"),
    };
    let plain = |file: &str| fs::read_to_string(bench.path(file)).unwrap().lines().map(short).collect::<String>();
    insta::assert_snapshot!("junit", plain("out.xml"));
    insta::assert_snapshot!("markdown", plain("out.md"));
}

#[test]
fn undecided_in_junit_is_skipped_failed_or_passed() {
    let bench = Bench::new();
    bench.record("record", &study(30_000, 0.0, PAYLOAD), &["measure.slots=400"]);
    let budget = "limits:\n  - round_trip: { p99.9: 1 ms }\n";
    for (args, expected) in [
        (&[][..], "tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\""),
        (&["--undecided", "fail"], "tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""),
        (&["--undecided", "pass"], "tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\""),
    ] {
        judged(&bench, budget, &[args, &["--junit", "out.xml"]].concat());
        let text = fs::read_to_string(bench.path("out.xml")).unwrap();
        assert!(text.contains(expected), "{args:?}: {text}");
        let parsed = std::process::Command::new("python3")
            .args([
                "-c",
                "import sys, xml.etree.ElementTree as e; print(len(e.parse(sys.argv[1]).findall('.//testcase')))",
            ])
            .arg(bench.path("out.xml"))
            .output()
            .expect("python3");
        assert_eq!(String::from_utf8_lossy(&parsed.stdout).trim(), "1", "{text}");
    }
}

#[test]
fn against_a_baseline() {
    let bench = Bench::new();
    bench.record("record", &study(33_000, 0.0, PAYLOAD), &["repeat=5"]);
    bench.record("accepted", &study(30_000, 0.0, PAYLOAD), &["repeat=5"]);
    bench.record("short", &study(30_000, 0.0, PAYLOAD), &["repeat=2"]);
    let budget = |tolerance: &str| {
        format!("baseline: {{ record: accepted, tolerance: {tolerance}, round_trip: [p50, p99, mean] }}\n")
    };
    let (code, out, err) = judged(&bench, &budget("5 %"), &[]);
    assert_eq!(code, 5, "{out}{err}");
    assert!(out.contains("round_trip p50 against the baseline, at most 5 % more: 1.10 times"), "{out}");
    assert_eq!(judged(&bench, &budget("15 %"), &[]).0, 0);
    // Losses are compared by the difference of shares, because a share of zero has no ratio: 5 trials of 4,000 messages
    // on each side, no message lost.
    let lost =
        |tolerance: &str| format!("baseline: {{ record: accepted, tolerance: {tolerance}, round_trip: [lost] }}\n");
    assert_eq!(judged(&bench, &lost("0.1 %"), &[]).0, 0);
    assert_eq!(judged(&bench, &lost("0.01 %"), &[]).0, 7);
    bench.record("lossy", &study(30_000, 0.05, PAYLOAD), &["repeat=5"]);
    std::fs::rename(bench.path("record"), bench.path("good")).unwrap();
    std::fs::rename(bench.path("lossy"), bench.path("record")).unwrap();
    let (code, out, err) = judged(&bench, &lost("1 %"), &[]);
    assert_eq!(code, 5, "{out}{err}");
    let limit = "the losses exceed the losses of the baseline by at most 1 % of all messages";
    assert!(out.contains(&format!("round_trip lost against the baseline, {limit}")), "{out}");
    std::fs::rename(bench.path("record"), bench.path("lossy")).unwrap();
    std::fs::rename(bench.path("good"), bench.path("record")).unwrap();
    let (code, out, err) = judged(&bench, &budget("15 %"), &["--baseline", "short"]);
    assert_eq!(code, 7, "{out}{err}");
    assert!(out.contains("a decision needs 3 more trials in the record and in the baseline"), "{out}");
}

#[test]
fn an_invalid_trial_decides_nothing() {
    let bench = Bench::new();
    let budget = "limits:\n  - round_trip: { p50: 31 us }\n";
    bench.record("record", &study(30_000, 0.0, PAYLOAD), &["repeat=2"]);
    assert_eq!(judged(&bench, budget, &[]).0, 0);
    fs::remove_dir_all(bench.path("record/samples/1")).unwrap();
    let (code, out, err) = judged(&bench, budget, &[]);
    assert_eq!(code, 7, "{out}{err}");
    assert!(out.contains("trial 1 is invalid, so its figures cannot be trusted"), "{out}");
    // If the limit is below the trial's figures, the invalid trial does not decide either.
    assert_eq!(judged(&bench, &budget.replace("31", "29"), &[]).0, 7);
}

#[test]
fn a_budget_that_does_not_fit_the_record_is_refused() {
    let bench = Bench::new();
    bench.record("record", &study(30_000, 0.0, "factors: { payload: [64 B, 1 KiB] }\n"), &["rate=max"]);
    let mut all = String::new();
    for (budget, args) in [
        ("limits:\n  - from_intended: { p99: 1 ms }\n", &[][..]),
        ("limits:\n  - throughput: { samples/s: 1000 }\n", &[]),
        ("limits:\n  - misses: { longest_run: 3, m_of_k: { m: 0 } }\n", &[]),
        ("baseline: { record: record, tolerance: 5 %, throughput: [samples/s] }\n", &[]),
        ("baseline: { record: record, tolerance: 5 %, from_intended: [p50] }\n", &[]),
        ("limits:\n  - where: { payload: 2 KiB }\n    round_trip: { p99: 1 ms }\n", &[]),
        ("limits:\n  - where: { load: cpu }\n    round_trip: { p99: 1 ms }\n", &[]),
        ("limits:\n  - round_trip: { p99: 500 }\n", &[]),
        ("baseline: { tolerance: 5 %, round_trip: [p50] }\n", &[]),
        ("baseline: { record: none, tolerance: 5 %, round_trip: [p50] }\n", &[]),
        ("limits:\n  - round_trip: { p99: 1 ms }\n", &["--baseline", "record"]),
    ] {
        let (code, _, text) = judged(&bench, budget, args);
        assert_eq!(code, 2, "{budget}{text}");
        let script = |line: &str| match (line.find("null clock"), line.find("}}}}")) {
            (Some(a), Some(b)) => format!("{}null{}", &line[..a], &line[b + 4..]),
            _ => line.to_owned(),
        };
        let text: String = text.lines().map(|l| script(l) + "\n").collect();
        all.push_str(&format!("{budget}{text}\n"));
    }
    insta::assert_snapshot!(all);
}
