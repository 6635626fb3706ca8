//! Tests of `driver export`: the vendors' libraries accept the exported configuration files, and their threads get the
//! scheduling that the study asks for.

use crate::support::processes::seen_from_outside;
use crate::support::{Bench, exit_and_stderr, fastdds, may_be_real_time, succeeded};
use crate::tune_export;
use std::fs;

const ASKED: &str = "scheduling: { main: { policy: rr, priority: 41 }, middleware: { policy: fifo, priority: 12 }, \
                     receive: { policy: fifo, priority: 42, cpus: \"1\" }, event: { policy: other } }\n";

/// Returns a study that contains the given lines for the driver; the lines are empty if factors or the caller set the
/// driver.
fn study(driver: &str, place: &str, rest: &str) -> String {
    format!(
        "study: export\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 500, warm_up: 0, timeout: 2 s }} }}\nrate: 200 Hz\n\
         {driver}path: loopback\nplace: {place}\nqos: {{ history: keep-all }}\n{rest}"
    )
}

fn export(bench: &Bench, vendor: &str, study: &str, more: &[&str]) -> (i32, String, String) {
    let output = bench.tailbound().args(["driver", "export", "--for", vendor, study]).args(more).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    (code, String::from_utf8_lossy(&output.stdout).into_owned(), text)
}

/// The study of these tests, in which the exported file replaces all options of the driver.
fn with_config(bench: &Bench, vendor: &str, place: &str, xml: &str) -> String {
    fs::write(bench.path("exported.xml"), xml).unwrap();
    study(&format!("driver: {{ {vendor}: {{ config: exported.xml }} }}\n"), place, "")
}

#[test]
fn cyclone_obeys_what_is_exported_for_it() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    bench.study(&study("driver: { cyclonedds: { max_message_size: 4000, unacked_limit: 1000 } }\n", "process", ASKED));
    let (code, xml, text) = export(&bench, "cyclonedds", "study.yaml", &[]);
    assert_eq!(code, 0, "{text}");
    insta::assert_snapshot!(xml);
    let seen = seen_from_outside(&bench, &with_config(&bench, "cyclonedds", "process", &xml));
    println!("{seen:?}");
    let of = |name: &str| seen.get(name).map_or("not there", String::as_str);
    assert_eq!(of("recv"), "SCHED_FIFO 42 1");
    assert_eq!(of("dq.user"), "SCHED_FIFO 42 1");
    assert_eq!(of("tev"), "SCHED_OTHER 0 0");
    assert_eq!(of("gc"), "SCHED_FIFO 12 0");
    assert_eq!(of("dq.builtins"), "SCHED_FIFO 12 0");
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let reported = serde_json::to_value(&record.manifest.trials[0].ends["ping"].transport).unwrap();
    assert_eq!(reported["config"]["General/MaxMessageSize"], "4000 B", "{reported}");
    assert_eq!(reported["config"]["Internal/Watermarks/WhcHigh"], "159840 B", "{reported}");
}

/// Test: the threads of Cyclone DDS get the scheduling that a receipt of `tune` has, by the file that `tune export` prints.
#[test]
fn cyclone_obeys_what_tune_exports() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let kept = [
        "ends.pong.scheduling={ middleware: { policy: fifo, priority: 12 }, receive: { policy: fifo, priority: 42, cpus: \"1\" } }",
        "driver.cyclonedds.max_message_size=4000",
    ];
    tune_export::receipt(&bench, "receipt.json", &kept);
    let xml = tune_export::exported(&bench, &["receipt.json", "--format", "cyclonedds"]);
    let seen = seen_from_outside(&bench, &with_config(&bench, "cyclonedds", "process", &xml));
    let of = |name: &str| seen.get(name).map_or("not there", String::as_str);
    assert_eq!(of("recv"), "SCHED_FIFO 42 1", "{seen:?}");
    assert!(of("gc").starts_with("SCHED_FIFO 12"), "{seen:?}");
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let reported = serde_json::to_value(&record.manifest.trials[0].ends["ping"].transport).unwrap();
    assert_eq!(reported["config"]["General/MaxMessageSize"], "4000 B", "{reported}");
}

/// Test: Fast DDS loads the profile that `tune export` prints.
#[test]
fn fast_dds_takes_what_tune_exports() {
    if fastdds::built().is_none() {
        return;
    }
    let bench = Bench::new();
    let kept =
        ["driver={ fastdds: { max_message_size: 4000 } }", "ends.pong.scheduling={ policy: fifo, priority: 42 }"];
    tune_export::receipt(&bench, "receipt.json", &kept);
    let xml = tune_export::exported(&bench, &["receipt.json", "--format", "fastdds"]);
    succeeded(&bench.run(&with_config(&bench, "fastdds", "process", &xml), &[]));
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let reported = serde_json::to_value(&record.manifest.trials[0].ends["ping"].transport).unwrap();
    assert_eq!(reported["transports"][0]["max_message_size"], 4000, "{reported}");
}

