//! Tests of the driver `iceoryx2`, a shared object: real studies over shared memory, and what dead processes leave behind.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::processes::{kill, measuring};
use crate::support::ros2::{study, transport};
use crate::support::{Bench, all_answered, exit_and_stderr, rust_driver, succeeded};
use tailbound_driver::{Driver, Kind, Kv, ReceiveMode, Session, Silent, load};
use tailbound_record::Record;

fn driver() -> Driver {
    load(&rust_driver::for_tests("iceoryx2")).unwrap()
}

/// Files that iceoryx2 has in /dev/shm for a domain.
fn files_of(domain: u32) -> Vec<String> {
    let of_domain = |name: &String| name.starts_with(&format!("iox2_tb{domain}_"));
    let all = std::fs::read_dir("/dev/shm").unwrap();
    all.filter_map(|file| file.ok()?.file_name().into_string().ok()).filter(of_domain).collect()
}

/// Test: the driver is found by its name and passes the conformance suite, except the checks that need a listener.
#[test]
fn it_is_found_and_keeps_the_rules() {
    driver();
    let bench = Bench::new();
    let output = bench.tailbound().args(["driver", "check", "iceoryx2"]).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(exit_and_stderr(&output).0, 0, "{out}{}", exit_and_stderr(&output).1);
    assert!(out.contains("keeps the rules") && !out.contains("FAIL"), "{out}");
    let not_run: Vec<_> = out.lines().filter_map(|l| l.strip_prefix("n/a")?.split_whitespace().next()).collect();
    assert_eq!(not_run, ["mode-listener", "send-from-callback"], "{out}");
}

/// Runs a study in a network namespace whose loopback interface no other program uses. `None` = there is no such namespace here.
fn alone(bench: &Bench, study: &str) -> Option<Output> {
    let file = bench.study(study);
    let tailbound = bench.tailbound();
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).arg(tailbound.get_program());
    command.arg("run").arg(file).arg("--out").arg(bench.path("record")).current_dir(bench.dir.path());
    command.envs(tailbound.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let output = command.output().expect("unshare of util-linux");
    if String::from_utf8_lossy(&output.stderr).contains("unshare failed") {
        println!("skipped: {}", exit_and_stderr(&output).1);
        return None;
    }
    Some(output)
}

/// Test of both receive modes: every message is answered, no packet is on the interface, both ends have mapped the same memory,
/// and the measuring processes have no threads but the ones of Tailbound.
#[test]
fn each_receive_mode_over_shared_memory_alone() {
    driver();
    for receive in ["block", "spin"] {
        let bench = Bench::new();
        let Some(output) = alone(&bench, &study("iceoryx2", receive, "process", "loopback")) else { return };
        succeeded(&output);
        let report = all_answered(&bench, receive);
        let record = Record::open(&bench.path("record")).unwrap();
        let trial = &record.manifest.trials[0];
        assert_eq!(trial.ends["ping"].counters["interface.tx_packets"], 0, "{receive}");
        let proof = serde_json::to_value(&trial.proof).unwrap();
        assert_eq!((&proof["asked"], &proof["found"]), (&"shared-memory".into(), &"shared-memory".into()), "{proof}");
        assert_eq!(transport(&bench)["transport"], "shm");
        for process in report["threads"].as_array().unwrap() {
            let foreign = |t: &&serde_json::Value| !t["name"].as_str().unwrap().starts_with("tb-");
            assert_eq!(process["after"].as_array().unwrap().iter().filter(foreign).count(), 0, "{process}");
        }
    }
}

#[test]
fn inside_one_process() {
    driver();
    let bench = Bench::new();
    succeeded(&bench.run(&study("iceoryx2", "block", "same-process", "loopback"), &[]));
    all_answered(&bench, "same-process");
}

/// Test: between network namespaces of this host, messages do not use the path, and the record says so.
#[test]
fn between_namespaces_it_bypasses_the_path() {
    driver();
    let bench = Bench::new();
    succeeded(&bench.run(&study("iceoryx2", "spin", "netns", "veth"), &[]));
    all_answered(&bench, "veth");
    let record = Record::open(&bench.path("record")).unwrap();
    let sent = record.manifest.trials[0].ends["ping"].counters["interface.tx_packets"];
    assert!(sent < 32, "320 messages of 8 KiB would be 1,920 packets: {sent}");
}

/// Test: in a fan-out each subscriber has its own latencies.
#[test]
fn a_fan_out_has_the_latencies_of_every_subscriber() {
    driver();
    crate::support::studies::fan_out_to_three("iceoryx2");
}

