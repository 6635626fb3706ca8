//! Tests of the driver `ros2`, a shared object: real studies with ROS 2 nodes, and with the drivers of other vendors
//! under ROS 2 names.

use std::process::{Command, Stdio};

use crate::support::ros2::{built, nodes, study, transport};
use crate::support::{Bench, all_answered, exit_and_stderr, fastdds, succeeded};
use serde_json::Value;
use tailbound_driver::{Endpoint, Kind, Kv, ReceiveMode, Session, Silent, load};

/// Test: the driver `ros2` is found by its name in a study and passes the conformance suite, except the checks that
/// need a listener.
#[test]
fn it_is_found_and_keeps_the_rules() {
    built();
    let bench = Bench::new();
    let output = bench.tailbound().args(["driver", "check", "ros2"]).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(exit_and_stderr(&output).0, 0, "{out}{}", exit_and_stderr(&output).1);
    assert!(out.contains("keeps the rules") && !out.contains("FAIL"), "{out}");
    let not_run: Vec<_> = out.lines().filter_map(|l| l.strip_prefix("n/a")?.split_whitespace().next()).collect();
    assert_eq!(not_run, ["mode-listener", "send-from-callback"], "{out}");
}

#[test]
fn each_receive_mode_of_two_processes() {
    built();
    for receive in ["block", "spin"] {
        let bench = Bench::new();
        succeeded(&bench.run(&study("ros2", receive, "process", "loopback"), &[]));
        all_answered(&bench, receive);
    }
}

/// Test between network namespaces: the driver `ros2` reports its transport, and its packets pass the interface of the
/// path.
#[test]
fn between_namespaces() {
    built();
    let bench = Bench::new();
    succeeded(&bench.run(&study("ros2", "block", "netns", "veth"), &[]));
    all_answered(&bench, "veth");
    let told = transport(&bench);
    assert_eq!((&told["transport"], &told["same_host_loopback"]), (&"udp".into(), &false.into()), "{told}");
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let sent = record.manifest.trials[0].ends["ping"].counters["interface.tx_packets"];
    assert!(sent >= 320 * 6, "8 KiB are six packets: {sent}");
}

#[test]
fn inside_one_process() {
    built();
    let bench = Bench::new();
    succeeded(&bench.run(&study("ros2", "block", "same-process", "loopback"), &[]));
    all_answered(&bench, "same-process");
}

