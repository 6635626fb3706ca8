//! Tests of every driver in every receive mode, with and without a hand-off, open loop and stop-and-wait, over
//! loopback.

use crate::support::{Bench, succeeded};
use serde_json::Value;

fn study(driver: &str, receive: &str, hand_off: &str, rate: &str) -> String {
    format!(
        "study: modes\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 300, warm_up: 20, timeout: 2 s, receive: {receive}, \
         hand_off: {hand_off} }} }}\nrate: {rate}\ndriver: {driver}\npath: loopback\nplace: process\npayload: 1 KiB\n"
    )
}

/// Runs a study, checks the counts and legs of its report, and returns the report.
fn measured(text: &str, what: &str) -> Value {
    let bench = Bench::new();
    let output = bench.run(text, &[]);
    succeeded(&output);
    let report = bench.report();
    report["conditions"].as_array().unwrap().iter().for_each(|condition| has_whole_figures(condition, what));
    report
}

fn has_whole_figures(condition: &Value, what: &str) {
    let what = format!("{what} {}", condition["levels"]);
    let count = |name: &str| condition["counts"][name].as_u64().unwrap();
    assert_eq!(count("scheduled"), 300, "{what}");
    let sum = count("answered") + count("after_timeout") + count("lost") + count("not_sent");
    assert_eq!(sum, 300, "{what}: the outcomes add up to what was scheduled");
    assert!(count("answered") >= 200, "{what}: {}", condition["counts"]);
    for metric in ["round_trip", "out", "turnaround", "back", "send_duration"] {
        assert!(condition[metric]["n"].as_u64().unwrap() >= 200, "{what}: {metric}");
    }
    // The legs of one message add up to its round trip, so their means do.
    let mean = |metric: &str| condition[metric]["mean_ns"].as_f64().unwrap();
    let legs = mean("out") + mean("turnaround") + mean("back");
    assert!((legs - mean("round_trip")).abs() < 1.0, "{what}: legs {legs}, round trip {}", mean("round_trip"));
}

/// Measures all combinations of receive mode, hand-off and rate in one run: each is a condition with one trial.
fn all_modes(driver: &str) {
    let study = format!(
        "study: modes\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 300, warm_up: 20, timeout: 2 s }} }}\n\
         driver: {driver}\npath: loopback\nplace: process\npayload: 1 KiB\nfactors:\n  \
         measure.receive: [listener, block, spin]\n  measure.hand_off: [none, thread]\n  rate: [1 kHz, max]\n"
    );
    let report = measured(&study, driver);
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 12);
    for condition in conditions {
        let levels = &condition["levels"];
        let has = |name: &str| {
            let of_trial = |t: &&Value| t["trial"] == condition["trial_ids"][0];
            report["threads"].as_array().unwrap().iter().filter(of_trial).any(|t| t.to_string().contains(name))
        };
        assert_eq!(has("tb-process"), levels["measure.hand_off"] == "thread", "{levels}: the processing thread");
        assert_eq!(has("tb-receive"), levels["measure.receive"] != "listener", "{levels}: the receive thread");
    }
}

#[test]
fn udp() {
    all_modes("udp");
}

#[test]
fn cyclonedds() {
    all_modes("cyclonedds");
}

#[test]
fn one_process_hosts_both_ends() {
    for driver in ["udp", "cyclonedds", "\"null\""] {
        let text = study(driver, "listener", "none", "1 kHz").replace("place: process", "place: same-process");
        measured(&text, driver);
    }
}

/// Test: kernel receive time stamps, converted to the monotonic clock, lie between the send call and the receipt by the
/// thread.
#[test]
fn kernel_stamps_are_converted() {
    let bench = Bench::new();
    succeeded(&bench.run(&study("{ udp: { timestamps: \"on\" } }", "block", "none", "1 kHz"), &[]));
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let width = record.manifest.trials[0].ends["ping"].clock_width_ns.expect("stamps were converted");
    let (mut stamped, mut outside) = (0, 0);
    record
        .slots(0, &mut |batch| {
            for i in 0..batch.len() {
                let (kernel, receive) = (batch.kernel_rx_ns[i], batch.receive_ns[i]);
                if kernel != tailbound_model::NO_TIME && receive != tailbound_model::NO_TIME {
                    stamped += 1;
                    let begin = batch.send_begin_ns[i];
                    outside += usize::from(kernel < begin - width || kernel > receive + width);
                }
            }
        })
        .unwrap();
    assert!(stamped >= 200, "{stamped} answers carry a kernel stamp");
    assert_eq!(outside, 0, "of {stamped} stamps, with a clock known to within {width} ns");
}

/// Test: with `middleware`, the threads of Cyclone DDS have the default slack of 50 us and the memory is not locked, while
/// Tailbound's own threads keep 1 ns; without it, all have 1 ns.
#[test]
fn the_middleware_keeps_the_defaults_of_the_system_if_the_study_asks() {
    let study = study("cyclonedds", "block", "thread", "1 kHz");
    let asked = study.clone() + "middleware: { timer_slack: default, memory: unlocked }\n";
    for (text, of_middleware, locked) in [(&asked, 50_000, false), (&study, 1, true)] {
        let report = measured(text, "middleware");
        for process in report["threads"].as_array().unwrap() {
            for thread in process["after"].as_array().unwrap() {
                let own = thread["name"].as_str().unwrap().starts_with("tb-");
                let slack = if own { 1 } else { of_middleware };
                assert_eq!(thread["timer_slack_ns"], slack, "{thread}");
            }
        }
        for end in ["ping", "pong"] {
            assert_eq!(report["trials"][0]["ends"][end]["memory_locked"], locked, "{end}");
        }
    }
}

/// Test: the record has the settings of each thread as the kernel shows them, and says how each thread was created.
#[test]
fn the_thread_table_shows_births() {
    let report = measured(&study("cyclonedds", "listener", "none", "1 kHz"), "cyclonedds");
    let text = report["threads"].to_string();
    for name in ["recv", "tev", "gc"] {
        assert!(text.contains(&format!("\"name\":\"{name}\"")), "thread {name} of Cyclone DDS is in {text}");
    }
    assert!(text.contains("\"born_in\""), "{text}");
}
