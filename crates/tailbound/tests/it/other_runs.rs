//! Tests of a run that begins while another run measures on the same host.

use crate::support::processes::wait_for_measuring;
use crate::support::{Bench, exit_and_stderr};
use std::process::Stdio;

fn study(slots: u32) -> String {
    format!(
        "study: other-runs\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {slots}, warm_up: 0, timeout: 1 s }} }}\n\
         rate: 1 kHz\ndriver: udp\npath: loopback\nplace: process\n"
    )
}

/// Test: a run that begins during another run names the other run in a warning, which its report repeats.
#[test]
fn a_run_beside_another_run_says_so() {
    let bench = Bench::new();
    let long = bench.study(&study(8_000));
    let mut first = bench.tailbound();
    first.arg("run").arg(&long).arg("--out").arg(bench.path("first")).stdout(Stdio::null()).stderr(Stdio::piped());
    let first = first.spawn().unwrap();
    wait_for_measuring(first.id() as i32, "ping");
    // Without the flag, the second run is refused, and the message names process and record of the first one.
    let (code, text) = exit_and_stderr(&bench.run(&study(200), &[]));
    assert_eq!(code, 3, "{text}");
    let named = format!("process {} runs `", first.id());
    assert!(
        text.contains(&named) && text.contains("/first; both would use") && text.contains("--allow-concurrent"),
        "{text}"
    );
    assert!(!bench.path("record").exists(), "nothing is left of it");
    let mut second = bench.to_run(bench.tailbound(), "record", &study(200));
    let second = second.arg("--allow-concurrent").output().unwrap();
    assert_eq!(exit_and_stderr(&second).0, 0, "{}", exit_and_stderr(&second).1);
    let (code, text) = exit_and_stderr(&first.wait_with_output().unwrap());
    assert_eq!(code, 0, "{text}");
    let report = bench.report();
    let warnings = report["warnings"].as_array().unwrap();
    let others: Vec<_> = warnings.iter().filter(|w| w["code"] == "other_run").collect();
    let [other] = others.as_slice() else { panic!("{warnings:?}") };
    let what = other["text"].as_str().unwrap();
    assert!(what.contains("was active on this host when trial 1 of 1 began") && what.contains("first"), "{what}");
    assert!(String::from_utf8_lossy(&second.stdout).contains("another run of Tailbound"), "the report shows it");
}
