//! Flows of several publishers: each subscriber receives what all of them send.
#![cfg(feature = "system-tests")]

mod support;

use std::collections::BTreeMap;
use support::{Bench, succeeded, told};
use tailbound_model::{FlowCounts, FlowPart, is_publisher};
use tailbound_record::Record;

fn study(measure: &str, rest: &str) -> String {
    format!("study: many\nquestion: q\nmeasure: {{ throughput: {{ {measure} }} }}\nquiet: off\n{rest}\n")
}

/// What each end counted: those that send, those that receive.
fn counts(bench: &Bench) -> [BTreeMap<String, FlowCounts>; 2] {
    let record = Record::open(&bench.path("record")).unwrap();
    let ends = &record.manifest.trials[0].ends;
    let counted = |end: &String| ends[end].flow.clone().unwrap_or_else(|| panic!("{end} has no counts"));
    let side = |sends: bool| ends.keys().filter(move |end| is_publisher(end) == sends).map(|e| (e.clone(), counted(e)));
    [side(true).collect(), side(false).collect()]
}

/// At a rate each message has its time: three that send have sent three times as much as one, and all of it arrives.
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
    // What the page tells is what the ends wrote down: from the first to the last first message, on one clock.
    let first = |counts: &FlowCounts| counts.part(FlowPart::RampUp).first_ns;
    let begun = sent.values().map(first).max().unwrap() - sent.values().map(first).min().unwrap();
    let report = bench.report();
    let flow = &report["conditions"][0]["flow"];
    assert_eq!(flow["trials"][0]["begun_within_ns"].as_i64(), Some(begun), "{flow}");
    assert_eq!(
        (flow["publishers"].as_u64(), flow["sent"].as_u64(), flow["lost"].as_u64()),
        (Some(3), Some(1500), Some(0))
    );
    // One of them pings: one message in ten of its 600 and of its ramp-up alike.
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
    // One that is blocked all the time is blocked for the whole window, three are not for three of them.
    let blocked = report["conditions"][0]["flow"]["blocked_share"]["median"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&blocked), "{blocked}");
}

#[test]
fn numbers_of_publishers_that_cannot_be_are_refused() {
    let bench = Bench::new();
    for number in [0, 65] {
        let text = study(&format!("publishers: {number}"), "driver: udp\nplace: process");
        let (_, said) = told(&bench.run(&text, &[]));
        assert!(said.contains(&format!("{number} publishers are not possible")), "{said}");
    }
    let text = study("publishers: 2", "driver: udp\nplace: same-process");
    let (_, said) = told(&bench.run(&text, &[]));
    assert!(said.contains("2 publishers are processes of their own, but the place is one process"), "{said}");
}
