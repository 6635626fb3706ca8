//! Tests of the driver `zenoh`, a shared object: real studies between peers and through a router.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::support::processes::seen_from_outside;
use crate::support::ros2::{study, transport};
use crate::support::security::Authority;
use crate::support::studies::built_in;
use crate::support::{Bench, all_answered, exit_and_stderr, may_be_real_time, rust_driver, succeeded};
use serde_json::Value;
use tailbound_driver::{Driver, Kv, Session, Silent, load};
use tailbound_record::Record;

fn driver() -> Driver {
    load(&rust_driver::for_tests("zenoh")).unwrap()
}

/// Test: the driver is found by its name and passes the whole conformance suite.
#[test]
fn it_is_found_and_keeps_the_rules() {
    driver();
    let bench = Bench::new();
    let output = bench.tailbound().args(["driver", "check", "zenoh"]).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(exit_and_stderr(&output).0, 0, "{out}{}", exit_and_stderr(&output).1);
    assert!(out.contains("keeps the rules") && !out.contains("FAIL") && !out.contains("n/a"), "{out}");
}

#[test]
fn shared_memory_keeps_the_rules() {
    let options = Kv::new().with("shared_memory", "on");
    let report = tailbound_driver::conformance::run_with(&driver(), &options, &mut |_| ());
    let failed: Vec<_> = report.failed().collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Test of all transports in all receive modes, between two processes: one listens, and the other one connects to it.
#[test]
fn each_receive_mode_of_two_processes() {
    driver();
    let bench = Bench::new();
    let text = study("{ zenoh: { transport: tcp } }", "block", "process", "loopback")
        + "factors:\n  driver: [{ zenoh: { transport: tcp } }, { zenoh: { transport: udp } }, { zenoh: { transport: quic } }]\n  measure.receive: [listener, block, spin]\n";
    let text = text.replace("driver: { zenoh: { transport: tcp } }\nplace", "place").replace(", receive: block", "");
    // Links to sessions of other tests would be counted.
    let text = format!("{text}domain: {}\n", 100 + std::process::id() % 130);
    succeeded(&bench.run(&text, &[]));
    let report = all_answered(&bench, "two processes");
    assert_eq!(report["conditions"].as_array().unwrap().len(), 9);
    let record = Record::open(&bench.path("record")).unwrap();
    for trial in &record.manifest.trials {
        let of = |end: &str| serde_json::to_value(&trial.ends[end].transport).unwrap();
        let (ping, pong) = (of("ping"), of("pong"));
        let connects = [&ping, &pong].map(|end| end["addresses"]["connects"].as_array().unwrap().len());
        assert_eq!(connects.iter().sum::<usize>(), 1, "one of them connects: {ping} {pong}");
        assert_eq!(ping["links"].as_array().unwrap().len(), 1, "one link: {ping}");
        let at = ping["links"][0]["at"].as_str().unwrap();
        assert!(at.starts_with(&format!("{}/127.0.0.1:", ping["transport"].as_str().unwrap())), "{at}");
    }
}

/// Test between network namespaces: the packets pass the interface of the path, and the link has the addresses of the path.
#[test]
fn between_namespaces() {
    driver();
    let bench = Bench::new();
    succeeded(&bench.run(&study("zenoh", "listener", "netns", "veth"), &[]));
    all_answered(&bench, "veth");
    let record = Record::open(&bench.path("record")).unwrap();
    let trial = &record.manifest.trials[0];
    let sent = trial.ends["ping"].counters["interface.tx_packets"];
    assert!(sent >= 320, "{sent} packets for 320 messages");
    let found = serde_json::to_value(&trial.proof).unwrap();
    assert_eq!(found["found"], "packets", "{found}");
    let link = transport(&bench)["links"][0].clone();
    assert!(!link.to_string().contains("127.0.0.1"), "{link}");
}

#[test]
fn inside_one_process() {
    driver();
    let bench = Bench::new();
    succeeded(&bench.run(&study("zenoh", "block", "same-process", "loopback"), &[]));
    all_answered(&bench, "same-process");
}

/// Test: with shared memory, large messages are not on the interface, and both ends say that they share memory.
#[test]
fn shared_memory_takes_large_messages_off_the_interface() {
    driver();
    let bytes = |option: &str| {
        let bench = Bench::new();
        let text = study(&format!("{{ zenoh: {{ shared_memory: {option} }} }}"), "block", "netns", "veth");
        succeeded(&bench.run(&text.replace("payload: 8 KiB", "payload: 100 KiB"), &[]));
        all_answered(&bench, option);
        let facts = transport(&bench);
        assert_eq!(facts["shared_memory"]["peers"], u64::from(option == "on"), "{facts}");
        let record = Record::open(&bench.path("record")).unwrap();
        record.manifest.trials[0].ends["ping"].counters["interface.tx_bytes"]
    };
    let (off, on) = (bytes("off"), bytes("on"));
    println!("bytes on the interface: {off} without, {on} with shared memory");
    assert!(off >= 320 * 100 * 1024, "{off}");
    assert!(on < off / 8, "{on} of {off}");
}

/// A router of zenoh on an address; it ends when this value is dropped.
struct Router(Child);

impl Router {
    /// Starts a router on an address; `files`: its certificate and private key, for quic.
    fn start(at: &str, files: &[PathBuf]) -> Router {
        let mut command = Command::new(rust_driver::example("zenoh", "router"));
        let mut child = command.arg(at).args(files).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening"), "{line:?}");
        Router(child)
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Test: through a router, both ends are its clients and have a link to nothing else.
#[test]
fn through_a_router() {
    driver();
    let at = format!("tcp/127.0.0.1:{}", 20_000 + std::process::id() % 10_000);
    let _router = Router::start(&at, &[]);
    let bench = Bench::new();
    let text = study(&format!("{{ zenoh: {{ router: \"{at}\" }} }}"), "listener", "process", "loopback");
    succeeded(&bench.run(&text, &[]));
    all_answered(&bench, "router");
    let facts = transport(&bench);
    assert_eq!((&facts["role"], &facts["addresses"]["router"]), (&"client".into(), &at.as_str().into()), "{facts}");
    assert_eq!(facts["links"].as_array().unwrap().len(), 1, "{facts}");
}

/// Test: a router over quic is accepted by the certificate of its authority, and refused without.
#[test]
fn through_a_router_over_quic() {
    driver();
    let bench = Bench::new();
    let authority = Authority::new(bench.path("authority"));
    authority.server(bench.dir.path(), "127.0.0.1");
    let at = format!("quic/127.0.0.1:{}", 20_000 + std::process::id() % 10_000);
    let _router = Router::start(&at, &[bench.path("cert.pem"), bench.path("key.pem")]);
    let with =
        |option: &str| study(&format!("{{ zenoh: {{ router: \"{at}\"{option} }} }}"), "block", "process", "loopback");
    succeeded(&bench.run(&with(&format!(", authority: {}", authority.file("ca.cert.pem"))), &[]));
    all_answered(&bench, "router over quic");
    let facts = transport(&bench);
    assert_eq!((&facts["role"], &facts["transport"]), (&"client".into(), &"quic".into()), "{facts}");
    let other = Bench::new();
    let (code, text) = exit_and_stderr(&other.run(&with(""), &[]));
    assert!(code != 0 && text.contains(&format!("router={at}")) && text.contains("authority"), "{code}: {text}");
}

/// Test of flows to three subscribers: what is reliable loses nothing, and what is discarded or replaced is counted.
#[test]
fn flows_to_several_subscribers() {
    driver();
    let bench = Bench::new();
    let text = "study: flows\nquestion: q\nquiet: off\ndriver: zenoh\nplace: process\npath: loopback\n\
        measure: { throughput: { duration: 500 ms, ramp_up: 100 ms, receive: block, subscribers: 3 } }\npayload: 1 KiB\n\
        factors:\n  qos:\n    - { reliability: reliable, history: keep-all }\n    - { reliability: best-effort, history: { keep-last: 4 } }\n";
    succeeded(&bench.run(text, &[]));
    let record = Record::open(&bench.path("record")).unwrap();
    assert_eq!(bench.report()["status"], "valid", "{}", bench.report()["warnings"]);
    for trial in &record.manifest.trials {
        let condition = record.manifest.plan.trials.iter().find(|t| t.id == trial.id).unwrap().condition;
        let reliable = record.manifest.plan.conditions[condition].spec.qos["reliability"] == "reliable";
        let sent = trial.ends["ping"].flow.clone().unwrap();
        assert!(sent.messages() > 100, "{} sent", sent.messages());
        for end in ["pong", "pong2", "pong3"] {
            let received = trial.ends[end].flow.clone().unwrap();
            let lost = sent.messages() - received.messages();
            println!("reliable {reliable}: {} sent, {end} lost {lost}", sent.messages());
            assert_eq!(lost, received.missing + sent.next - received.next, "{end}");
            assert_eq!((received.foreign, received.stale, received.duplicates), (0, 0, 0), "{end}");
            assert!(!reliable || lost == 0, "{end}: {lost} lost");
        }
    }
}

/// Test: without `express`, zenoh joins messages that wait to one batch; with it, each leaves by itself, so that the path has a packet
/// for each message.
#[test]
fn express_sends_every_message_by_itself() {
    driver();
    let packets_per_message = |express: &str| {
        let bench = Bench::new();
        let text = format!(
            "study: express\nquestion: q\nquiet: off\nplace: netns\npath: veth\npayload: 64 B\n\
             driver: {{ zenoh: {{ transport: udp, express: {express} }} }}\n\
             measure: {{ throughput: {{ duration: 1 s, ramp_up: 100 ms, receive: block }} }}\n\
             qos: {{ reliability: best-effort, history: {{ keep-last: 1000 }} }}\n"
        );
        succeeded(&bench.run(&text, &[]));
        assert_eq!(transport(&bench)["express"], express == "on");
        let record = Record::open(&bench.path("record")).unwrap();
        let sender = &record.manifest.trials[0].ends["ping"];
        let messages = sender.flow.clone().unwrap().messages();
        assert!(messages > 1000, "{messages}");
        sender.counters["interface.tx_packets"] as f64 / messages as f64
    };
    let (off, on) = (packets_per_message("off"), packets_per_message("on"));
    println!("packets for each message: {off} without, {on} with express");
    // Without a limit, some messages find no room at the sender and leave no packet.
    assert!(on > 3.0 * off && off < 0.4, "{on} {off}");
}

/// Test: in a fan-out each subscriber has its own latencies, and the last one of a message is not earlier than each.
#[test]
fn a_fan_out_has_the_latencies_of_every_subscriber() {
    driver();
    crate::support::studies::fan_out_to_three("zenoh");
}

/// Test of publishers and subscribers in network namespaces of their own: each subscriber receives from each publisher, although all
/// connect to one of them first.
#[test]
fn several_publishers_in_namespaces_of_their_own() {
    driver();
    let bench = Bench::new();
    let text = "study: many\nquestion: q\nquiet: off\ndriver: zenoh\nplace: netns\npath: bridge\nrate: 500 Hz\n\
        qos: { history: keep-all }\n\
        measure: { throughput: { duration: 1 s, ramp_up: 200 ms, publishers: 2, subscribers: 2, spread: namespaces } }\n";
    succeeded(&bench.run(text, &[]));
    let record = Record::open(&bench.path("record")).unwrap();
    let counts = |end: &str| record.manifest.trials[0].ends[end].flow.clone().unwrap();
    let all = counts("ping").messages() + counts("ping2").messages();
    assert!(all >= 1000, "{all}");
    for end in ["pong", "pong2"] {
        assert_eq!((counts(end).messages(), counts(end).missing), (all, 0), "{end}");
    }
}

/// Test: the threads of zenoh have roles by their names, and a policy by role.
#[test]
fn threads_have_roles() {
    driver();
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let scheduling = "{ main: { policy: rr, priority: 41 }, middleware: { policy: batch, nice: 4 }, \
                      receive: { policy: fifo, priority: 42, cpus: \"1\" } }";
    let text = study("zenoh", "listener", "process", "loopback").replace("slots: 300", "slots: 1500");
    let seen = seen_from_outside(&bench, &format!("{text}scheduling: {scheduling}\n"));
    let of = |name: &str| seen.get(name).map_or("not there", String::as_str);
    assert_eq!(of("tb-ping"), "SCHED_RR 41 0", "{seen:?}");
    assert_eq!((of("rx-0"), of("rx-1")), ("SCHED_FIFO 42 1", "SCHED_FIFO 42 1"), "{seen:?}");
    assert_eq!(
        (of("tx-0"), of("app-0"), of("net-0")),
        ("SCHED_BATCH 4 0", "SCHED_BATCH 4 0", "SCHED_BATCH 4 0"),
        "{seen:?}"
    );
    let role = |name: &str| {
        let processes = bench.report()["threads"].as_array().unwrap().clone();
        let rows: Vec<Value> = processes.iter().flat_map(|p| p["after"].as_array().unwrap().clone()).collect();
        rows.iter().find(|t| t["name"] == name).map(|t| t["role"].as_str().unwrap().to_owned())
    };
    let roles =
        ["rx-0", "tx-0", "app-0", "net-0", "acc-0"].map(|name| role(name).unwrap_or_else(|| "not there".into()));
    assert_eq!(roles, ["receive", "send", "other", "discovery", "discovery"]);
}

#[test]
fn options_that_are_wrong_are_refused_by_name() {
    let driver = driver();
    let open = |kv: &[(&str, &str)]| {
        let kv: Kv = kv.iter().copied().collect();
        Session::open(&driver, &kv, Arc::new(Silent)).err().map(|e| e.to_string())
    };
    let absent = "tcp/127.0.0.1:1";
    let refused: Vec<String> = [
        &[("domain", "231")][..],
        &[("address", "localhost")],
        &[("address", "192.0.2.1")],
        &[("peers", "a,b")],
        &[("port", "0")],
        &[("transport", "tls")],
        &[("transport", "shm")],
        &[("router", "10.0.0.1")],
        &[("router", "tls/10.0.0.1:7447")],
        &[("router", absent), ("authority", "/ca.pem")],
        &[("router", "quic/127.0.0.1:1"), ("authority", "/no/such.pem")],
        &[("router", absent), ("transport", "udp")],
        &[("router", absent)],
        &[("express", "yes")],
        &[("congestion_control", "wait")],
        &[("multicast", "on")],
        &[("unacked_limit", "20")],
        &[("naming", "ros2")],
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

/// Test: what zenoh does not have is refused before anything runs; an absent router ends the run with what to do.
#[test]
fn impossible_studies_are_refused() {
    driver();
    let process = |driver: &str| study(driver, "block", "process", "loopback");
    let durability = process("zenoh").replace("history: keep-all", "durability: transient-local");
    let tls = process("{ zenoh: { transport: tls } }");
    let other_host = process("{ zenoh: { shared_memory: on } }")
        .replace("place: process\npath: loopback", "ends: { ping: { place: process }, pong: { place: { ssh: { host: robot } } } }\npath: { existing: { ping: { interface: eth0 }, pong: { interface: eth0 } } }");
    let router = process("{ zenoh: { router: \"tcp/127.0.0.1:1\" } }");
    let reliable = process("{ zenoh: { transport: udp } }").replace("history: keep-all", "reliability: reliable");
    insta::assert_snapshot!([durability, tls, other_host, router, reliable].map(|s| refused(&s)).join("\n"));
}

/// Test of the built-in study `middlewares` with some of its levels, over both paths: what is reliable loses nothing, a guarantee that a
/// driver cannot give is *not possible*, with the reason, and so is a ROS 2 that is not sourced.
#[test]
fn the_study_of_middlewares_compares_within_guarantees() {
    driver();
    rust_driver::for_tests("iceoryx2");
    let bench = Bench::new();
    let mut command = bench.tailbound();
    crate::support::rcl::forget(&mut command);
    let middlewares = "implementation=[cyclonedds, zenoh tcp, zenoh udp, iceoryx2, rclcpp]";
    let report = built_in(&bench, command, "middlewares", &["measure.slots=200", "payload=1 KiB", middlewares]);
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 20);
    for condition in conditions {
        let (levels, counts) = (&condition["levels"], &condition["counts"]);
        let reliable = levels["qos"].as_str().unwrap().contains("reliability reliable");
        let not_possible = match levels["implementation"].as_str().unwrap() {
            "rclcpp" => Some("ROS 2 is not sourced"),
            "zenoh udp" if reliable => Some("does not have reliability `reliable` with `transport: udp`"),
            _ => None,
        };
        if let Some(reason) = not_possible {
            let why = condition["not_possible"].as_str().unwrap_or_else(|| panic!("{levels}"));
            assert!(why.contains(reason), "{why}");
            continue;
        }
        let answered = counts["answered"].as_u64().unwrap();
        assert!(if reliable { answered == 200 } else { answered > 0 }, "{levels}: {counts}");
    }
}
