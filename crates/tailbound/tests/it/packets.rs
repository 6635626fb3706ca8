//! Tests of the level `packets`: a token bucket at a port of the bridge holds messages of a real run, and the report must
//! say so.

use crate::support::host::{cannot, is_root};
use crate::support::processes::wait_for_measuring;
use crate::support::{Bench, succeeded};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Parameters of a token bucket that lets everything pass.
const FAST: &str = "rate 40gbit burst 100k limit 50m";
/// Time for which the token bucket holds messages, and time between two such times.
const HELD: Duration = Duration::from_millis(60);
const PAUSE: Duration = Duration::from_millis(400);

/// Runs a program in a network namespace. Returns its standard output, or `None` if it fails.
fn within(namespace: &str, program: &str, line: &str) -> Option<Vec<u8>> {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={namespace}")).arg(program).args(line.split_whitespace());
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// The interfaces of a network namespace, as `ip` lists them.
fn links(namespace: &str) -> Vec<Value> {
    let listed = within(namespace, "ip", "-j -d link").unwrap_or_default();
    serde_json::from_slice(&listed).unwrap_or_default()
}

/// The network namespace with the bridge of a run, and its port towards the pong.
fn port_towards_pong(controller: i32) -> (String, String) {
    let supervisor = wait_for_measuring(controller, "pong");
    let own = links(&format!("/proc/{supervisor}/ns/net"));
    let peers: Vec<u64> = own.iter().filter_map(|link| link["link_index"].as_u64()).collect();
    let fds = std::fs::read_dir(format!("/proc/{controller}/fd")).unwrap().flatten();
    let is_namespace = |fd: &std::fs::DirEntry| {
        std::fs::read_link(fd.path()).is_ok_and(|link| link.to_string_lossy().starts_with("net:["))
    };
    for namespace in fds.filter(is_namespace).map(|fd| fd.path().to_string_lossy().into_owned()) {
        let is_port = |link: &Value| {
            link.get("master").is_some() && link["ifindex"].as_u64().is_some_and(|index| peers.contains(&index))
        };
        if let Some(port) = links(&namespace).iter().find(|link| is_port(link)) {
            return (namespace, port["ifname"].as_str().unwrap().to_owned());
        }
    }
    panic!("no port of a bridge leads to the pong");
}

/// What the report must say: the cause, and the parameters of the token bucket while it holds messages.
struct Planted {
    cause: &'static str,
    slow: &'static str,
}

/// Runs a study whose messages pass a bridge with a token bucket that holds them five times, and tests that the report
/// names the cause with the device for most of the excess of the worst incidents.
fn a_held_message_is_named(study: &str, planted: &Planted) {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let study = format!(
        "measure: {{ ping-pong: {{ duration: 4 s, warm_up: 10, timeout: 2 s, receive: block }} }}\nplace: netns\npath: bridge\n\
         attribution: packets\n{study}"
    );
    let mut command = bench.to_run(bench.tailbound(), "record", &study);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (namespace, port) = port_towards_pong(run.id() as i32);
    let tc =
        |word: &str, how: &str| within(&namespace, "tc", &format!("qdisc {word} dev {port} root tbf {how}")).is_some();
    let can = tc("add", FAST);
    let begin = Instant::now();
    for n in 1..=5 {
        std::thread::sleep((PAUSE * n).saturating_sub(begin.elapsed()));
        tc("change", planted.slow);
        std::thread::sleep(HELD);
        tc("change", FAST);
    }
    assert!(run.wait().unwrap().success());
    if !can {
        return println!("skipped: tc cannot add a token bucket");
    }
    let condition = &bench.report()["conditions"][0];
    let recorded = condition["recordings"].as_array().unwrap();
    if recorded.iter().any(|recording| recording["level"] != "packets") {
        return println!("skipped: {}", condition["recordings"]);
    }
    for recording in recorded {
        assert!(recording.get("not_followed").is_none(), "{recording}");
    }
    let name = format!("tbf of {port}");
    let incidents = condition["incidents"].as_array().unwrap();
    let is_right = |incident: &&Value| {
        let entries = incident["ledger"].as_array().into_iter().flatten();
        let of = entries.filter(|e| e["cause"] == planted.cause && e["by"]["name"] == *name && e["leg"] == "out");
        2 * of.map(|e| e["ns_low"].as_i64().unwrap()).sum::<i64>() > incident["excess_ns"].as_i64().unwrap()
    };
    let right: Vec<&Value> = incidents.iter().filter(is_right).collect();
    let (count, texts) = (right.len(), incidents.iter().map(|i| format!("{}\n", i["text"])).collect::<String>());
    // Beside other work, one of the times can have another cause.
    assert!(count >= 4, "{count} of {} incidents name {name}: {texts}", incidents.len());
    // The pictures of these incidents have a row for the device.
    let at_port = |span: &Value| {
        span["at"]["kind"] == "queue_discipline" && span["at"]["device"] == *port && span["cause"] == planted.cause
    };
    let pictures: Vec<&Vec<Value>> = right.iter().filter_map(|i| i["waterfall"]["spans"].as_array()).collect();
    assert!(!pictures.is_empty() && pictures.iter().all(|spans| spans.iter().any(at_port)), "{pictures:?}");
}

#[test]
fn a_token_bucket_at_a_port_of_the_bridge_is_named() {
    // Each packet counts 60,000 bytes more: the first one empties the bucket.
    let slow = "rate 8kbit burst 61000 overhead 60000 limit 50m";
    a_held_message_is_named("driver: udp\npayload: 64 B\nrate: 500 Hz\n", &Planted { cause: "queue_discipline", slow });
}

/// The bucket has room for one fragment: the first one passes at once, and each of the others waits until the bucket is
/// full again: 12 ms, or 2 ms.
const ONE_FRAGMENT: &str = "rate 1mbit burst 1600 limit 50m";
const ONE_FRAGMENT_SOONER: &str = "rate 6mbit burst 1600 limit 50m";

#[test]
fn a_datagram_waits_for_its_second_fragment() {
    let planted = Planted { cause: "reassembly", slow: ONE_FRAGMENT };
    a_held_message_is_named("driver: udp\npayload: 4000 B\nrate: 20 Hz\n", &planted);
}

#[test]
fn a_message_waits_for_its_other_datagrams() {
    let planted = Planted { cause: "reassembly", slow: ONE_FRAGMENT_SOONER };
    a_held_message_is_named("driver: cyclonedds\npayload: 20 KiB\nrate: 20 Hz\n", &planted);
}

/// Test: the kernel refuses BPF to an ordinary user; the next level is used, and one sentence says why.
#[test]
fn an_ordinary_user_learns_why_packets_are_not_recorded() {
    const NOBODY: u32 = 65_534;
    let bench = Bench::new();
    let study = "measure: { ping-pong: { slots: 100, warm_up: 10, timeout: 1 s, receive: block } }\nrate: 500 Hz\n\
                 driver: udp\npath: loopback\nattribution: packets\nreport: { late_above: 1 ns }\n";
    let mut command = bench.to_run(bench.tailbound(), "record", study);
    if is_root() {
        std::os::unix::fs::chown(bench.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    match command.output() {
        // The folder of the program may be closed to other users.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            return println!("skipped: the program cannot be started as another user");
        }
        output => succeeded(&output.unwrap()),
    }
    let report = bench.report();
    let recording = &report["conditions"][0]["recordings"][0];
    assert_eq!(recording["level"], "threads", "{recording}");
    let instead = recording["instead"].as_str().unwrap();
    if instead.contains("has no tracer") {
        return println!("skipped: {instead}");
    }
    // What comes after the first semicolon depends on the setting kernel.perf_event_paranoid.
    let refused = instead.split("; ").next().unwrap();
    insta::assert_snapshot!("bpf_refused", refused);
    let warnings = report["warnings"].as_array().into_iter().flatten();
    let said =
        warnings.filter(|w| w["code"] == "packets_not_recorded" && w["text"].as_str().unwrap().contains(refused));
    assert_eq!(said.count(), 2, "each end has a warning: {}", report["warnings"]);
}
