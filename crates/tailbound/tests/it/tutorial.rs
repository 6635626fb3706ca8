//! Test of the page "30 ms late": its commands, run word by word, find the planted program, its remedy, and prove a fix.

use crate::support::Bench;
use crate::support::chapter::{of_this_build, run_with, steps};
use crate::support::host::is_root;
use serde_json::Value;
use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/src/tutorial.md");

fn json(directory: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(directory.join(name)).unwrap()).unwrap()
}

#[test]
fn the_page_finds_the_planted_program_and_proves_the_fix() {
    if !is_root() || std::thread::available_parallelism().unwrap().get() < 2 {
        println!("skipped: the page needs root and two CPUs");
        return;
    }
    let steps = steps(PAGE);
    let bench = Bench::new();
    let (printed, all) = run_with(of_this_build(), bench.dir.path(), &steps);
    let last = &steps[printed.len() - 1];
    assert!(all, "docs/src/tutorial.md:{}: a command failed: {}\n{}", last.line, last.commands, printed.join("\n"));
    // The study cannot have the name from anywhere but from the kernel.
    assert!(!std::fs::read_to_string(bench.path("late.yaml")).unwrap().contains("camera-task"));
    let worst = &json(bench.dir.path(), "before.json")["conditions"][0]["incidents"][0];
    let cause = &worst["ledger"][0];
    assert_eq!((&cause["cause"], &cause["by"]["name"]), (&"waited_for_cpu".into(), &"camera-task".into()), "{worst}");
    let html = std::fs::read_to_string(bench.path("before/report.html")).unwrap();
    assert!(html.contains("waited for CPU 1") && html.contains("camera-task"), "the page does not name the program");
    let receipt = json(&bench.path("tuned"), "receipt.json");
    assert_eq!(receipt["kept"][0], "ends.pong.scheduling={ policy: fifo, priority: 51 }", "{receipt}");
    assert_eq!(receipt["gain"]["confirmed"], true, "{receipt}");
    let compared = json(bench.dir.path(), "compared.json");
    let statistics = compared["pairs"][0]["statistics"].as_array().unwrap();
    let p99 = statistics.iter().find(|s| s["statistic"] == "p99").unwrap();
    // Where the machine itself delays messages by milliseconds, two runs can be too different for a verdict; the receipt has the
    // proof by pairs then. Limit: without the program, the figure is less than half of what it was.
    let is_undecided = p99["verdict"] == "no_difference_found" && p99["ratio"].as_f64().unwrap() < 0.5;
    assert!(p99["verdict"] == "faster" || is_undecided, "{p99}");
}
