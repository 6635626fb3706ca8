//! Tests of `tailbound tune export`: each form says what it expresses of the kept changes, and names the rest with a reason.

use crate::support::{Bench, exit_and_stderr, fastdds};
use serde_json::json;
use std::process::Command;

const STUDY: &str = "study: hog\nmeasure: ping-pong\nrate: 1 kHz\ndriver: cyclonedds\npath: loopback\nplace: process\n\
                     middleware: { timer_slack: default, memory: unlocked }\n";

/// Kept settings of every kind.
const KEPT: [&str; 12] = [
    "host.sysctl.net.core.busy_read=50",
    "host.governor=performance",
    "host.cpu_dma_latency=0 us",
    "host.kernel_threads.ksoftirqd/1={ policy: fifo, priority: 61 }",
    "host.nic.eth9={ adaptive_rx: off, coalesce_rx: 0 us }",
    "host.irq_affinity.24=0",
    "ends.pong.scheduling={ policy: fifo, priority: 61, receive: { policy: fifo, priority: 62 } }",
    "ends.pong.cpus=0",
    "middleware.memory=locked",
    "middleware.timer_slack=least",
    "driver.cyclonedds.socket_receive_buffer_size=16777216",
    "measure.receive=block",
];

/// Writes a receipt with these kept settings.
pub fn receipt(bench: &Bench, name: &str, kept: &[&str]) {
    receipt_of(bench, name, STUDY, kept);
}

/// Writes a receipt of this study with these kept settings.
pub fn receipt_of(bench: &Bench, name: &str, study: &str, kept: &[&str]) {
    let gain =
        json!({ "without_ns": 2e6, "with_ns": 1e5, "ratio": [0.05, 0.04, 0.06], "pairs": 12, "confirmed": true });
    let receipt = json!({
        "format": [1, 0], "study": study, "name": "hog", "settings": [], "figure": "p99", "metric": "from_intended",
        "rule": "looks", "alpha": 0.05, "seed": 1, "circumstances": {}, "causes_before": [], "causes_after": [], "tried": [],
        "baseline": { "pairs": 6, "figure_ns": 2e6, "needed_pairs": 3.0 }, "kept": kept, "gain": gain, "seconds": 60,
    });
    std::fs::write(bench.path(name), receipt.to_string()).unwrap();
}

/// Standard output of an export, or its error.
pub fn exported(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.tailbound().args(["tune", "export"]).args(arguments).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    match code {
        0 => String::from_utf8(output.stdout).unwrap(),
        code => format!("exit code {code}\n{text}"),
    }
}

#[test]
fn each_form_names_what_it_cannot_express() {
    let bench = Bench::new();
    receipt(&bench, "receipt.json", &KEPT);
    let forms = ["sysctl", "systemd", "tuned", "cmdline", "cyclonedds", "connext", "kubernetes", "libvirt"];
    let all = forms.map(|form| format!("== {form}\n{}", exported(&bench, &["receipt.json", "--format", form])));
    insta::assert_snapshot!(all.join("\n"));
    // Every kept setting is expressed or named.
    for (form, text) in forms.iter().zip(&all) {
        let expressed = match *form {
            "sysctl" => &KEPT[..1],
            "systemd" => &KEPT[6..10],
            "tuned" => &KEPT[..5],
            "cmdline" => &KEPT[..3],
            "cyclonedds" => &[KEPT[6], KEPT[7], KEPT[10]][..],
            "connext" => &[KEPT[6], KEPT[7], KEPT[10]][..],
            "kubernetes" => &KEPT[6..9],
            _ => &KEPT[6..8],
        };
        for setting in KEPT.iter().filter(|setting| !expressed.contains(setting)) {
            assert!(text.contains(&format!("- {setting}: ")), "{form} names {setting}:\n{text}");
        }
    }
}

#[test]
fn fast_dds_gets_buffers_and_threads() {
    if fastdds::built().is_none() {
        return;
    }
    let bench = Bench::new();
    receipt(&bench, "receipt.json", &KEPT);
    insta::assert_snapshot!(exported(&bench, &["receipt.json", "--format", "fastdds"]));
    // A kept option of its own driver gives the whole profile.
    receipt(&bench, "own.json", &["driver={ fastdds: { socket_receive_buffer_size: 8388608 } }"]);
    let own = exported(&bench, &["own.json", "--format", "fastdds"]);
    assert!(own.contains("<receiveBufferSize>8388608</receiveBufferSize>"), "{own}");
}

/// Test: systemd itself reads the drop-in without a complaint.
#[test]
fn systemd_accepts_the_drop_in() {
    let bench = Bench::new();
    receipt(&bench, "receipt.json", &KEPT);
    let text = exported(&bench, &["receipt.json", "--format", "systemd"]);
    let verify = |drop_in: &str| {
        let units = bench.path("units");
        std::fs::create_dir_all(units.join("tb-test.service.d")).unwrap();
        std::fs::write(units.join("tb-test.service"), "[Service]\nExecStart=/bin/true\n").unwrap();
        std::fs::write(units.join("tb-test.service.d/tailbound.conf"), drop_in).unwrap();
        let mut verify = Command::new("systemd-analyze");
        let verified = verify.args(["verify", "--man=no"]).arg(units.join("tb-test.service")).output();
        verified.map(|output| String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let Ok(said) = verify(&text) else {
        println!("skipped: systemd-analyze is not installed");
        return;
    };
    assert!(!said.contains("tailbound.conf"), "{said}");
    // The check finds a wrong line.
    let wrong = verify("[Service]\nCPUSchedulingPolicy=fife\n").unwrap();
    assert!(wrong.contains("tailbound.conf"), "{wrong}");
}

#[test]
fn what_cannot_be_exported_is_said() {
    let bench = Bench::new();
    receipt(&bench, "none.json", &[]);
    receipt(&bench, "host.json", &KEPT[..1]);
    receipt(&bench, "receive.json", &KEPT[11..]);
    receipt(&bench, "both.json", &["ends.ping.cpus=1", "ends.pong.cpus=0,1"]);
    let cases: [&[&str]; 7] = [
        &["nosuch.json", "--format", "sysctl"],
        &["none.json", "--format", "sysctl"],
        &["host.json", "--format", "systemd"],
        &["host.json", "--format", "cyclonedds"],
        &["receive.json", "--format", "tuned"],
        &["both.json", "--format", "systemd"],
        &["both.json", "--format", "sysctl"],
    ];
    let said = cases.map(|case| format!("tailbound tune export {}\n{}", case.join(" "), exported(&bench, case)));
    // This form is named only where its driver is installed.
    insta::assert_snapshot!(said.join("\n").replace("--format fastdds, ", ""));
    let ping = exported(&bench, &["both.json", "--format", "systemd", "--end", "ping"]);
    assert!(
        ping.contains("\nCPUAffinity=1\n") && ping.contains("- ends.pong.cpus=0,1: it is for the program"),
        "{ping}"
    );
}