/// Test of arrangements: one process with one node or two, and two processes; each end has a single-threaded executor.
/// A participant of RustDDS finds its own end points by multicast, so the test enables multicast on the loopback
/// interface of a separate namespace.
#[test]
fn arrangements_of_nodes() {
    built();
    let bench = Bench::new();
    let text = study("ros2", "executor", "X", "Y").replace("place: X\npath: Y\n", "");
    let arrangement = |processes, participants, executors| {
        format!("{{ processes: {processes}, participants: {participants}, executors: {executors} }}")
    };
    let levels = [arrangement(1, 1, 1), arrangement(1, 2, 1), arrangement(1, 2, 2), arrangement(2, 2, 2)].join(", ");
    let file = bench.study(&format!("{text}factors: {{ arrangement: [{levels}] }}\n"));
    let lo = "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo && exec \"$@\"";
    let tailbound = bench.tailbound();
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", lo, "sh"]).arg(tailbound.get_program());
    command.arg("run").arg(file).arg("--out").arg(bench.path("record")).current_dir(bench.dir.path());
    command.envs(tailbound.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let output = command.output().expect("unshare of util-linux");
    if String::from_utf8_lossy(&output.stderr).contains("unshare failed") {
        println!("skipped: {}", exit_and_stderr(&output).1);
        return;
    }
    succeeded(&output);
    let report = all_answered(&bench, "arrangements");
    let of = |name: &str, condition: usize| {
        let trial = report["trials"].as_array().unwrap().iter().position(|t| t["condition"] == condition).unwrap();
        let rows = report["threads"].as_array().unwrap().iter().filter(|p| p["trial"] == trial);
        let names = rows.flat_map(|p| p["after"].as_array().unwrap()).map(|t| t["name"].as_str().unwrap());
        names.filter(|n| n.starts_with(name)).count()
    };
    assert_eq!([0, 1, 2, 3].map(|condition| of("RustDDS Partici", condition)), [1, 2, 2, 2]);
}

/// Test of the built-in study `vendor-pairs`: each of three drivers with each other driver, in both directions, over a
/// veth pair and over loopback.
#[test]
fn each_vendor_answers_the_other() {
    built();
    if fastdds::built().is_none() {
        return;
    }
    for more in [&["payload=64 B"][..], &["payload=8 KiB", "place=process", "path=loopback"]] {
        let bench = Bench::new();
        let mut command = bench.tailbound();
        command.args(["run", "vendor-pairs", "--out"]).arg(bench.path("record")).args(["--set", "measure.slots=300"]);
        for setting in more {
            command.args(["--set", setting]);
        }
        succeeded(&command.output().unwrap());
        let report = all_answered(&bench, more[0]);
        let vendors = ["cyclonedds naming ros2", "fastdds naming ros2", "ros2"];
        let both = |c: &Value| {
            ["ping", "pong"].map(|end| c["levels"][format!("ends.{end}.driver")].as_str().unwrap().to_owned())
        };
        let pairs: Vec<_> = report["conditions"].as_array().unwrap().iter().map(both).collect();
        assert_eq!(pairs, vendors.map(|a| vendors.map(|b| [a.to_owned(), b.to_owned()])).concat());
        // The thread names show that each end uses the library of its vendor.
        for process in report["threads"].as_array().unwrap() {
            let condition =
                report["trials"][process["trial"].as_u64().unwrap() as usize]["condition"].as_u64().unwrap();
            let end = process["ends"][0].as_str().unwrap();
            let vendor = &report["conditions"][condition as usize]["levels"][&format!("ends.{end}.driver")];
            let threads = process["after"].as_array().unwrap();
            let has = |name: &str| threads.iter().any(|t| t["name"].as_str().unwrap().starts_with(name));
            let has = [has("recv"), has("fdds."), has("RustDDS")];
            assert_eq!(has, vendors.map(|v| vendor == v), "{end} {vendor}: {process}");
        }
    }
}

/// Test: a process with another DDS implementation sees the ROS 2 nodes, and their publisher and subscription.
#[test]
fn the_nodes_are_in_the_graph() {
    let driver = load(built()).unwrap();
    let nodes = nodes();
    let options = [("domain", "141"), ("address", "127.0.0.1"), ("node", "/lab/measured"), ("participants", "2")];
    let session = Session::open(&driver, &options.into_iter().collect(), std::sync::Arc::new(Silent)).unwrap();
    let place = |participant| Kv::new().with("participant", participant);
    let spin = Kind::Reader(ReceiveMode::Spin);
    for (kind, participant) in [(Kind::Writer, "0"), (spin, "0"), (spin, "1")] {
        session.create(kind, &format!("graph_{participant}"), 64, &place(participant), 1).unwrap();
    }
    let output = Command::new(nodes).args(["141", "5"]).stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Value = serde_json::from_str(&session.query(Endpoint::SESSION, "transport").unwrap()).unwrap();
    for (index, name, writers) in [(0, "/lab measured ", 1), (1, "/lab measured_2 ", 0)] {
        let participant = told["participants"][index].as_str().unwrap().replace(':', "");
        // Each message describes the whole node, and the last message is valid.
        let last = text.lines().rfind(|l| l.starts_with(&format!("{participant} {name}")));
        let (readers, others) = last.unwrap_or_else(|| panic!("no {name}in {text}")).split_once("writers").unwrap();
        // The id of an end point begins with the id of its participant and ends with 04 (reader without key) or 03
        // (writer without key). Each node also writes into the topic of the ROS 2 graph.
        let of_kind = |list: &str, kind: &str| {
            let ends = list.split('"').filter(|id| id.starts_with(&participant[..24]) && id.ends_with(kind));
            ends.count()
        };
        assert_eq!(of_kind(readers, "04"), 1, "{text}");
        assert!(of_kind(others, "03") > writers, "{text}");
    }
}

#[test]
fn options_that_are_wrong_are_refused_by_name() {
    let driver = load(built()).unwrap();
    let open = |kv: &(&str, &str)| {
        let kv: Kv = [*kv].into_iter().collect();
        Session::open(&driver, &kv, std::sync::Arc::new(Silent)).err().map(|e| e.to_string())
    };
    let refused: Vec<String> = [
        ("domain", "231"),
        ("participants", "3"),
        ("node", "1st"),
        ("node", "lab/measured"),
        ("address", "192.0.2.1"),
        ("address", "::1"),
        ("naming", "dds"),
        ("transport", "shm"),
        ("socket_receive_buffer_size", "0"),
        ("peers", "127.0.0.1"),
    ]
    .iter()
    .map(|kv| open(kv).unwrap_or_else(|| panic!("{kv:?} was accepted")))
    .collect();
    insta::assert_snapshot!(refused.join("\n"));
}

fn refused(study: &str) -> String {
    let bench = Bench::new();
    let (code, text) = exit_and_stderr(&bench.run(study, &[]));
    format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH"))
}

#[test]
fn impossible_studies_are_refused_before_anything_runs() {
    built();
    let listener = study("ros2", "listener", "process", "loopback");
    let naming = study("{ ros2: { naming: dds } }", "block", "process", "loopback");
    let qos = study("ros2", "block", "process", "loopback").replace("history: keep-all", "latency_budget: 1 ms");
    insta::assert_snapshot!([listener, naming, qos].map(|s| refused(&s)).join("\n"));
}

/// Test: a copy of the binary in another directory finds no driver ros2, as on a machine where the driver was not
/// built, and names the remedy.
#[test]
fn a_driver_that_is_not_built_is_reported_with_a_remedy() {
    let bench = Bench::new();
    let alone = bench.path("tailbound");
    std::fs::copy(env!("CARGO_BIN_EXE_tailbound"), &alone).unwrap();
    let file = bench.study(&study("ros2", "block", "process", "loopback"));
    let output = Command::new(alone).arg("run").arg(file).env("NO_COLOR", "1").output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    insta::assert_snapshot!(format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH")));
}
