//! Studies of drivers for ROS 2, and the build of the driver `ros2`.

use super::Bench;
use super::rust_driver::{self, target};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// File of the driver `ros2`, built in the directory in which the binary under test looks for drivers.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| rust_driver::for_tests("ros2"))
}

/// A study of a driver for ROS 2. The history is keep-all: with a history of 1 a delayed thread loses messages, which the
/// middleware may do and these tests do not examine.
pub fn study(driver: &str, receive: &str, place: &str, path: &str) -> String {
    format!(
        "study: ros2\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 300, warm_up: 20, timeout: 2 s, receive: {receive} }} }}\n\
         rate: 500 Hz\ndriver: {driver}\nplace: {place}\npath: {path}\npayload: 8 KiB\n\
         qos: {{ history: keep-all }}\n"
    )
}

/// What the driver of the ping says about its transport, in the first trial of the record `record`.
pub fn transport(bench: &Bench) -> Value {
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    serde_json::to_value(&record.manifest.trials[0].ends["ping"].transport).unwrap()
}

/// Runs a command that measures for some seconds in a domain, and returns how many participants with a node of this name another DDS
/// implementation sees meanwhile, as `ros2 node list` does.
pub fn participants_of(mut run: Command, node: &str, domain: &str) -> usize {
    let nodes = nodes();
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let seen = Command::new(nodes).args([domain, "4"]).output().unwrap();
    assert!(run.wait().unwrap().success());
    let text = String::from_utf8_lossy(&seen.stdout);
    let end = format!(" / {node} readers ");
    let of_node = |line: &str| line.split_once(&end).map(|(participant, _)| participant.to_owned());
    let participants: std::collections::BTreeSet<String> = text.lines().filter_map(of_node).collect();
    println!("{text}");
    participants.len()
}

/// Builds a program that prints the ROS 2 nodes that other programs announce, as Cyclone DDS receives them, and returns
/// its path.
pub fn nodes() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    // The packages and features of dev/test, so that no crate is compiled again.
    cargo.args(["build", "--locked", "--quiet", "--workspace", "--features", "tailbound/system-tests"]);
    cargo.args(["--example", "ros_nodes"]);
    let output = cargo
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .arg("--target-dir")
        .arg(target())
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target().join("debug/examples/ros_nodes")
}
