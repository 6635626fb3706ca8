//! Tests of `tailbound ping` and `tailbound quick`: measurements without a study file.

use crate::support::processes::wait_for_measuring;
use crate::support::{Bench, exit_and_stderr, succeeded};
use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Test: each driver of the binary measures without a file, the answer is short, and the printed study is the one that ran.
#[test]
fn a_ping_ends_with_the_answer_and_its_study() {
    for driver in ["udp", "cyclonedds"] {
        let bench = Bench::new();
        let line = ["ping", driver, "--for", "2s", "--rate", "500Hz", "--size", "1KiB", "--out", "record"];
        let output = bench.tailbound().args(line).output().unwrap();
        succeeded(&output);
        let text = out(&output);
        let (answer, study) = text.split_once("The study that this was").expect("the study is printed");
        assert!(answer.lines().count() <= 25, "{answer}");
        assert!(answer.contains("half of the messages return within"), "{answer}");
        let study: String = study.lines().skip(2).map(|line| format!("{}\n", line.trim_start())).collect();
        assert_eq!(bench.manifest()["plan"]["source"].as_str(), Some(study.as_str()));
        let counts = &bench.report()["conditions"][0]["counts"];
        assert_eq!((counts["scheduled"].as_u64(), counts["lost"].as_u64()), (Some(1_000), Some(0)), "{counts}");
    }
}

/// Test: the study can be saved, and `run` repeats it.
#[test]
fn the_study_of_a_ping_can_be_run() {
    let bench = Bench::new();
    let ping = ["ping", "--for", "1s", "--save-study", "s.yaml", "--out", "record"];
    let output = bench.tailbound().args(ping).output().unwrap();
    succeeded(&output);
    assert!(!out(&output).contains("The study that this was"));
    let source = bench.manifest()["plan"]["source"].clone();
    assert_eq!(source.as_str(), Some(fs::read_to_string(bench.path("s.yaml")).unwrap().as_str()));
    let run = ["run", "s.yaml", "--out", "again", "--set", "measure.duration=1s"];
    succeeded(&bench.tailbound().args(run).output().unwrap());
    assert!(bench.path("again/report.html").exists());
}

/// Test: on a terminal, a line with rate, quantiles and losses is shown while the ends measure.
#[test]
fn a_terminal_shows_round_trips_meanwhile() {
    let bench = Bench::new();
    let line = format!("{} ping --for 5s --out record", env!("CARGO_BIN_EXE_tailbound"));
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(bench.dir.path());
    command.env("TAILBOUND_STATE_DIR", bench.path("state")).env("TERM", "xterm").stdin(Stdio::null());
    let output = command.output().expect("script of util-linux");
    succeeded(&output);
    let text = out(&output).replace(['\u{202f}', '\u{a0}', '\u{2009}'], " ");
    let shown = text.split(['\r', '\n']).find(|line| line.contains("/s, p50 ") && line.contains("lost"));
    let shown = shown.unwrap_or_else(|| panic!("no figures: {text}"));
    assert!(shown.contains(" p99 ") && shown.contains(" max ") && shown.contains(" 0 lost"), "{shown}");
}

/// Test: Ctrl-C ends a ping with the figures so far, and a record that says that it is incomplete.
#[test]
fn an_interrupted_ping_shows_the_figures_so_far() {
    let bench = Bench::new();
    let mut command = bench.tailbound();
    command.args(["ping", "--for", "10min", "--out", "record"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for_measuring(child.id() as i32, "ping");
    std::thread::sleep(Duration::from_secs(2));
    // SAFETY: a process that this test started.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    let text = out(&output);
    assert_eq!(output.status.code(), Some(6), "{text}{}", exit_and_stderr(&output).1);
    assert!(text.contains("half of the messages return within") && text.contains("study: ping"), "{text}");
    assert_eq!(bench.manifest()["status"], "incomplete");
    let journals = fs::read_dir(bench.path("state/journal")).unwrap().count();
    assert_eq!(journals, 0);
}

/// Test: the answer of `quick` has at most 25 lines and names the page.
#[test]
fn quick_ends_in_few_lines() {
    let bench = Bench::new();
    let output = bench.tailbound().args(["quick", "--set", "measure.slots=100"]).output().unwrap();
    succeeded(&output);
    let text = out(&output);
    assert!(text.lines().count() <= 25, "{} lines: {text}", text.lines().count());
    assert!(text.trim_end().ends_with("/report.html") && text.contains("p99.9"), "{text}");
    assert!(bench.path("latest/report.html").exists());
    let whole = bench.tailbound().args(["report", "latest"]).output().unwrap();
    assert!(out(&whole).lines().count() > text.lines().count());
    // Two records of it can be compared: the verdict about the median needs five trials a side.
    let compared = bench.tailbound().args(["compare", "latest", "latest", "--format", "json"]).output().unwrap();
    let compared: serde_json::Value = serde_json::from_slice(&compared.stdout).unwrap();
    let median = &compared["pairs"][0]["statistics"][0];
    assert_eq!(
        (&median["statistic"], &median["verdict"]),
        (&"p50".into(), &"no_difference_found".into()),
        "{compared}"
    );
}
