//! Tests of `tailbound budget` with flows: limits on throughput and on lost messages.

use crate::support::{Bench, exit_and_stderr};
use std::fs;

/// A flow with a fixed rate, so that the received amount is known: 2,000 messages of 1 KiB per second, 16.4 Mbit/s.
const STUDY: &str = "study: flows\nquestion: q\nmeasure: { throughput: { duration: 500 ms, ramp_up: 100 ms } }\n\
     quiet: off\nrate: 2 kHz\ndriver: udp\nplace: process\npath: loopback\npayload: 1 KiB\nrepeat: 5\n";

fn judged(bench: &Bench, budget: &str) -> (i32, String) {
    fs::write(bench.path("budget.yaml"), budget).unwrap();
    let output = bench.tailbound().args(["budget", "record", "budget.yaml"]).output().unwrap();
    let (code, err) = exit_and_stderr(&output);
    let out = String::from_utf8(output.stdout).unwrap() + &err;
    (code, out.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn what_a_flow_must_carry() {
    let bench = Bench::new();
    bench.record("record", STUDY, &[]);
    for (limit, expected, printed) in [
        ("samples/s: 1000", 0, "throughput samples/s, at least 1,000/s"),
        ("samples/s: 4000", 5, "throughput samples/s, at least 4,000/s"),
        ("Mbit/s: 8", 0, "at least 8 Mbit/s"),
        ("Mbit/s: 1 Gbit/s", 5, "at least 1,000 Mbit/s"),
        ("lost: none", 0, "throughput lost, none: 0 of"),
        ("lost: 1 %", 0, "throughput lost, at most 1 %"),
        ("lost: 0.001 %", 7, "the limit lies inside the 95 % interval"),
    ] {
        let (code, out) = judged(&bench, &format!("limits:\n  - throughput: {{ {limit} }}\n"));
        assert_eq!(code, expected, "{limit}: {out}");
        assert!(out.contains(printed), "{limit}: {out}");
    }
    let (code, out) = judged(&bench, "limits:\n  - round_trip: { p99: 1 ms }\n");
    assert_eq!(code, 2, "{out}");
    assert!(out.contains("the budget names `round_trip`") && out.contains("the condition has: throughput"), "{out}");

    // With half the rate, the throughput is 50 % lower.
    fs::rename(bench.path("record"), bench.path("accepted")).unwrap();
    bench.record("record", STUDY, &["rate=1 kHz"]);
    let against = |tolerance: &str| {
        let of = "throughput: [samples/s, Mbit/s, lost]";
        judged(&bench, &format!("baseline: {{ record: accepted, tolerance: {tolerance}, {of} }}\n"))
    };
    let (code, out) = against("20 %");
    assert_eq!(code, 5, "{out}");
    // A busy machine may send a little less than requested, in either record.
    let printed = "throughput samples/s against the baseline, at most 20 % less: ";
    let ratio = out.split(printed).nth(1).and_then(|rest| rest.get(..4)?.parse::<f64>().ok());
    assert!(ratio.is_some_and(|ratio| (0.4..0.6).contains(&ratio)), "{out}");
    assert!(out.contains("holds") && out.contains("throughput lost against the baseline"), "{out}");
    assert_eq!(against("70 %").0, 0);
}
