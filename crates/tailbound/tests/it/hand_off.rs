//! Tests of a second thread (`hand_off`) that gets too little CPU time to process the received messages.

use crate::support::{Bench, exit_and_stderr};
use serde_json::Value;
use tailbound_host::scheduling;

/// Test: a starved second thread is a finding with the number of dropped messages. The trial stays valid, and every
/// slot has an outcome.
#[test]
fn a_second_thread_that_is_too_slow_is_a_finding() {
    let bench = Bench::new();
    // The second threads run only if nothing else wants CPU 0, and loads want it all the time.
    let study = "study: hand-off\nquestion: q\nrate: 5 kHz\ndriver: udp\npath: loopback\nplace: process\npayload: 64 B\n\
                 measure: { ping-pong: { slots: 15000, warm_up: 0, timeout: 1 s, receive: block, \
                 hand_off: { thread: { cpus: \"0\" } } } }\n\
                 scheduling: { processing: { policy: idle } }\n\
                 load: [{ run: cpu, scheduling: { cpus: \"0\" } }, { run: cpu, scheduling: { cpus: \"0\" } }]\n";
    let (code, text) = exit_and_stderr(&bench.run(study, &[]));
    assert_eq!(code, 0, "{text}");
    let report = bench.report();
    let counts = &report["conditions"][0]["counts"];
    let count = |outcome: &str| counts[outcome].as_u64().unwrap();
    let sum = count("answered") + count("after_timeout") + count("lost") + count("not_sent");
    assert_eq!((count("scheduled"), sum), (15_000, 15_000), "{counts}");
    let ends = report["trials"][0]["ends"].as_object().unwrap();
    let dropped: u64 = ends.values().filter_map(|end| end["hand_off_dropped"].as_u64()).sum();
    assert!(dropped > 0 && count("lost") >= dropped, "{dropped} messages dropped, {counts}");
    let finding = report["findings"].as_array().unwrap().iter().find(|f| f["code"] == "hand_off_dropped");
    let text = finding.unwrap_or_else(|| panic!("{}", report["findings"]))["text"].as_str().unwrap();
    assert!(text.contains("did not take received messages in time"), "{text}");
}

/// Test: what ordinary messages wait for when a second thread on another CPU has to be woken is in the report by itself, and the
/// parts of their time do not exceed it.
#[test]
fn the_report_says_what_waking_a_second_thread_costs() {
    if scheduling::allowed_cpus().len() < 2 {
        println!("skipped: needs two CPUs");
        return;
    }
    let bench = Bench::new();
    let study = "study: hand-off\nquestion: q\nrate: 500 Hz\ndriver: udp\npath: loopback\nplace: process\npayload: 64 B\n\
                 measure: { ping-pong: { slots: 1000, warm_up: 50, receive: block } }\nattribution: machine\n\
                 ends: { ping: { cpus: \"0\" }, pong: { cpus: \"0\" } }\n\
                 factors: { measure.hand_off: [none, { thread: { cpus: \"1\" } }] }\n";
    let (code, text) = exit_and_stderr(&bench.run(study, &[]));
    assert_eq!(code, 0, "{text}");
    if !bench.is_recorded_by_bpf("ping") {
        return;
    }
    let report = bench.report();
    let waits_of_second_thread = |condition: &Value| {
        let usual = &condition["usual"];
        let parts = usual["parts"].as_array().unwrap();
        let ns = |part: &Value| part["mean_ns"].as_i64().unwrap();
        let sum: i64 = parts.iter().map(ns).sum();
        assert!(usual["messages"] == 40 && sum <= usual["mean_ns"].as_i64().unwrap(), "{usual:#}");
        let waits = |part: &&Value| ["idle_exit", "waited_for_cpu"].contains(&part["cause"].as_str().unwrap());
        let of_second = parts.iter().filter(|part| part["thread"] == "tb-process" && part["leg"] == "turnaround");
        of_second.filter(waits).map(ns).sum::<i64>()
    };
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(waits_of_second_thread(&conditions[0]), 0);
    // Waking a thread on another CPU takes longer than a system call.
    assert!(waits_of_second_thread(&conditions[1]) > 500, "{:#}", conditions[1]["usual"]);
    let page = bench.tailbound().args(["report", "record"]).output().unwrap();
    assert!(String::from_utf8_lossy(&page.stdout).contains("thread `tb-process`"));
}
