//! Tests of arrangements: real drivers with each number of processes, participants and executors, seen in /proc while
//! they measure.

use crate::support::processes::{descendants, wait_for_measuring};
use crate::support::{Bench, exit_and_stderr, succeeded};
use serde_json::Value;
use std::fs;

/// Numbers of processes, participants and executors of a tested arrangement.
type Numbers = (usize, usize, usize);
const ALL: [Numbers; 4] = [(1, 1, 1), (1, 2, 1), (1, 2, 2), (2, 2, 2)];

fn study(driver: &str, (processes, participants, executors): Numbers) -> String {
    // The history keeps every message: a thread that reads late on a busy machine must not look like a thread that does
    // not read.
    let qos = if driver != "udp" { "qos: { reliability: reliable, history: keep-all }\n" } else { "" };
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

/// Names of Tailbound's own threads in each measuring process of a run, read from /proc.
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

/// Identities of the participants of both ends, as the middleware itself reports them.
fn participants(report: &Value) -> std::collections::BTreeSet<String> {
    let ends = report["trials"][0]["ends"].as_object().unwrap().values();
    let guids = ends.flat_map(|e| e["transport"]["participants"].as_array().unwrap());
    guids.map(|g| g.as_str().unwrap().to_owned()).collect()
}

/// Names of the nodes of both ends.
fn nodes(report: &Value) -> std::collections::BTreeSet<String> {
    let ends = report["trials"][0]["ends"].as_object().unwrap().values();
    let names = ends.flat_map(|e| e["transport"]["nodes"].as_array().unwrap());
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn all_arrangements(driver: &str) {
    all_arrangements_with(driver, &|_| ());
}

/// `prepare` gives the command the environment that the driver needs.
fn all_arrangements_with(driver: &str, prepare: &dyn Fn(&mut std::process::Command)) {
    for numbers in ALL {
        let bench = Bench::new();
        let mut command = bench.to_run(bench.tailbound(), "record", &study(driver, numbers));
        prepare(&mut command);
        let child = bench.measuring(command);
        if numbers.0 == 2 {
            wait_for_measuring(child.id() as i32, "pong");
        }
        let threads = own_threads(child.id() as i32);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{driver} {numbers:?}: {}", bench.stderr());
        let expected: Vec<Vec<&str>> = match numbers {
            (1, _, 1) => vec![vec!["tb-ping"]],
            (1, _, _) => vec![vec!["tb-executor", "tb-ping"]],
            // The thread that waits for the order to stop is not an executor.
            _ => vec![vec!["tb-control", "tb-pong"], vec!["tb-ping"]],
        };
        assert_eq!(threads, expected, "{driver} {numbers:?}");
        let report = bench.report();
        let counts = &report["conditions"][0]["counts"];
        assert_eq!(counts["answered"].as_u64(), Some(500), "{driver} {numbers:?}: {counts}");
        assert_eq!(report["threads"].as_array().unwrap().len(), numbers.0, "{driver} {numbers:?}: processes");
        if driver == "rcl" {
            assert_eq!(nodes(&report).len(), numbers.1, "{numbers:?}: {}", report["trials"][0]["ends"]);
        }
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

/// With the real ROS 2: a participant is a context with a node.
#[test]
fn rcl() {
    let Some(ros) = crate::support::rcl::real() else { return };
    all_arrangements_with("rcl", &|command| ros.source(command));
}

#[cfg(feature = "system-tests")]
#[test]
fn fastdds() {
    if crate::support::fastdds::built().is_some() {
        all_arrangements("fastdds");
    }
}

/// Test of `rate: max` (stop-and-wait): the executor sends the next message when it has received the answer.
#[test]
fn stop_and_wait() {
    for numbers in [(1, 1, 1), (2, 2, 2)] {
        let bench = Bench::new();
        succeeded(&bench.run(&study("udp", numbers), &["rate=max"]));
        assert_eq!(bench.report()["conditions"][0]["counts"]["answered"].as_u64(), Some(500), "{numbers:?}");
    }
}

/// Test: in receive modes other than `executor`, two threads can wait in one shared session, and the waits of both
/// threads end.
#[test]
fn two_threads_wait_in_one_session() {
    for driver in ["udp", "cyclonedds"] {
        let text = study(driver, (1, 1, 1)).replace("executor }", "block }").replace(", executors: 1", "");
        let bench = Bench::new();
        succeeded(&bench.run(&text, &[]));
        assert_eq!(bench.report()["conditions"][0]["counts"]["answered"].as_u64(), Some(500), "{driver}");
    }
}

#[test]
fn a_driver_without_participants_refuses_the_arrangement() {
    let bench = Bench::new();
    let (code, text) = exit_and_stderr(&bench.run(&study("\"null\"", (1, 2, 1)), &[]));
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("driver null has one participant for each session"), "{text}");
}
