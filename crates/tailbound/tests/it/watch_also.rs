//! Tests of `tailbound watch --also`: two hosts by ssh, with the real ssh and DDS.

use crate::support::exit_and_stderr;
use crate::support::host::cannot;
use crate::support::ssh::TwoHosts;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A study whose pong is at the second host.
fn study(qos: &str) -> String {
    format!(
        "study: two-hosts\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 1000, warm_up: 20, timeout: 2 s }} }}\nrate: 500 Hz\npayload: 64 B\n\
         driver: cyclonedds\nqos: {{ reliability: {qos} }}\nends: {{ pong: {{ place: {{ ssh: {{ host: guest-1 }} }} }} }}\n\
         path: {{ existing: {{ ping: {{ interface: x0 }}, pong: {{ interface: x0 }} }} }}\n"
    )
}

/// `tailbound watch` on the first host, which also captures at the second one.
fn watch(hosts: &TwoHosts) -> Command {
    let mut command = hosts.tailbound();
    let program = env!("CARGO_BIN_EXE_tailbound");
    command.args(["watch", "--for", "100s", "--format", "json", "--interface", "x0", "--also", "ssh:guest-1"]);
    command.args(["--also-interface", "x0", "--also-program", program]);
    command
}

/// Test: each sample is found at both hosts, in both directions; the times contain what the ends measured, and the bounds of the clocks
/// contain zero, because both hosts have one clock here.
#[test]
fn samples_are_followed_from_host_to_host() {
    if cannot() {
        return;
    }
    let hosts = TwoHosts::new(0);
    let mut watching = watch(&hosts);
    let watching = watching.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_program(&hosts);
    let output = hosts.run(&study("best-effort")).output().unwrap();
    assert_eq!(exit_and_stderr(&output).0, 0, "{}", exit_and_stderr(&output).1);
    // As Ctrl-C of a terminal: to all processes of the group.
    // SAFETY: the group of a process of this test.
    unsafe { libc::kill(-(watching.id() as i32), libc::SIGINT) };
    let output = watching.wait_with_output().unwrap();
    assert_eq!(exit_and_stderr(&output).0, 0, "{}", exit_and_stderr(&output).1);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let also = &found["also"];
    let (low, high) = (also["offset_ns"][0].as_i64().unwrap(), also["offset_ns"][1].as_i64().unwrap());
    assert!(low <= 0 && high >= 0, "{low} to {high}");
    let writers = also["writers"].as_array().unwrap();
    assert_eq!(writers.len(), 2, "{found:#}");
    let record = tailbound_record::Record::open(&hosts.bench.path("record")).unwrap();
    for out in [true, false] {
        let writer = writers.iter().find(|writer| writer["from_here"] == out).unwrap();
        assert_eq!((&writer["sent"], &writer["not_arrived"]), (&1020.into(), &0.into()), "{writer:#}");
        assert_eq!(writer["is_best_effort"], true, "{writer:#}");
        // From the begin of the send call to the receipt takes longer than from card to card.
        let mut longest = 0;
        record
            .slots(0, &mut |batch| longest = batch.ways(out).map(|(_, sent, got)| got - sent).fold(longest, i64::max))
            .unwrap();
        let at = |bounds: &str, side: usize, figure: &str| writer[bounds][side][figure].as_i64().unwrap();
        assert!(at("network", 0, "max_ns") <= longest, "{writer:#}, {longest}");
        assert!(at("network", 1, "min_ns") > 0, "{writer:#}");
        for figure in ["min_ns", "p50_ns", "p99_ns", "max_ns"] {
            assert!(at("network", 0, figure) <= at("network", 1, figure), "{writer:#}");
            assert!(at("lateness", 1, figure) >= at("network", 0, figure), "{writer:#}");
        }
    }
    nothing_is_left(&hosts);
}

/// Waits until the second host captures.
fn wait_for_program(hosts: &TwoHosts) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !hosts.shell("pgrep -f 'watch [-]-along'").status.success() {
        assert!(Instant::now() < deadline, "no capture at the second host");
        std::thread::sleep(Duration::from_millis(50));
    }
    // It says so once packets are captured; this host begins after it.
    std::thread::sleep(Duration::from_millis(500));
}

/// The capture at the second host ends with the one at the first, also if that is killed.
fn nothing_is_left(hosts: &TwoHosts) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while hosts.shell("pgrep -f 'watch [-]-along'").status.success() {
        assert!(Instant::now() < deadline, "the capture at the second host still runs");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_killed_capture_leaves_none_at_the_other_host() {
    if cannot() {
        return;
    }
    let hosts = TwoHosts::new(0);
    let mut watching = watch(&hosts).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_program(&hosts);
    watching.kill().unwrap();
    watching.wait().unwrap();
    nothing_is_left(&hosts);
}

#[test]
fn hosts_that_cannot_capture_are_named() {
    if cannot() {
        return;
    }
    let hosts = TwoHosts::new(0);
    let said = |host: &str, program: &str, interface: &str| {
        let mut command = hosts.tailbound();
        command.args([
            "watch",
            "--for",
            "1s",
            "--also",
            host,
            "--also-program",
            program,
            "--also-interface",
            interface,
        ]);
        let (code, text) = exit_and_stderr(&command.output().unwrap());
        format!("{code}: {text}")
    };
    let here = env!("CARGO_BIN_EXE_tailbound");
    let all = [
        said("ssh:guest-1", "/nonexistent", "x0"),
        said("ssh:guest-1", "/bin/echo", "x0"),
        said("ssh:guest-1", here, "none0"),
        said("ssh:closed", here, "x0"),
        said("guest-1", here, "x0"),
    ];
    insta::assert_snapshot!("also_refused", all.join("\n"));
}
