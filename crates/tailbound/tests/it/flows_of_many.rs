//! Tests of flows of several publishers: each subscriber receives the messages of all publishers.

use crate::support::{Bench, exit_and_stderr, succeeded};
use std::collections::BTreeMap;
use tailbound_model::{FlowCounts, FlowPart, is_publisher};
use tailbound_record::Record;

fn study(measure: &str, rest: &str) -> String {
    format!("study: many\nquestion: q\nmeasure: {{ throughput: {{ {measure} }} }}\nquiet: off\n{rest}\n")
}

/// Message counts of each end by name: first the counts of the publishers, then the counts of the subscribers.
fn counts(bench: &Bench) -> [BTreeMap<String, FlowCounts>; 2] {
    let record = Record::open(&bench.path("record")).unwrap();
    let ends = &record.manifest.trials[0].ends;
    let counted = |end: &String| ends[end].flow.clone().unwrap_or_else(|| panic!("{end} has no counts"));
    let side = |sends: bool| ends.keys().filter(move |end| is_publisher(end) == sends).map(|e| (e.clone(), counted(e)));
    [side(true).collect(), side(false).collect()]
}

/// Test of three publishers with a rate: together they send three times as many messages as one publisher, and all
/// messages arrive.
#[test]
fn three_publishers_in_namespaces_of_their_own_begin_together() {
    let bench = Bench::new();
    let text = study(
        "duration: 1 s, ramp_up: 200 ms, publishers: 3, subscribers: 2, spread: namespaces, ping_every: 10",
        "driver: udp\nplace: netns\npath: bridge\nrate: 500 Hz",
    );
    succeeded(&bench.run(&text, &[]));
    let [sent, received] = counts(&bench);
    assert_eq!(sent.keys().collect::<Vec<_>>(), ["ping", "ping2", "ping3"]);
    assert_eq!(received.keys().collect::<Vec<_>>(), ["pong", "pong2"]);
    let all: u64 = sent.values().map(FlowCounts::messages).sum();
    for (name, counts) in &sent {
        assert_eq!(counts.part(FlowPart::Window).messages, 500, "{name}");
    }
    for (name, counts) in &received {
        assert_eq!((counts.messages(), counts.next, counts.missing), (all, all, 0), "{name}");
        assert_eq!((counts.foreign, counts.duplicates, counts.out_of_order), (0, 0, 0), "{name}");
    }
    // The report prints the time between the first messages of the first and the last publisher, which the ends
    // measured on one clock.
    let first = |counts: &FlowCounts| counts.part(FlowPart::RampUp).first_ns;
    let begun = sent.values().map(first).max().unwrap() - sent.values().map(first).min().unwrap();
    let report = bench.report();
    let flow = &report["conditions"][0]["flow"];
    assert_eq!(flow["trials"][0]["begun_within_ns"].as_i64(), Some(begun), "{flow}");
    assert_eq!(
        (flow["publishers"].as_u64(), flow["sent"].as_u64(), flow["lost"].as_u64()),
        (Some(3), Some(1500), Some(0))
    );
    // Only one publisher pings: one in ten of its messages, also in the ramp-up.
    assert_eq!(
        report["conditions"][0]["counts"]["scheduled"].as_u64(),
        Some(50),
        "{}",
        report["conditions"][0]["counts"]
    );
    let told = report["findings"].as_array().unwrap().iter().find(|f| f["code"] == "flow").unwrap();
    assert!(told["text"].as_str().unwrap().contains("3 publishers send. They began within "), "{told}");
}

#[test]
fn reliable_publishers_at_full_speed_lose_nothing() {
    let bench = Bench::new();
    let text = study(
        "duration: 1 s, ramp_up: 200 ms, publishers: 3, subscribers: 2",
        "driver: cyclonedds\nplace: process\npayload: 256 B\n\
         qos: { reliability: { reliable: { max_blocking_time: 2 s } }, history: keep-all }",
    );
    succeeded(&bench.run(&text, &[]));
    let [sent, received] = counts(&bench);
    let all: u64 = sent.values().map(FlowCounts::messages).sum();
    assert!(sent.len() == 3 && sent.values().all(|c| c.part(FlowPart::Window).messages > 0), "{sent:?}");
    for (name, counts) in &received {
        assert_eq!((counts.messages(), counts.missing, counts.duplicates), (all, 0, 0), "{name}");
    }
    let report = bench.report();
    let trial = &report["conditions"][0]["flow"]["trials"][0];
    let in_window: u64 = sent.values().map(|c| c.part(FlowPart::Window).messages).sum();
    assert_eq!(trial["sent"].as_u64(), Some(in_window));
    // The share of slow send calls is at most 1, although three publishers send.
    let slow = report["conditions"][0]["flow"]["slow_calls_share"]["median"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&slow), "{slow}");
}

#[test]
fn impossible_numbers_of_publishers_are_refused() {
    let bench = Bench::new();
    for number in [0, 65] {
        let text = study(&format!("publishers: {number}"), "driver: udp\nplace: process");
        let (_, printed) = exit_and_stderr(&bench.run(&text, &[]));
        assert!(printed.contains(&format!("{number} publishers are not possible")), "{printed}");
    }
    let text = study("publishers: 2", "driver: udp\nplace: same-process");
    let (_, printed) = exit_and_stderr(&bench.run(&text, &[]));
    assert!(printed.contains("2 publishers are processes of their own, but the place is one process"), "{printed}");
}