/// Test of flows to three subscribers: with keep-all, a full buffer stops the publisher and nothing is lost; with keep-last,
/// what is lost is counted.
#[test]
fn flows_to_several_subscribers() {
    driver();
    let bench = Bench::new();
    let text = "study: flows\nquestion: q\nquiet: off\ndriver: iceoryx2\nplace: process\npath: loopback\n\
        measure: { throughput: { duration: 500 ms, ramp_up: 100 ms, receive: block, subscribers: 3 } }\npayload: 1 KiB\n\
        qos: { reliability: { reliable: { max_blocking_time: 5 s } } }\n\
        factors:\n  qos.history: [keep-all, { keep-last: 4 }]\n";
    succeeded(&bench.run(text, &[]));
    let record = Record::open(&bench.path("record")).unwrap();
    assert_eq!(bench.report()["status"], "valid", "{}", bench.report()["warnings"]);
    for trial in &record.manifest.trials {
        let condition = record.manifest.plan.trials.iter().find(|t| t.id == trial.id).unwrap().condition;
        let keep_all = record.manifest.plan.conditions[condition].spec.qos["history"] == "keep-all";
        let sent = trial.ends["ping"].flow.clone().unwrap();
        assert!(sent.messages() > 1000, "{} sent", sent.messages());
        for end in ["pong", "pong2", "pong3"] {
            let received = trial.ends[end].flow.clone().unwrap();
            let lost = sent.messages() - received.messages();
            println!("keep-all {keep_all}: {} sent, {end} lost {lost}", sent.messages());
            assert_eq!(lost, received.missing + sent.next - received.next, "{end}");
            assert_eq!((received.foreign, received.stale, received.duplicates), (0, 0, 0), "{end}");
            assert!(!keep_all || lost == 0, "{end}: {lost} lost");
        }
    }
}

/// Test: a measuring process that is killed leaves files behind. The next run removes them, and reports it.
#[test]
fn files_of_a_killed_process_are_removed() {
    driver();
    let domain = 100 + std::process::id() % 100;
    let bench = Bench::new();
    let long = format!(
        "{}domain: {domain}\n",
        study("iceoryx2", "block", "process", "loopback").replace("slots: 300", "slots: 5000")
    );
    let mut run = bench.measuring(bench.to_run(bench.tailbound(), "record", &long));
    let ends = ["ping", "pong"].map(|end| measuring(run.id() as i32, end).expect("the measuring process"));
    ends.into_iter().for_each(kill);
    assert!(!run.wait().unwrap().success(), "a run whose ends were killed does not succeed");
    let left = files_of(domain);
    assert!(left.len() > 1, "{left:?}");
    bench.remove_record();
    let short = format!("{}domain: {domain}\n", study("iceoryx2", "block", "process", "loopback"));
    succeeded(&bench.run(&short, &[]));
    all_answered(&bench, "after a killed end");
    let record = Record::open(&bench.path("record")).unwrap();
    let removed = |end: &str| {
        record.manifest.trials[0].ends[end].transport.clone().unwrap()["dead_nodes_removed"].as_u64().unwrap()
    };
    assert!(removed("ping") + removed("pong") >= 1);
    assert_eq!(files_of(domain), Vec::<String>::new());
}

