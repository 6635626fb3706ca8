//! Tests of `tailbound tune` with a planted cause: a real-time program that keeps the CPU of the pong busy in bursts.

use crate::support::host::stands_still;
use crate::support::{Bench, exit_and_stderr, may_be_real_time};
use crate::tune_export::receipt_of;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A change that answers the same cause word as the remedy and does not help: the priority is below the program's.
const DECOY: &str = "ends.pong.scheduling={ policy: fifo, priority: 20 }";

/// Keeps its CPU busy for 4 of 20 ms, until its standard input ends.
const HOG: &str = "
import sys, threading, time
threading.Thread(target=lambda: (sys.stdin.read(), __import__('os')._exit(0)), daemon=True).start()
while True:
    until = time.monotonic() + 0.004
    while time.monotonic() < until: pass
    time.sleep(0.016)
";

/// The planted program; it ends with this value.
struct Hog(Child);

impl Hog {
    fn start() -> Hog {
        let mut command = Command::new("chrt");
        command.args(["--fifo", "50", "taskset", "--cpu-list", "1", "python3", "-c", HOG]).stdin(Stdio::piped());
        Hog(command.spawn().unwrap())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn study() -> String {
    "study: hog\nmeasure: { ping-pong: { slots: 600, warm_up: 50, receive: block } }\nrate: 1 kHz\ndriver: udp\n\
     path: veth\nplace: netns\nquiet: off\nattribution: auto\n"
        .to_owned()
}

/// Makes the files of a run look as if this host had been rebooted since, with another kernel command line before.
fn plant_a_reboot(run: &Path) {
    let now = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let replace = |name: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(run.join(name)).unwrap();
        assert!(text.contains(from), "{name} lacks {from}: {text}");
        std::fs::write(run.join(name), text.replace(from, to)).unwrap();
    };
    for name in ["tune.json", "pairs.jsonl"] {
        replace(name, now.trim(), "the-boot-before");
    }
    replace("tune.json", "\"kernel.cmdline\": \"", "\"kernel.cmdline\": \"planted ");
}

/// Test: the program is the cause with the largest share, the decoy was tried and reverted, a change at the pong was kept, its gain is
/// confirmed, and the limit of the budget is judged.
fn check_receipt(receipt: &Value) {
    assert!(receipt["causes_before"][0]["text"].as_str().unwrap().contains("python3"), "{receipt}");
    assert!(receipt["causes_before"][0]["share"].as_f64().unwrap() > 0.5, "{receipt}");
    let tried = receipt["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 3, "{receipt}");
    assert_eq!((&tried[2]["settings"][0], &tried[2]["outcome"]), (&DECOY.into(), &"reverted".into()), "{receipt}");
    let kept = receipt["kept"].as_array().unwrap();
    assert!(kept.iter().any(|s| s.as_str().unwrap().starts_with("ends.pong.")), "{receipt}");
    let gain = &receipt["gain"];
    assert_eq!(gain["confirmed"], true, "{receipt}");
    assert!(gain["ratio"][2].as_f64().unwrap() < 1.0, "{receipt}");
    assert_eq!(gain["pairs"], 12);
    let limit = &receipt["limit"];
    assert_eq!((&receipt["figure"], &limit["at_most_ns"]), (&"p99".into(), &1000.into()), "{receipt}");
    assert_eq!((&limit["before"]["met"], &limit["after"]["met"]), (&"not_met".into(), &"not_met".into()), "{receipt}");
}

/// Test: the loop finds the program, keeps a change that answers it and not the decoy, reports its gain from fresh trials, and after
/// an interruption and a reboot goes on without measuring the decisions again.
#[test]
fn a_real_time_program_is_found_and_answered() {
    if !may_be_real_time() || std::thread::available_parallelism().unwrap().get() < 2 {
        println!("skipped: the test needs real-time priorities and two CPUs");
        return;
    }
    let bench = Bench::new();
    let path = bench.study(&study());
    // No round trip takes less than the limit.
    std::fs::write(bench.path("budget.yaml"), "limits: [{ from_intended: { lost: none, p99: 1 us } }]\n").unwrap();
    let hog = Hog::start();
    let tune = |attempt: usize| {
        let out = bench.path(&format!("tuned-{attempt}"));
        let mut command = bench.tailbound();
        command.args(["tune", "--yes", "--beside", "--candidates", "2", "--try", DECOY, "--for"]);
        command.arg(bench.path("budget.yaml")).arg("--out").arg(&out).arg(&path);
        let (code, text) = exit_and_stderr(&command.output().unwrap());
        (code, text, out)
    };
    // If the machine makes the equal pairs vary too much, the run is refused (exit code 7), as it must be.
    let Some((code, text, out)) = (0..3).map(tune).find(|(code, ..)| *code != 7) else {
        drop(hog);
        assert!(stands_still(), "three times exit code 7");
        return;
    };
    drop(hog);
    assert_eq!(code, 0, "{text}");
    let receipt: Value = serde_json::from_slice(&std::fs::read(out.join("receipt.json")).unwrap()).unwrap();
    check_receipt(&receipt);

    // Without the receipt and with half of the last line, as after a kill, the confirmation is measured again, and nothing else;
    // after a reboot, equal pairs before it.
    std::fs::remove_file(out.join("receipt.json")).unwrap();
    let pairs = std::fs::read_to_string(out.join("pairs.jsonl")).unwrap();
    let last = pairs.trim_end().rfind('\n').unwrap();
    assert!(pairs[last..].contains("confirm"), "{pairs}");
    std::fs::write(out.join("pairs.jsonl"), &pairs[..last + 20]).unwrap();
    plant_a_reboot(&out);
    let refused = exit_and_stderr(&bench.tailbound().args(["tune", "resume"]).arg(&out).output().unwrap());
    assert!(refused.0 == 3 && refused.1.contains("kernel.cmdline was `planted "), "{refused:?}");
    let hog = Hog::start();
    let baseline = std::fs::metadata(out.join("baseline-1/manifest.json")).unwrap().modified().unwrap();
    // If other work makes the equal pairs vary too much (exit code 7), the run can go on later.
    let resume =
        |_| exit_and_stderr(&bench.tailbound().args(["tune", "resume", "--changed"]).arg(&out).output().unwrap());
    let Some((code, text)) = (0..3).map(resume).find(|(code, _)| *code != 7) else {
        drop(hog);
        assert!(stands_still(), "three times exit code 7");
        return;
    };
    drop(hog);
    assert!(code == 0 && !text.is_empty(), "exit code {code}: {text}");
    let again: Value = serde_json::from_slice(&std::fs::read(out.join("receipt.json")).unwrap()).unwrap();
    assert_eq!(again["kept"], receipt["kept"]);
    assert_eq!(again["reboots"][0]["before"], "the-boot-before", "{again}");
    assert!(again["changed"][0].as_str().unwrap().starts_with("kernel.cmdline was `planted "), "{again}");
    assert!(out.join("baseline-7/manifest.json").exists(), "no equal pairs were measured after the reboot");
    assert_ne!(again["gain"], receipt["gain"], "the confirmation was measured again");
    assert_eq!(again["gain"]["confirmed"], true, "{again}");
    assert_eq!(std::fs::metadata(out.join("baseline-1/manifest.json")).unwrap().modified().unwrap(), baseline);
}

/// The driver `null`, whose messages to the pong need a random time with this median.
fn scripted(median_ns: f64) -> String {
    let delay = json!({ "lognormal": { "median_ns": median_ns, "sigma": 0.8 } });
    let script = json!({ "links": { "out": { "delay": delay } } });
    format!("{{ null: {{ clock: scripted, timestamps: \"on\", script: '{script}' }} }}")
}

/// Test: `replay` finds the gain that the scripts contain, on fresh pairs, and judges the limit of the receipt before and after.
#[test]
fn replay_finds_the_gain_of_a_script() {
    let bench = Bench::new();
    let study = format!(
        "study: half\nmeasure: {{ ping-pong: {{ slots: 4000, warm_up: 50 }} }}\nrate: 1 kHz\nplace: same-process\n\
         path: loopback\nquiet: off\ndriver: {}\n",
        scripted(20_000.0)
    );
    receipt_of(&bench, "receipt.json", &study, &[&format!("driver={}", scripted(10_000.0))]);
    let mut receipt: Value = serde_json::from_slice(&std::fs::read(bench.path("receipt.json")).unwrap()).unwrap();
    // p99 of a round trip is 20 us e^(0.8 * 2.326) = 129 us, and half of it with the kept change.
    receipt["limit"] = json!({
        "budget": "b.yaml", "figure": "p99", "metric": "from_intended", "at_most_ns": 90_000, "before": null,
    });
    std::fs::write(bench.path("receipt.json"), receipt.to_string()).unwrap();
    let mut command = bench.tailbound();
    command.args(["tune", "replay", "--yes", "--beside", "--out", "again", "receipt.json"]);
    let output = command.current_dir(bench.dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(exit_and_stderr(&output).0, 0, "{said} {}", exit_and_stderr(&output).1);
    let gain: Value = serde_json::from_slice(&std::fs::read(bench.path("again/gain.json")).unwrap()).unwrap();
    let ratio = gain["ratio"][0].as_f64().unwrap();
    assert!((0.48..=0.52).contains(&ratio) && gain["confirmed"] == true && gain["pairs"] == 12, "{gain}");
    assert_eq!((&gain["limit"]["before"]["met"], &gain["limit"]["after"]["met"]), (&"not_met".into(), &"met".into()));
    assert!(said.contains("Before: not met,") && said.contains("After: met,"), "{said}");
}
