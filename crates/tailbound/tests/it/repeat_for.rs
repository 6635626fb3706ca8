//! Tests of `tailbound run --for`: trials that are repeated for a time, the times between them, and the limit of disk.

use crate::support::host::signal;
use crate::support::{Bench, exit_and_stderr};
use serde_json::Value;

/// A study whose trials take half a second.
const STUDY: &str = "study: soak\nquestion: q\nmeasure: { ping-pong: { duration: 500 ms, warm_up: 5 } }\nrate: 100 Hz\n\
                     driver: udp\npath: loopback\nattribution: off\n";

/// Runs the study with these arguments. Returns exit code, and both outputs.
fn run(bench: &Bench, args: &[&str]) -> (i32, String, String) {
    let _ = std::fs::remove_dir_all(bench.path("record"));
    let output = bench.to_run(bench.tailbound(), "record", STUDY).args(args).output().unwrap();
    let (code, err) = exit_and_stderr(&output);
    (code, String::from_utf8(output.stdout).unwrap(), err)
}

fn sentence(report: &Value) -> &str {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|f| f["code"] == "repeated").expect("a finding")["text"].as_str().unwrap()
}

#[test]
fn trials_are_repeated_for_a_time_and_the_times_between_them_are_stated() {
    let bench = Bench::new();
    let begin = std::time::Instant::now();
    let (code, out, err) = run(&bench, &["--for", "4s"]);
    let whole_ns = begin.elapsed().as_nanos() as i64;
    assert_eq!(code, 0, "{out}{err}");
    let report = bench.report();
    let trials = report["trials"].as_array().unwrap().len() as i64;
    assert!((2..=8).contains(&trials), "{trials}");
    let repeated = &report["run"]["repeated"];
    let number = |key: &str| repeated[key].as_i64().unwrap();
    assert_eq!((number("for_ns"), &repeated["disk_reached"]), (4_000_000_000, &false.into()));
    // Each trial measures for half a second; what lies between two trials is not measured.
    assert!(number("measured_ns") >= trials * 500_000_000, "{repeated}");
    let gaps_ns = number("span_ns") - number("measured_ns");
    assert!(number("span_ns") < whole_ns, "{repeated}");
    let longest_ns = number("longest_gap_ns");
    assert!(0 < longest_ns && longest_ns <= gaps_ns && gaps_ns <= longest_ns * (trials - 1), "{repeated}");
    let begins = format!("The trials were repeated for 4 s (`--for`): {trials} trials measured for ");
    assert!(sentence(&report).replace('\u{202f}', " ").starts_with(&begins), "{}", sentence(&report));
}

#[test]
fn trials_that_a_signal_prevented_are_not_missing() {
    let bench = Bench::new();
    let mut command = bench.to_run(bench.tailbound(), "record", STUDY);
    command.args(["--for", "1h"]);
    let mut child = bench.running(command, "measuring begins");
    bench.wait_for_event("measuring begins", 2);
    signal(&child, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(6), "{}", bench.stderr());
    let report = bench.report();
    let trials = report["trials"].as_array().unwrap();
    assert!(report["status"] == "incomplete" && (2..=3).contains(&trials.len()), "{trials:?}");
    assert_eq!(trials[0]["status"], "valid");
}

#[test]
fn no_trial_begins_once_the_record_has_its_largest_size() {
    let bench = Bench::new();
    let (code, out, err) = run(&bench, &["--for", "1h", "--disk", "1KiB"]);
    assert_eq!(code, 0, "{out}{err}");
    let report = bench.report();
    assert_eq!((&report["status"], report["trials"].as_array().unwrap().len()), (&"valid".into(), 1));
    assert_eq!(report["run"]["repeated"]["disk_reached"], true);
    assert!(
        sentence(&report).ends_with("The run ended because the record had 1 KiB (`--disk`)."),
        "{}",
        sentence(&report)
    );
}

#[test]
fn options_that_do_not_fit_each_other_are_refused() {
    let bench = Bench::new();
    let refused = |args: &[&str]| {
        let (code, _, err) = run(&bench, args);
        assert_eq!(code, 2, "{args:?}: {err}");
        assert!(!bench.path("record").exists(), "{args:?}");
        err.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    let all = [
        refused(&["--for", "1h", "--until", "lost"]),
        refused(&["--disk", "1GiB"]),
        refused(&["--for", "0s"]),
        refused(&["--for", "1h", "--disk", "much"]),
    ];
    insta::assert_snapshot!("refused", all.join("\n"));
}