#[test]
fn fast_dds_takes_what_is_exported_for_it() {
    if fastdds::built().is_none() {
        return;
    }
    for (options, place, packets) in [
        ("max_message_size: 4000, publish_mode: async, unacked_limit: 1000", "process", true),
        ("transport: shm, shm_segment_size: 1048576", "process", false),
        ("transport: data-sharing", "process", false),
        ("transport: intra-process", "same-process", false),
    ] {
        let bench = Bench::new();
        bench.study(&study(&format!("driver: {{ fastdds: {{ {options} }} }}\n"), place, ASKED));
        let (code, xml, text) = export(&bench, "fastdds", "study.yaml", &["--end", "pong"]);
        assert_eq!(code, 0, "{options}: {text}");
        if packets {
            insta::assert_snapshot!(xml);
        }
        succeeded(&bench.run(&with_config(&bench, "fastdds", place, &xml), &[]));
        let report = bench.report();
        assert_eq!(report["conditions"][0]["counts"]["answered"], 500, "{options}: {}", report["findings"]);
        let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
        let reported = serde_json::to_value(&record.manifest.trials[0].ends["ping"].transport).unwrap();
        println!("{options}: {reported}");
        let shared = if options.contains("data-sharing") { "on" } else { "off" };
        let mode = if options.contains("async") { "async" } else { "sync" };
        let inside = if options.contains("intra-process") { "full" } else { "off" };
        assert_eq!(reported["intra_process"], inside, "{reported}");
        let kind = if packets { "udp:" } else { "shm:" };
        let ends: Vec<_> = reported["end_points"].as_object().unwrap().values().collect();
        let locators: Vec<_> = ends.iter().flat_map(|e| e["locators"].as_array().unwrap()).collect();
        let here = !locators.is_empty() && locators.iter().all(|l| l.as_str().unwrap().starts_with(kind));
        assert!(here && ends.iter().all(|e| e["data_sharing"] == shared), "{options}: {reported}");
        assert!(ends.iter().any(|e| e["publish_mode"] == mode), "{options}: {reported}");
        if packets {
            assert_eq!(reported["transports"][0]["max_message_size"], 4000);
        }
    }
}

#[test]
fn settings_without_a_profile_key_are_listed() {
    if fastdds::built().is_none() {
        return;
    }
    let bench = Bench::new();
    let lo = "{ existing: { ping: { interface: lo }, pong: { interface: lo } } }";
    bench.study(&study("driver: fastdds\n", "process", "").replace("path: loopback", &format!("path: {lo}")));
    let by_name = export(&bench, "fastdds", "study.yaml", &[]);
    bench.study(&study("driver: { fastdds: { discovery_server: \"127.0.0.1:11811\" } }\n", "process", ""));
    let server = export(&bench, "fastdds", "study.yaml", &[]);
    insta::assert_snapshot!([by_name, server].map(|(code, out, text)| format!("exit {code}\n{out}{text}")).join("\n"));
}

/// Test: a condition is selected by its number or by its levels; a single condition needs no selection.
#[test]
fn a_condition_is_named_by_number_or_by_levels() {
    let bench = Bench::new();
    bench.study(&study("", "process", "factors: { driver: [udp, cyclonedds], payload: [64 B, 1 KiB] }\n"));
    let by_number = export(&bench, "cyclonedds", "study.yaml#3", &[]);
    assert_eq!(by_number.0, 0, "{}", by_number.2);
    assert_eq!(export(&bench, "cyclonedds", "study.yaml#payload=1KiB,driver=cyclonedds", &[]), by_number);
    let only = ["--set", "driver=[cyclonedds]", "--set", "payload=[1 KiB]"];
    assert!(export(&bench, "cyclonedds", "study.yaml", &only).1.contains("condition 0 (driver cyclonedds"));
}

#[test]
fn exports_that_are_impossible_are_refused() {
    let bench = Bench::new();
    let factors =
        "factors: { driver: [udp, cyclonedds, { cyclonedds: { config: own.xml } }], payload: [64 B, 1 GiB] }\n";
    fs::write(bench.path("own.xml"), "<CycloneDDS/>").unwrap();
    bench.study(&study("", "process", factors).replace("qos: { history: keep-all }\n", ""));
    let refused = |vendor: &str, condition: &str| {
        let (code, out, text) = export(&bench, vendor, condition, &[]);
        assert_eq!(out, "");
        format!("$ {vendor} {condition}\nexit {code}\n{text}")
    };
    let all = [
        ("cyclonedds", "study.yaml"),
        ("cyclonedds", "study.yaml#9"),
        ("cyclonedds", "study.yaml#two"),
        ("cyclonedds", "study.yaml#payload=64 B"),
        ("cyclonedds", "study.yaml#driver=cyclonedds,payload=2 KiB"),
        ("cyclonedds", "study.yaml#3"),
        ("cyclonedds", "study.yaml#4"),
        ("cyclonedds", "study.yaml#0"),
        ("fastdds", "study.yaml#2"),
        ("cyclonedds", "nothing.yaml#0"),
    ]
    .map(|(vendor, condition)| refused(vendor, condition));
    insta::assert_snapshot!(all.join("\n").replace(bench.dir.path().to_str().unwrap(), "BENCH"));
}
