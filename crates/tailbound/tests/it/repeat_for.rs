//! Tests of `tailbound run --for`: trials that are repeated for a time, the times between them, and the limit of disk.

use crate::support::host::signal;
use crate::support::processes::{descendants, wait_for_measuring};
use crate::support::{Bench, exit_and_stderr};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// A study whose trials take half a second.
const STUDY: &str = "study: soak\nquestion: q\nmeasure: { ping-pong: { duration: 500 ms, warm_up: 5 } }\nrate: 100 Hz\n\
                     driver: udp\npath: loopback\nattribution: off\n";

/// Runs the study with these arguments. Returns exit code, and both outputs.
fn run(bench: &Bench, args: &[&str]) -> (i32, String, String) {
    bench.remove_record();
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

/// Size of all files below a directory.
fn bytes(dir: &Path) -> u64 {
    let size = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => bytes(&entry.path()),
        false => entry.metadata().unwrap().len(),
    };
    std::fs::read_dir(dir).unwrap().map(|entry| size(entry.unwrap())).sum()
}

/// Test: with `--rolling`, old trials are removed, the trial with the worst incident is kept, and every message is counted
/// once: in the figures, as removed, or in the kept trial.
#[test]
fn old_trials_are_removed_and_the_one_with_the_worst_incident_is_kept() {
    const DISK: u64 = 200 * 1024;
    let bench = Bench::new();
    let mut command = bench.to_run(bench.tailbound(), "record", STUDY);
    command.args(["--for", "14s", "--disk", "200KiB", "--rolling"]);
    let mut run = bench.running(command, "measuring begins");
    bench.wait_for_event("measuring begins", 2);
    let pong = descendants(wait_for_measuring(run.id() as i32, "pong"))[0];
    signal_process(pong, libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(250));
    signal_process(pong, libc::SIGCONT);
    let mut largest = 0;
    while run.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(50));
        // Files can be renamed meanwhile.
        largest = largest.max(std::panic::catch_unwind(|| bytes(&bench.path("record/samples"))).unwrap_or(0));
    }
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bench.stderr());
    let ran = bench.log("controller.log").matches("measuring begins").count() as u64;
    let report = bench.report();
    let repeated = &report["run"]["repeated"];
    let removed = &repeated["removed"][0];
    let number = |of: &Value, member: &str| of[member].as_u64().unwrap_or_else(|| panic!("{member}: {repeated}"));
    let left = report["trials"].as_array().unwrap();
    assert!(left.len() as u64 + number(removed, "trials") == ran && number(removed, "trials") > 2, "{ran}: {repeated}");
    // Trial 1 was stopped.
    let kept = repeated["kept_trial_ids"].as_array().unwrap();
    assert!(kept.contains(&1.into()) && kept.len() < left.len(), "{repeated}");
    let condition = &report["conditions"][0];
    let worst = &condition["incidents"][0];
    assert!(worst["trial"] == 1 && worst["excess_ns"].as_i64().unwrap() > 100_000_000, "{worst}");
    let counted = number(&condition["counts"], "scheduled");
    let window = left.len() - kept.len();
    assert_eq!(condition["used_trial_ids"].as_array().unwrap().len(), window, "{condition}");
    assert_eq!((counted, number(removed, "scheduled")), (50 * window as u64, 50 * number(removed, "trials")));
    let longest = condition["round_trip"]["max_ns"].as_i64().unwrap();
    assert!(longest < worst["worst_ns"].as_i64().unwrap(), "a figure contains a kept trial: {longest}");
    assert_eq!((number(removed, "not_valid"), &repeated["disk_reached"]), (0, &false.into()), "{repeated}");
    assert!(number(repeated, "measured_ns") >= ran * 500_000_000, "{ran}: {repeated}");
    // A trial can begin while the record is just smaller than its limit. The page is written at the end.
    let page = std::fs::metadata(bench.path("record/report.html")).unwrap().len();
    let whole = bytes(&bench.path("record")) - page;
    assert!(largest > 0 && largest < DISK && whole < DISK + 100 * 1024, "{largest} and {whole} bytes");
    let files = std::fs::read_dir(bench.path("record/threads")).unwrap().count();
    assert!(files <= 2 * left.len(), "{files} thread tables of {} trials", left.len());
    let text = sentence(&report).replace('\u{202f}', " ");
    let words = ["trials were removed (`--rolling`): ", "incidents, which are listed.", "from the newest trials only."];
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    // A comparison does not use a trial that was chosen by its incident.
    let output = bench.tailbound().args(["compare", "record", "record", "--format", "json"]).output().unwrap();
    let compared: Value = serde_json::from_slice(&output.stdout).unwrap();
    let side = &compared["pairs"][0]["a"];
    assert!(compared["a"]["status"] == "valid" && side["left_out"].as_array().is_none_or(Vec::is_empty), "{compared}");
    assert_eq!(side["trials"].as_array().unwrap().len(), window, "{compared}");
}

fn signal_process(pid: i32, signal: i32) {
    // SAFETY: a process of a run that this test started.
    unsafe { libc::kill(pid, signal) };
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
        refused(&["--for", "1h", "--rolling"]),
        refused(&["--for", "0s"]),
        refused(&["--for", "1h", "--disk", "much"]),
    ];
    insta::assert_snapshot!("refused", all.join("\n"));
}
