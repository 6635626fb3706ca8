//! Test: the trace of a real run has the messages and the events that its record has.

use crate::support::{Bench, succeeded};
use serde_json::Value;
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
    path: loopback\nends: { ping: { cpus: \"0\" }, pong: { cpus: \"1\" } }\nreport: { late_above: 1 us }\n";

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
    assert_eq!((begun("message "), begun("turnaround of message ")), (300, 300));
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
    let number = |of: fn(&SwitchKind) -> bool| seen.iter().flat_map(|s| &s.events).filter(|e| of(&e.what)).count();
    assert_eq!(events("sched_waking"), number(|e| matches!(e, SwitchKind::Wake { .. })));
    assert!(events("sched_waking") > 300);
    assert_eq!(events("irq_handler_entry"), events("irq_handler_exit"));
    assert_eq!(events("softirq_entry"), events("softirq_exit"));
    // Two agents that watch the same CPU record each of its switches; the trace has it once, and adds some.
    let most =
        seen.iter().map(|s| s.events.iter().filter(|e| matches!(e.what, SwitchKind::Switch { .. })).count()).max();
    assert!(events("sched_switch") >= most.unwrap(), "{} {most:?}", events("sched_switch"));
}