/// Test: a directory that belongs to another user is refused with what to do. Without it, each user has a directory, so that a user
/// can run beside root.
#[test]
fn a_directory_of_another_user_is_refused() {
    driver();
    if !crate::support::host::is_root() {
        println!("skipped: a second user needs root");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    // No other program runs as this user.
    let user = 64_000 + std::process::id() % 1000;
    let bench = Bench::new();
    let all = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    let (binary, drivers) = (bench.path("tailbound"), bench.path("drivers"));
    std::fs::copy(env!("CARGO_BIN_EXE_tailbound"), &binary).unwrap();
    std::fs::create_dir(&drivers).unwrap();
    std::fs::copy(rust_driver::for_tests("iceoryx2"), drivers.join("libtailbound_driver_iceoryx2.so")).unwrap();
    [bench.dir.path(), &binary].into_iter().for_each(all);
    bench.study(&study("iceoryx2", "block", "process", "loopback"));
    let run = |record: &str| {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups", "--inh-caps=-all"]);
        command.arg(&binary).args(["run", "study.yaml", "--out", record]).current_dir(bench.dir.path());
        command
            .env("TAILBOUND_STATE_DIR", bench.path("state"))
            .env("TAILBOUND_DRIVER_PATH", &drivers)
            .env("NO_COLOR", "1");
        command.output().expect("setpriv of util-linux")
    };
    let directory = format!("/tmp/tailbound-iceoryx2-{user}");
    std::fs::create_dir(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
    let refused = exit_and_stderr(&run("refused"));
    std::fs::remove_dir(&directory).unwrap();
    succeeded(&run("record"));
    std::fs::remove_dir_all(&directory).unwrap();
    all_answered(&bench, "beside root");
    insta::assert_snapshot!(format!("exit {}\n{}", refused.0, refused.1.replace(&user.to_string(), "USER")));
}

#[test]
fn options_that_are_wrong_are_refused_by_name() {
    let driver = driver();
    let open = |kv: &(&str, &str)| {
        let kv: Kv = [*kv].into_iter().collect();
        Session::open(&driver, &kv, Arc::new(Silent)).err().map(|e| e.to_string())
    };
    let refused: Vec<String> = [
        ("domain", "231"),
        ("max_peers", "0"),
        ("buffer_size", "many"),
        ("transport", "udp"),
        ("peers", "127.0.0.1"),
        ("unacked_limit", "20"),
        ("naming", "dds"),
    ]
    .iter()
    .map(|kv| open(kv).unwrap_or_else(|| panic!("{kv:?} was accepted")))
    .collect();
    insta::assert_snapshot!(refused.join("\n"));
}

/// Test: end points of a topic whose policies do not fit are refused by the name of the policy, and so is memory that does not exist.
#[test]
fn policies_that_do_not_fit_are_refused_by_name() {
    let driver = driver();
    let options = Kv::new().with("domain", "202");
    let session = Session::open(&driver, &options, Arc::new(Silent)).unwrap();
    let qos = |policies: &[(&str, &str)]| policies.iter().copied().collect::<Kv>();
    let writer = |topic: &str, policies: &[(&str, &str)]| session.create(Kind::Writer, topic, 64, &qos(policies), 1);
    let spin = Kind::Reader(ReceiveMode::Spin);
    let reader = |topic: &str, policies: &[(&str, &str)]| session.create(spin, topic, 64, &qos(policies), 2).map(drop);
    let mut refused = Vec::new();
    for (topic, offered, asked) in [
        ("history", ("history", "keep-last"), ("history", "keep-all")),
        ("depth", ("history.depth", "2"), ("history.depth", "1")),
        ("more", ("history.depth", "2"), ("history.depth", "3")),
        ("durability", ("durability", "volatile"), ("durability", "transient-local")),
    ] {
        writer(topic, &[offered]).unwrap();
        refused.push(reader(topic, &[asked]).unwrap_err().to_string());
    }
    for policies in [&[("deadline", "1")][..], &[("history", "keep-all"), ("durability", "transient-local")]] {
        refused.push(writer("other", policies).unwrap_err().to_string());
    }
    let listener = Kind::Reader(ReceiveMode::Listener);
    refused.push(session.create(listener, "other", 64, &Kv::new(), 3).unwrap_err().to_string());
    insta::assert_snapshot!(refused.join("\n"));
}

/// Test: a reader that comes late gets the last messages of a transient-local writer, and none of a volatile one.
#[test]
fn a_late_reader_gets_what_the_writer_keeps() {
    let driver = driver();
    let session = Session::open(&driver, &Kv::new().with("domain", "203"), Arc::new(Silent)).unwrap();
    for (durability, expected) in [("volatile", 0), ("transient-local", 3)] {
        let qos: Kv = [("durability", durability), ("history.depth", "3")].into_iter().collect();
        let writer = session.create(Kind::Writer, durability, 64, &qos, 1).unwrap();
        (1..=5).for_each(|seq| session.send(writer, seq, b"kept").unwrap());
        let reader = session.create(Kind::Reader(ReceiveMode::Spin), durability, 64, &qos, 2).unwrap();
        session.wait_matched(writer, 1, i64::MAX).unwrap();
        let (mut views, mut seqs, begin) = (tailbound_driver::ViewBuf::new(8), Vec::new(), Instant::now());
        while seqs.len() < expected && begin.elapsed() < Duration::from_secs(10) {
            session.take(reader, &mut views).unwrap();
            seqs.extend(views.iter().map(|v| v.seq()));
            session.release(reader, &mut views).unwrap();
        }
        session.take(reader, &mut views).unwrap();
        assert_eq!(views.iter().count(), 0, "{durability}");
        assert_eq!(seqs, (6 - expected as u64..=5).collect::<Vec<_>>(), "{durability}");
    }
}

fn refused(study: &str) -> String {
    let bench = Bench::new();
    let (code, text) = exit_and_stderr(&bench.run(study, &[]));
    format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH"))
}

#[test]
fn impossible_studies_are_refused_before_anything_runs() {
    driver();
    let listener = study("iceoryx2", "listener", "process", "loopback");
    let other_host =
        study("iceoryx2", "block", "X", "{ existing: { ping: { interface: eth0 }, pong: { interface: eth0 } } }")
            .replace("place: X", "ends: { ping: { place: process }, pong: { place: { ssh: { host: robot } } } }");
    let qos = study("iceoryx2", "block", "process", "loopback").replace("history: keep-all", "deadline: 1 ms");
    let udp = study("{ iceoryx2: { transport: udp } }", "block", "process", "loopback");
    insta::assert_snapshot!([listener, other_host, qos, udp].map(|s| refused(&s)).join("\n"));
}
