//! Processes, participants and executors: real drivers in each arrangement, looked at from outside while they measure.

mod support;

use serde_json::Value;
use std::fs;
use support::processes::{descendants, wait_for_measuring};
use support::{Bench, succeeded, told};

/// One after the other: what a busy machine delays is no finding here.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Processes, participants, executors.
type Numbers = (usize, usize, usize);
const ALL: [Numbers; 4] = [(1, 1, 1), (1, 2, 1), (1, 2, 2), (2, 2, 2)];

fn study(driver: &str, (processes, participants, executors): Numbers) -> String {
    // Every sample is kept: a thread that reads late on a busy machine must not look like one that does not read.
    let qos = if driver.ends_with("dds") { "qos: { reliability: reliable, history: keep-all }\n" } else { "" };
    format!(
        "study: arrangements\nquestion: q\n\
         measure: {{ ping-pong: {{ slots: 500, warm_up: 20, timeout: 2 s, receive: executor }} }}\n\
         rate: 500 Hz\ndriver: {driver}\npath: loopback\npayload: 64 B\n{qos}arrangement: {{ \
         processes: {processes}, participants: {participants}, executors: {executors} }}\n"
    )
}

fn comm(path: &str) -> String {
    fs::read_to_string(format!("{path}/comm")).unwrap_or_default().trim().to_owned()
}

/// Names of our own threads in each measuring process of a run, as /proc tells.
fn own_threads(controller: i32) -> Vec<Vec<String>> {
    let ours = |pid: i32| {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let mut names: Vec<String> = tasks.map(|t| comm(&t.path().display().to_string())).collect();
        names.retain(|n| n.starts_with("tb-"));
        names.sort();
        names
    };
    let measuring = |pid: &i32| ["tb-ping", "tb-pong"].contains(&comm(&format!("/proc/{pid}")).as_str());
    let mut all: Vec<_> = descendants(controller).into_iter().filter(measuring).map(ours).collect();
    all.sort();
    all
}

/// The participants that the middleware itself tells of, of both ends.
fn participants(report: &Value) -> std::collections::BTreeSet<String> {
    let ends = report["trials"][0]["ends"].as_object().unwrap().values();
    let guids = ends.flat_map(|e| e["transport"]["participants"].as_array().unwrap());
    guids.map(|g| g.as_str().unwrap().to_owned()).collect()
}

fn all_arrangements(driver: &str) {
    let _alone = alone();
    for numbers in ALL {
        let bench = Bench::new();
        let child = bench.begin(&study(driver, numbers));
        if numbers.0 == 2 {
            wait_for_measuring(child.id() as i32, "pong");
        }
        std::thread::sleep(std::time::Duration::from_millis(300));
        let threads = own_threads(child.id() as i32);
        succeeded(&child.wait_with_output().unwrap());
        let expected: Vec<Vec<&str>> = match numbers {
            (1, _, 1) => vec![vec!["tb-ping"]],
            (1, _, _) => vec![vec!["tb-executor", "tb-ping"]],
            // The thread that waits for the order to stop serves nobody.
            _ => vec![vec!["tb-control", "tb-pong"], vec!["tb-ping"]],
        };
        assert_eq!(threads, expected, "{driver} {numbers:?}");
        let report = bench.report();
        let counts = &report["conditions"][0]["counts"];
        assert_eq!(counts["answered"].as_u64(), Some(500), "{driver} {numbers:?}: {counts}");
        assert_eq!(report["threads"].as_array().unwrap().len(), numbers.0, "{driver} {numbers:?}: processes");
        if driver.ends_with("dds") {
            assert_eq!(participants(&report).len(), numbers.1, "{numbers:?}: {}", report["trials"][0]["ends"]);
        }
    }
}

#[test]
fn udp() {
    all_arrangements("udp");
}

#[test]
fn cyclonedds() {
    all_arrangements("cyclonedds");
}

#[cfg(feature = "system-tests")]
#[test]
fn fastdds() {
    if support::fastdds::built().is_some() {
        all_arrangements("fastdds");
    }
}

/// Stop-and-wait: the executor sends the next when it has taken the answer.
#[test]
fn stop_and_wait() {
    let _alone = alone();
    for numbers in [(1, 1, 1), (2, 2, 2)] {
        let bench = Bench::new();
        succeeded(&bench.run(&study("udp", numbers), &["rate=max"]));
        assert_eq!(bench.report()["conditions"][0]["counts"]["answered"].as_u64(), Some(500), "{numbers:?}");
    }
}

/// The other receive modes may share a session too: two threads wait in it, and both end.
#[test]
fn two_threads_wait_in_one_session() {
    let _alone = alone();
    for driver in ["udp", "cyclonedds"] {
        let text = study(driver, (1, 1, 1)).replace("executor }", "block }").replace(", executors: 1", "");
        let bench = Bench::new();
        succeeded(&bench.run(&text, &[]));
        assert_eq!(bench.report()["conditions"][0]["counts"]["answered"].as_u64(), Some(500), "{driver}");
    }
}

#[test]
fn a_driver_without_participants_of_its_own_says_so() {
    let bench = Bench::new();
    let (code, text) = told(&bench.run(&study("\"null\"", (1, 2, 1)), &[]));
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("driver null has one participant for each session"), "{text}");
}
