//! Tests of a second thread (`hand_off`) that gets too little CPU time to process the received messages.

use crate::support::{Bench, exit_and_stderr};

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
