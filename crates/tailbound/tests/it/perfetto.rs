//! Test: the trace of a real run has the messages and the events that its record has.

use crate::support::{Bench, succeeded};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tailbound_model::{SwitchKind, SwitchScope, Switches};

/// Path of a Python interpreter with the schema of Perfetto; `dev/setup test` installs this interpreter.
fn python() -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    std::env::var_os("TAILBOUND_PYTHON").map_or(made, PathBuf::from)
}

// Every message is later than this limit, so that the record keeps events.
const STUDY: &str = "study: perfetto\nquestion: q\n\
    measure: { ping-pong: { slots: 300, warm_up: 0, timeout: 200 ms } }\nrate: 1 kHz\ndriver: udp\n\
    path: loopback\nends: { ping: { cpus: \"0\" }, pong: { cpus: \"1\" } }\nreport: { late_above: 1 us }\n\
    attribution: machine\n";

#[test]
fn the_trace_of_a_run_has_its_messages_and_events() {
    let bench = Bench::new();
    succeeded(&bench.run(STUDY, &[]));
    let output =
        bench.tailbound().args(["report", "record", "--format", "perfetto", "--out", "trace"]).output().unwrap();
    succeeded(&output);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/decode_trace.py");
    let decoded = Command::new(python()).arg(script).arg(bench.path("trace")).output().unwrap();
    succeeded(&decoded);
    let packets: Vec<Value> = serde_json::from_slice(&decoded.stdout).unwrap();
    let begun = |name: &str| {
        let names = packets.iter().filter_map(|p| p["track_event"].get("name")?.as_str());
        names.filter(|found| found.starts_with(name)).count()
    };
    // The messages around the incidents that the report lists, and those whose events were kept.
    assert!((100..=300).contains(&begun("message ")), "{}", begun("message "));
    assert_eq!(begun("message "), begun("turnaround of message "));
    let mut seen = Vec::new();
    for end in ["ping", "pong"] {
        let text = std::fs::read(bench.path(&format!("record/switches/0-{end}.json"))).unwrap();
        seen.push(serde_json::from_slice::<Switches>(&text).unwrap());
    }
    if seen.iter().any(|s| !matches!(s.scope, SwitchScope::Cpus(_))) {
        println!("skipped: whole CPUs cannot be watched, so that the number of events is not compared");
        return;
    }
    let events = |name: &str| {
        let all = packets.iter().filter_map(|p| p["ftrace_events"].get("event")?.as_array()).flatten();
        all.filter(|e| e.get(name).is_some()).count()
    };
    // Each wake-up of the record is in the trace, once if both agents recorded it.
    let cpu = |p: &Value| p["ftrace_events"]["cpu"].as_u64().map(|cpu| (cpu, p["ftrace_events"]["event"].clone()));
    let mut woken: BTreeSet<(u64, i64, i64)> = BTreeSet::new();
    for (cpu, events) in packets.iter().filter_map(cpu) {
        for event in events.as_array().unwrap().iter().filter(|e| e.get("sched_waking").is_some()) {
            woken.insert((cpu, event["sched_waking"]["pid"].as_i64().unwrap(), event["timestamp"].as_i64().unwrap()));
        }
    }
    let mut recorded = BTreeSet::new();
    for event in seen.iter().flat_map(|s| &s.events) {
        if let SwitchKind::Wake { thread, .. } = event.what {
            let of = |at_ns: i64| (u64::from(event.cpu), i64::from(thread), at_ns);
            recorded.insert(of(event.at_ns));
            let same = woken.range(of(event.at_ns - 20_000)..=of(event.at_ns + 20_000));
            assert!(same.count() > 0, "{event:?}");
        }
    }
    assert!(woken.len() > 100 && woken.is_subset(&recorded), "{} of {}", woken.len(), recorded.len());
    assert_eq!(events("irq_handler_entry"), events("irq_handler_exit"));
    assert_eq!(events("softirq_entry"), events("softirq_exit"));
    // Two agents that watch the same CPU record each of its switches; the trace has it once, and adds some.
    let most =
        seen.iter().map(|s| s.events.iter().filter(|e| matches!(e.what, SwitchKind::Switch { .. })).count()).max();
    assert!(events("sched_switch") >= most.unwrap(), "{} {most:?}", events("sched_switch"));
}
