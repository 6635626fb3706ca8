//! Tests of loads that send over the path, observed by programs other than Tailbound: interface counters, procfs,
//! `chrt`.

use crate::support::fastdds::built;
use crate::support::processes::{descendants, kill, wait_for_measuring};
use crate::support::{Bench, exit_and_stderr, output_of, succeeded};
use serde_json::Value;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn study(driver: &str, slots: u32, load: &str) -> String {
    format!(
        "study: sending\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {slots}, warm_up: 0, timeout: 2 s }} }}\n\
         rate: 500 Hz\ndriver: {driver}\npath: veth\nplace: netns\nquiet: 100 ms\nload: {load}\n"
    )
}

fn begin(bench: &Bench, study: &str) -> Child {
    let study = bench.study(study);
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_measuring(child.id() as i32, "ping");
    child
}

fn arguments(pid: i32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).replace('\0', " ")
}

/// Waits until the run has `n` processes of this load (a sending and a receiving process), and returns their ids.
fn halves(run: &Child, kind: &str, n: usize) -> Vec<i32> {
    let mark = format!("agent --load {kind}");
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let mut found = descendants(run.id() as i32);
        found.retain(|pid| arguments(*pid).contains(&mark));
        if found.len() >= n || Instant::now() > deadline {
            assert_eq!(found.len(), n, "processes of {mark}");
            return found;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Local ports of the UDP sockets of a process.
fn udp_ports(pid: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let held: Vec<String> =
        entries.filter_map(|e| fs::read_link(e.path()).ok()).map(|l| l.to_string_lossy().into_owned()).collect();
    let table = fs::read_to_string(format!("/proc/{pid}/net/udp")).unwrap_or_default();
    let port = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        held.contains(&format!("socket:[{}]", columns.get(9)?)).then(|| columns[1].to_owned())
    };
    table.lines().skip(1).filter_map(port).collect()
}

fn policy(pid: i32) -> String {
    let text = output_of("chrt", &["-p", &pid.to_string()]);
    text.lines().next().unwrap_or_default().rsplit(": ").next().unwrap_or_default().to_owned()
}

/// Rows of the report about its only load: the part that sends, and the part that receives.
fn both(report: &Value) -> (Value, Value) {
    let loads = report["loads"].as_array().unwrap_or_else(|| panic!("no loads: {}", report["warnings"]));
    let part =
        |part: &str| loads.iter().find(|l| l["part"] == part).unwrap_or_else(|| panic!("{part}: {loads:?}")).clone();
    (part("sends"), part("receives"))
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// Value of a counter that the kernel keeps for the network interface of an end.
fn interface(report: &Value, end: &str, counter: &str) -> u64 {
    number(&report["trials"][0]["ends"][end]["counters"], &format!("interface.{counter}"))
}

#[test]
fn a_udp_stream_sends_at_its_rate_and_its_datagrams_arrive() {
    for (at, other) in [("ping", "pong"), ("pong", "ping")] {
        let bench = Bench::new();
        let load = format!(
            "[{{ run: {{ udp-stream: {{ flows: 3, payload: 1000 B, rate: 1 kHz }} }}, at: {at}, \
             scheduling: {{ policy: batch, nice: 3, cpus: \"0-1\" }} }}]"
        );
        let child = begin(&bench, &study("udp", 1000, &load));
        let pids = halves(&child, "udp-stream", 2);
        std::thread::sleep(Duration::from_millis(500));
        let policies: Vec<String> = pids.iter().map(|pid| policy(*pid)).collect();
        let mut sockets: Vec<usize> = pids.iter().map(|pid| udp_ports(*pid).len()).collect();
        sockets.sort_unstable();
        let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{text}");
        assert_eq!(policies, ["SCHED_BATCH", "SCHED_BATCH"], "both halves");
        assert_eq!(sockets, [1, 3], "one sink, three flows with ports of their own");
        assert!(pids.iter().all(|pid| !arguments(*pid).contains("udp-stream")), "left, and with it its port");

        let report = bench.report();
        let (sends, receives) = both(&report);
        assert_eq!((&sends["at"], &receives["at"]), (&at.into(), &other.into()));
        let (sent, received) = (number(&sends, "messages"), number(&receives, "messages"));
        // The load sends during two seconds of slots, and for some time before and after them.
        assert!((5_000..9_000).contains(&sent), "{sends}");
        assert!(received <= sent && number(&receives, "missing") == 0, "{sends} {receives}");
        assert_eq!(number(&receives, "octets"), received * 1000);
        // Every datagram of the load is a packet; the ends send 1000 messages or answers, and some packets for the path
        // check and the hellos.
        let packets = interface(&report, at, "tx_packets");
        assert!((sent + 1000..sent + 1100).contains(&packets), "{packets} packets for {sent} datagrams");
        assert!(interface(&report, at, "tx_bytes") > sent * 1000);
        assert!(interface(&report, other, "rx_packets") >= received + 1000);
        let findings = report["findings"].to_string();
        assert!(findings.contains("the load `udp-stream 3 x 1 kB at 1 kHz` ran (batch nice 3, CPU 0-1)"), "{findings}");
        assert!(findings.contains(&format!("came to the {other} end, none missing")), "{findings}");
        // Packets of the load are not counted as packets of the messages.
        assert!(
            report["conditions"][0]["path_proof"]["unclear"].as_str().unwrap().contains("loads of this trial send")
        );
    }
}

#[test]
fn a_udp_stream_begins_and_ends_when_it_is_to_and_is_cut_into_fragments() {
    let bench = Bench::new();
    let load = "[{ run: { udp-stream: { payload: 4000 B, rate: 500 Hz } }, start: 400 ms, duration: 600 ms }]";
    succeeded(&bench.run(&study("udp", 1000, load), &[]));
    let report = bench.report();
    let (sends, receives) = both(&report);
    let (began, ran) = (sends["began_after_ns"].as_i64().unwrap(), sends["ran_ns"].as_i64().unwrap());
    const MS: i64 = 1_000_000;
    assert!((300 * MS..1_500 * MS).contains(&began) && (600 * MS..1_500 * MS).contains(&ran), "{sends}");
    assert!(receives["began_after_ns"].as_i64().unwrap() < 0 && receives["ran_ns"].as_i64().unwrap() > 2_000 * MS);
    let sent = number(&sends, "messages");
    assert!((200..=750).contains(&sent), "600 ms at 500 Hz: {sends}");
    assert_eq!(number(&receives, "messages"), sent, "it ended long before its sink");
    // 4008 bytes are sent in fragments of 1480 bytes.
    let fragments = number(&report["trials"][0]["ends"]["ping"]["counters"], "Ip.FragCreates");
    assert!((3 * sent..3 * sent + 200).contains(&fragments), "{fragments} fragments of {sent} datagrams");
}

#[test]
fn a_half_that_is_gone_makes_the_trial_invalid() {
    let load = "[{ run: { udp-stream: { rate: 500 Hz } } }]";
    for half in [0, 1] {
        let bench = Bench::new();
        let child = begin(&bench, &study("udp", 800, load));
        let pids = halves(&child, "udp-stream", 2);
        std::thread::sleep(Duration::from_millis(300));
        kill(pids[half]);
        let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
        assert_eq!(code, 6, "{text}");
        let report = bench.report();
        let warnings = report["warnings"].as_array().unwrap();
        let warning =
            warnings.iter().find(|w| w["code"] == "load_fell_short").unwrap_or_else(|| panic!("{warnings:?}"));
        assert!(warning["text"].as_str().unwrap().contains("the load ended by itself after "), "{warning}");
    }
}

/// Test: after all processes of a run were killed, no process of its loads sends or has the port of the sink (the
/// receiver of the load).
#[test]
fn nothing_of_a_killed_run_sends_or_listens() {
    let bench = Bench::new();
    let load = "[{ run: { udp-stream: { rate: 500 Hz } } }, { run: { topic: { payload: 1 kB, rate: 100 Hz } } }]";
    let mut child = begin(&bench, &study("cyclonedds", 5000, load));
    let mut pids = halves(&child, "udp-stream", 2);
    pids.extend(halves(&child, "topic", 2));
    kill(child.id() as i32);
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while pids.iter().any(|pid| arguments(*pid).contains("--load")) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let left: Vec<String> = pids.iter().map(|pid| arguments(*pid)).filter(|a| a.contains("--load")).collect();
    assert!(left.is_empty(), "{left:?}");
    succeeded(&bench.tailbound().args(["lab", "cleanup"]).output().unwrap());
}

/// Test of the condition for which the load `topic` was made: 6 MB at 30 Hz beside messages of 64 B.
#[test]
fn a_topic_of_its_own_participant_goes_through_the_same_driver() {
    let mut drivers = vec!["{ cyclonedds: { multicast: \"off\" } }"];
    if built().is_some() {
        drivers.push("fastdds");
    }
    for driver in drivers {
        let bench = Bench::new();
        let load = "[{ run: { topic: { payload: 6 MB, rate: 30 Hz } }, scheduling: { policy: batch, nice: 5 } }]";
        let child = begin(&bench, &study(driver, 1000, &format!("{load}\nqos: {{ history: keep-all }}")));
        let pids = halves(&child, "topic", 2);
        std::thread::sleep(Duration::from_millis(1500));
        let policies: Vec<String> = pids.iter().map(|pid| policy(*pid)).collect();
        let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{driver}: {text}");
        assert_eq!(policies, ["SCHED_BATCH", "SCHED_BATCH"]);
        let report = bench.report();
        let (sends, receives) = both(&report);
        let (sent, received) = (number(&sends, "messages"), number(&receives, "messages"));
        let due = sent + number(&sends, "refused");
        assert!((20..=80).contains(&due) && sent > 10, "{driver}: some 2 s at 30 Hz: {sends}");
        assert!(received > 0 && received <= sent, "{driver}: {sends} {receives}");
        assert_eq!(number(&receives, "missing"), 0, "{driver}, with a history that keeps all: {receives}");
        assert_eq!(number(&sends, "octets"), sent * 6_000_000);
        let bytes = interface(&report, "ping", "tx_bytes");
        assert!((received * 6_000_000..(sent + 20) * 7_000_000).contains(&bytes), "{driver}: {bytes} for {sent}");
        assert!(pids.iter().all(|pid| !arguments(*pid).contains("--load")), "left");
    }
}

/// Test: the load `topic` is matched before the first slot, although Fast DDS often needs three seconds to match two
/// end points, which is longer than this trial.
#[test]
fn a_topic_that_meets_late_is_there_from_the_first_slot_on() {
    let mut drivers = vec!["udp", "cyclonedds"];
    if built().is_some() {
        drivers.extend(["fastdds"; 3]);
    }
    for driver in drivers {
        let bench = Bench::new();
        let load = "[{ run: { topic: { payload: 1 kB, rate: 100 Hz } } }]";
        succeeded(&bench.run(&study(driver, 500, load), &[]));
        let (sends, _) = both(&bench.report());
        let began = sends["began_after_ns"].as_i64().unwrap();
        assert!((-1_000_000_000..0).contains(&began), "{driver}: at the word to begin: {sends}");
        let due = sends["ran_ns"].as_u64().unwrap() / 10_000_000;
        let (done, late) = (number(&sends, "messages") + number(&sends, "refused"), number(&sends, "late"));
        assert!(due >= 100 && done + late + 15 >= due, "{driver}: {due} due: {sends}");
    }
}

#[test]
fn a_topic_in_the_participant_of_the_end_has_a_thread_of_its_own() {
    let mut drivers = vec!["cyclonedds", "udp"];
    if built().is_some() {
        drivers.push("fastdds");
    }
    for driver in drivers {
        let bench = Bench::new();
        let load = "[{ run: { topic: { payload: 2 kB, rate: 397 Hz, participant: shared } }, \
                    scheduling: { policy: batch, nice: 5, cpus: \"1\" } }]";
        let child = begin(&bench, &study(driver, 1000, load));
        std::thread::sleep(Duration::from_millis(500));
        let run = descendants(child.id() as i32);
        assert!(run.iter().all(|pid| !arguments(*pid).contains("--load")), "no process of its own");
        let tasks =
            run.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten());
        let named = tasks.filter(|t| fs::read_to_string(t.path().join("comm")).is_ok_and(|n| n.trim() == "tb-load-0"));
        let threads: Vec<i32> = named.map(|t| t.file_name().to_str().unwrap().parse().unwrap()).collect();
        let policies: Vec<String> = threads.iter().map(|tid| policy(*tid)).collect();
        let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{driver}: {text}");
        assert_eq!(policies, ["SCHED_BATCH", "SCHED_BATCH"], "{driver}: a writer and a reader");
        let report = bench.report();
        let (sends, receives) = both(&report);
        let sent = number(&sends, "messages");
        assert!((600..=1000).contains(&sent), "{driver}: some 2 s at 397 Hz: {sends}");
        assert!(number(&receives, "messages") * 10 >= sent * 9, "{driver}: {receives}");
        assert_eq!((&sends["policy"], &sends["cpus"]), (&"batch nice 5".into(), &"1".into()));
        assert!(number(&sends, "cpu_ns") > 0);
        assert!(interface(&report, "ping", "tx_bytes") > sent * 2_000, "{driver}");
        let roles: Vec<&Value> =
            report["threads"].as_array().unwrap().iter().flat_map(|t| t["after"].as_array().unwrap()).collect();
        let main = roles.iter().find(|t| t["role"] == "main" && t["name"] == "tb-ping");
        assert!(main.is_some(), "{driver}");
        let before = report["threads"].as_array().unwrap().iter().flat_map(|t| t["before"].as_array().unwrap());
        let own = before.filter(|t| t["name"] == "tb-load-0" && t["role"] == "load").count();
        assert_eq!(own, 2, "{driver}: there before the first slot");
        // The measuring thread sleeps once for each slot, and the load does not wake it. Two writers of one participant
        // of Fast DDS wait for each other if they send at the same time; 400 Hz would meet every fifth slot of 500 Hz.
        let switches = |t: &Value| number(t, "voluntary_switches");
        let slept = switches(main.unwrap())
            - report["threads"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|t| t["before"].as_array().unwrap())
                .find(|t| t["tid"] == main.unwrap()["tid"])
                .map_or(0, switches);
        assert!((900..1_150).contains(&slept), "{driver}: {slept} sleeps for 1000 slots beside {sent} messages");
    }
}
