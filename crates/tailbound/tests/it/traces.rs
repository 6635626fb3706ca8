//! Tests of `tailbound import --ros2-trace`, with a trace that LTTng made of a provider with planted times
//! (`tests/ros2_trace/provider.c`): it has the names of ros2_tracing, and no ROS 2.

use crate::support::{Bench, exit_and_stderr, succeeded};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;

fn trace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros2_trace/trace")
}

fn import(bench: &Bench, path: &Path, more: &[&str]) -> Output {
    let mut command = bench.tailbound();
    command.arg("import").arg("--ros2-trace").arg(path).args(more).env("COLUMNS", "100").output().unwrap()
}

/// Whether the program that reads traces is missing; then the test is skipped.
fn has_no_reader() -> bool {
    let is_missing = std::process::Command::new("babeltrace2").arg("--version").output().is_err();
    if is_missing {
        println!("skipped: babeltrace2 is not installed");
    }
    is_missing
}

/// Test: all 60 messages are found, and the two planted ones are the latest, each by its part.
#[test]
fn planted_times_of_a_trace_are_found() {
    if has_no_reader() {
        return;
    }
    let bench = Bench::new();
    let output = import(&bench, &trace(), &["--format", "json"]);
    succeeded(&output);
    assert_eq!(exit_and_stderr(&output).1, "");
    let calls: Value = serde_json::from_slice(&output.stdout).unwrap();
    let topic = &calls["topics"][0];
    assert_eq!((topic["topic"].as_str(), topic["published"].as_u64()), (Some("/chatter"), Some(60)));
    let taker = &topic["takers"][0];
    assert_eq!((taker["taken"].as_u64(), taker["matched"].as_u64()), (Some(60), Some(60)), "{taker:#}");
    let latest = taker["latest"].as_array().unwrap();
    let part = |at: usize, name: &str| {
        let parts = latest[at]["parts"].as_array().unwrap();
        parts.iter().find(|part| part["name"] == name).unwrap()["time_ns"].as_i64().unwrap()
    };
    // The times of the trace are always the same: the program slept 40 ms here, and 25 ms there.
    assert!(part(0, "publish to take") >= 40_000_000 && part(1, "callback") >= 25_000_000, "{taker:#}");
    let [waited, worked] = [("publish to take", "callback"), ("callback", "publish to take")];
    for (of, (late, usual)) in [waited, worked].into_iter().enumerate() {
        assert!(part(of, usual) * 20 < part(of, late), "{taker:#}");
    }
    insta::assert_snapshot!(
        "trace",
        String::from_utf8(import(&bench, &trace(), &[]).stdout).unwrap().replace(&trace().display().to_string(), "DIR")
    );
}

/// What a capture says of the topic of the trace.
fn capture() -> Value {
    let protocol = tailbound_report::WatchedProtocol::default();
    json!({
        "begin_ns": 0, "duration_ns": 1, "place": "here", "packets": 60, "copies": 0, "not_copied": 0,
        "unread": { "malformed": 0, "cut": 0, "behind_copied": 0, "protected": 0, "fragments_alone": 0 },
        "zenoh_packets": 0, "shared_memory": {}, "participants": 1, "warnings": [],
        "topics": [{
            "topic": "rt/chatter", "ros_topic": "/chatter", "type_name": "String", "readers_announced": 1,
            "writers": [{
                "guid": "01", "vendor": "Cyclone DDS", "participant": null, "address": null, "is_here": true, "qos": null,
                "samples": 60, "rate_hz": null, "interval": null, "bytes": null, "lateness": null, "without_time": 0,
                "protocol": protocol,
            }],
        }],
    })
}

/// Test: with a capture of the same time, it is known when each message was on the wire.
#[test]
fn a_capture_says_when_messages_of_a_trace_were_on_the_wire() {
    if has_no_reader() {
        return;
    }
    let bench = Bench::new();
    let printed = std::process::Command::new("babeltrace2").arg(trace()).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let sources = printed.lines().filter_map(|line| line.split_once(" timestamp = ")?.1.split(' ').next());
    // Each message is on the wire 50 us after it was written.
    let rows: String = sources
        .enumerate()
        .map(|(n, source)| format!("01,{n},{source},{}\n", source.parse::<i64>().unwrap() + 50_000))
        .collect();
    let seen = bench.path("seen");
    std::fs::create_dir(&seen).unwrap();
    std::fs::write(seen.join("samples.csv"), format!("writer,number,source_ns,captured_ns\n{rows}")).unwrap();
    std::fs::write(seen.join("watch.json"), capture().to_string()).unwrap();
    let output = import(&bench, &trace(), &["--format", "json", "--capture", seen.to_str().unwrap()]);
    succeeded(&output);
    let calls: Value = serde_json::from_slice(&output.stdout).unwrap();
    let taker = &calls["topics"][0]["takers"][0];
    assert_eq!(taker["wire_to_take"]["count"].as_u64(), Some(60), "{taker:#}");
    let parts: Vec<&str> =
        taker["latest"][0]["parts"].as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(parts, ["publish to wire", "wire to take", "take to callback", "callback"]);
}

#[test]
fn what_is_no_trace_is_refused() {
    let bench = Bench::new();
    let said = |path: &Path, more: &[&str]| {
        let (code, text) = exit_and_stderr(&import(&bench, path, more));
        format!("{code}: {}", text.replace(&bench.dir.path().display().to_string(), "DIR"))
    };
    let mut all = vec![said(&bench.path("missing"), &[])];
    std::fs::create_dir(bench.path("empty")).unwrap();
    if !has_no_reader() {
        all.push(said(&bench.path("empty"), &[]));
        std::fs::create_dir(bench.path("broken")).unwrap();
        std::fs::write(bench.path("broken/metadata"), "/* CTF 1.8 */ trace {").unwrap();
        all.push(said(&bench.path("broken"), &[]));
        all.push(said(&trace(), &["--capture", bench.path("empty").to_str().unwrap()]));
        insta::assert_snapshot!("no_trace", all.join("\n"));
    }
    let mut command = bench.tailbound();
    let output = command.args(["import", "--ros2-trace"]).arg(trace()).env("PATH", "/nonexistent").output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 3, "{text}");
    insta::assert_snapshot!("no_reader", text.replace(&trace().display().to_string(), "DIR"));
}
