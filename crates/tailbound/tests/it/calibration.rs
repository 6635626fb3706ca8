//! Tests of the driver `null` with a scripted clock, through the real agent, hot loop, record and report: the figures
//! must equal the script, from which the tests compute them independently.

use crate::support::{Bench, exit_and_stderr, quantile, succeeded};
use serde_json::{Value, json};
use tailbound_driver_null::script::{Direction, Script};

const SLOTS: u64 = 40_000;
const WARM_UP: u64 = 100;

fn study(script: &Value) -> String {
    format!(
        "study: calibration\nquestion: Does the instrument find what the script says?\n\
         measure: {{ ping-pong: {{ slots: {SLOTS}, warm_up: {WARM_UP}, timeout: 1 s }} }}\n\
         rate: 1 kHz\npayload: 64 B\nplace: same-process\npath: loopback\nattribution: auto\n\
         driver: {{ null: {{ clock: scripted, timestamps: \"on\", script: '{script}' }} }}\n\
         report: {{ quantiles: [0.5, 0.9, 0.99, 0.999, 0.9999] }}\n"
    )
}

/// The value of rank ceil(q n) among all n slots; lost slots have the highest ranks.
fn truth(values: &mut [Option<i64>], q: f64) -> Option<i64> {
    values.sort_by_key(|v| v.unwrap_or(i64::MAX));
    values[(q * values.len() as f64 - 1e-9).ceil() as usize - 1]
}

/// Whether two values can be in the same bucket of the histogram: they differ by at most 1/128.
fn same_bucket(a: i64, b: i64) -> bool {
    a.abs_diff(b) as f64 <= a.max(b) as f64 / 128.0
}

#[test]
fn every_quantile_is_the_scripts() {
    let script = json!({ "seed": 7, "links": {
        "out": { "delay": { "lognormal": { "median_ns": 20000.0, "sigma": 0.8 } }, "send_cost_ns": 500 },
        "back": { "delay": { "pareto": { "scale_ns": 10000.0, "shape": 3.0 } }, "send_cost_ns": 300 } } });
    let bench = Bench::new();
    succeeded(&bench.run(&study(&script), &[]));
    let report = bench.report();
    let script = Script::parse(&script.to_string()).unwrap();
    let fates = |d| (WARM_UP..WARM_UP + SLOTS).map(|k| script.fate(d, k).travel_ns as i64).collect::<Vec<_>>();
    let (out, back) = (fates(Direction::Out), fates(Direction::Back));
    let metrics: [(&str, Vec<i64>); 4] = [
        ("out", out.iter().map(|o| o + 500).collect()),
        ("back", back.clone()),
        ("round_trip", out.iter().zip(&back).map(|(o, b)| o + 500 + b + 300).collect()),
        ("from_intended", out.iter().zip(&back).map(|(o, b)| o + 500 + b + 300).collect()),
    ];
    let counts = &report["conditions"][0]["counts"];
    assert_eq!((counts["scheduled"].as_u64(), counts["answered"].as_u64()), (Some(SLOTS), Some(SLOTS)));
    for (metric, values) in metrics {
        let mut values: Vec<Option<i64>> = values.into_iter().map(Some).collect();
        let biggest = values.iter().flatten().max().copied();
        for q in [0.5, 0.9, 0.99, 0.999, 0.9999] {
            let (found, expected) = (quantile(&report, metric, q)["value_ns"].as_i64(), truth(&mut values, q));
            let (found, expected) = (found.expect("a value"), expected.expect("nothing is lost"));
            assert!(same_bucket(found, expected), "{metric} q {q}: found {found}, scripted {expected}");
            let low = quantile(&report, metric, q)["low_ns"].as_i64().unwrap();
            let high = quantile(&report, metric, q)["high_ns"].as_i64().unwrap();
            assert!(low <= found && found <= high, "{metric} q {q}: {found} outside [{low}, {high}]");
        }
        assert_eq!(report["conditions"][0][metric]["max_ns"].as_i64(), biggest, "{metric}: the maximum");
    }
}

/// Test of one thread for both ends (executor): if a message arrives while the thread publishes, the message waits; if
/// a slot becomes due while the thread answers, the slot waits.
#[test]
fn an_executor_serves_one_thing_at_a_time() {
    let study = |script: &Value, executor: bool| {
        let text = study(script);
        if !executor {
            return text;
        }
        let one = "arrangement: { processes: 1, participants: 1, executors: 1 }";
        text.replace("timeout: 1 s", "timeout: 1 s, receive: executor").replace("place: same-process", one)
    };
    let link = |delay: u64, cost: u64| json!({ "delay": { "constant": delay }, "send_cost_ns": cost });
    // A ping arrives 2 us after the next slot is due, in the middle of a send call of 5 us.
    let arriving = json!({ "links": { "out": link(997_000, 5_000), "back": link(10_000, 3_000) } });
    // The answer to a ping is sent from 6 us before until 4 us after the next slot is due.
    let answering = json!({ "links": { "out": link(994_000, 0), "back": link(10_000, 10_000) } });
    for (script, metric, apart, together) in
        [(arriving, "out", 1_002_000, 1_005_000), (answering, "send_lateness", 0, 4_000)]
    {
        for (executor, expected) in [(false, apart), (true, together)] {
            let bench = Bench::new();
            succeeded(&bench.run(&study(&script, executor), &["measure.slots=2000"]));
            let report = bench.report();
            let counts = &report["conditions"][0]["counts"];
            assert_eq!(counts["answered"].as_u64(), Some(2_000), "{metric}, executor {executor}: {counts}");
            let found = quantile(&report, metric, 0.5)["value_ns"].as_i64();
            assert_eq!(found, Some(expected), "{metric}, executor {executor}");
        }
    }
}

#[test]
fn losses_are_later_than_everything() {
    let script = json!({ "seed": 11, "links": {
        "out": { "delay": { "uniform": [10_000, 90_000] }, "loss": { "probability": 0.02 },
                 "duplicate": { "counters": [500, 501], "extra_ns": 3000 } },
        "back": { "delay": { "constant": 5000 }, "reorder": { "counters": [700, 710, 720], "extra_ns": 1_500_000 } } } });
    let bench = Bench::new();
    succeeded(&bench.run(&study(&script), &[]));
    let report = bench.report();
    let script = Script::parse(&script.to_string()).unwrap();
    let mut values: Vec<Option<i64>> = (WARM_UP..WARM_UP + SLOTS)
        .map(|k| (script.fate(Direction::Out, k), script.fate(Direction::Back, k)))
        .map(|(out, back)| (!out.lost && !back.lost).then_some((out.travel_ns + back.travel_ns) as i64))
        .collect();
    let lost = values.iter().filter(|v| v.is_none()).count() as u64;
    let counts = &report["conditions"][0]["counts"];
    assert!(lost > 500, "the script loses messages");
    assert_eq!(counts["lost"].as_u64(), Some(lost));
    assert_eq!(counts["scheduled"].as_u64(), Some(SLOTS));
    assert_eq!(counts["answered"].as_u64(), Some(SLOTS - lost));
    let arrives = |k: u64| !script.fate(Direction::Out, k).lost;
    // 1.5 ms later than planned: the next message arrives earlier, if it is not lost.
    let overtaken = [700, 710, 720].into_iter().filter(|k| arrives(*k) && arrives(k + 1)).count() as u64;
    let doubled = [500, 501].into_iter().filter(|k| arrives(*k)).count() as u64;
    assert!(overtaken > 0 && doubled > 0, "the script overtakes and doubles");
    assert_eq!(counts["out_of_order"].as_u64(), Some(overtaken));
    assert_eq!(counts["duplicate"].as_u64(), Some(doubled));
    for q in [0.5, 0.9] {
        let found = quantile(&report, "round_trip", q)["value_ns"].as_i64().unwrap();
        assert!(same_bucket(found, truth(&mut values, q).unwrap()), "q {q}");
    }
    for q in [0.99, 0.999] {
        let found = quantile(&report, "round_trip", q);
        assert!(found["value_ns"].is_null() && found["beyond"] == "lost", "q {q}: {found}");
    }
}

/// Test: a stall of 500 ms of each kind increases the time from intended of every slot during the stall, and the
/// duration of the leg (or the send lateness) in which the script places the stall.
#[test]
fn a_stall_shows_in_the_right_leg_of_every_slot_it_hits() {
    for (place, leg) in [("out", "out"), ("back", "back"), ("turnaround", "turnaround"), ("send", "send_lateness")] {
        let script = json!({ "links": {
            "out": { "delay": { "constant": 20000 } }, "back": { "delay": { "constant": 10000 } } },
            "stalls": [ { "where": place, "at_ns": 5_000_000_000_i64, "for_ns": 500_000_000 } ] });
        let bench = Bench::new();
        succeeded(&bench.run(&study(&script), &["measure.slots=10000"]));
        let report = bench.report();
        let condition = &report["conditions"][0];
        assert_eq!(condition["counts"]["answered"].as_u64(), Some(10_000), "{place}");
        // 500 slots are due during the stall; their delays decrease evenly from 500 ms to 1 ms.
        let late = |metric: &str, limit_ns: i64| -> u64 {
            let histogram = condition[metric]["histogram"].as_array().expect("a histogram");
            histogram.iter().filter(|b| b[0].as_i64().unwrap() > limit_ns).map(|b| b[2].as_u64().unwrap()).sum()
        };
        let hit = late("from_intended", 1_000_000);
        let few = if place == "turnaround" { 1..=501 } else { 497..=501 };
        assert!(few.contains(&hit), "{place}: {hit} slots are late");
        assert!(late(leg, 1_000_000) >= 1, "{place}: the leg {leg} does not show it");
        // The stall is one incident, whose time counts once: 500 ms without the usual 30 us.
        let incidents = condition["incidents"].as_array().unwrap();
        let stall = &incidents[0];
        assert!((497..=501).contains(&stall["late"].as_u64().unwrap()) || place == "turnaround", "{place}: {stall}");
        let excess_ns = stall["excess_ns"].as_i64().unwrap();
        assert!((499_000_000..=500_100_000).contains(&excess_ns), "{place}: {stall}");
        // The message that is hit first spends the stall in its send call, which is part of the leg out.
        let worst_leg = if place == "send" { "out" } else { leg };
        assert!(stall["leg"] == worst_leg && stall["lost"] == 0 && stall["sustained"] == false, "{place}: {stall}");
        // The scripted network kept the message, so that no thread is blamed.
        assert!(stall["ledger"].is_null() && stall["unexplained_ns"] == excess_ns, "{place}: {stall}");
        assert!(condition.get("causes").is_none(), "{place}: {}", condition["causes"]);
        let longest = condition[leg]["max_ns"].as_i64().unwrap();
        assert!((499_000_000..=500_100_000).contains(&longest), "{place}: the longest {leg} is {longest}");
        for other in ["out", "turnaround", "back"].into_iter().filter(|o| *o != leg) {
            let max = condition[other]["max_ns"].as_i64().unwrap();
            // Messages that arrive during a stalled turnaround wait on the leg out.
            let piled = place == "turnaround" && other == "out";
            let sent = place == "send" && other == "out";
            // Limit: the times are of a scripted clock.
            assert!(max < 1_000_000 || piled || sent, "{place}: {other} shows {max} ns");
        }
    }
}

#[test]
fn a_step_of_the_wall_clock_makes_the_trial_invalid() {
    let script = json!({ "links": { "any": { "delay": { "constant": 20000 } } },
        "clock_steps": [ { "at_ns": 5_000_000_000_i64, "realtime_by_ns": 20_000_000 } ] });
    let bench = Bench::new();
    let (code, text) = exit_and_stderr(&bench.run(&study(&script), &["measure.slots=10000"]));
    assert_eq!(code, 6, "{text}");
    assert!(text.contains("wall clock was stepped by 20 ms"), "{text}");
    let report = bench.report();
    assert_eq!(report["status"], "invalid");
    let warnings = report["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|w| w["code"] == "clock_stepped" && w["severity"] == "invalid"));

    // The same trial without a step is valid: the check examines the clock, not the option.
    let bench = Bench::new();
    let script = json!({ "links": { "any": { "delay": { "constant": 20000 } } } });
    succeeded(&bench.run(&study(&script), &["measure.slots=10000"]));
}

#[test]
fn stop_and_wait_has_no_intended_time_and_gives_up_on_losses() {
    let script = json!({ "links": {
        "out": { "delay": { "constant": 20000 }, "loss": { "counters": [300, 301, 900] } },
        "back": { "delay": { "constant": 10000 } } } });
    let bench = Bench::new();
    succeeded(&bench.run(&study(&script), &["rate=max", "measure.slots=2000", "measure.timeout=50ms"]));
    let report = bench.report();
    let condition = &report["conditions"][0];
    assert!(condition.get("from_intended").is_none_or(Value::is_null), "stop-and-wait has no intended time");
    assert_eq!(condition["counts"]["scheduled"].as_u64(), Some(2000));
    assert_eq!(condition["counts"]["lost"].as_u64(), Some(3));
    assert_eq!(quantile(&report, "round_trip", 0.5)["value_ns"].as_i64(), Some(30_000));
}

#[test]
fn skipped_slots_are_rows_not_sent() {
    let script = json!({ "links": { "any": { "delay": { "constant": 20000 } } },
        "stalls": [ { "where": "send", "at_ns": 2_000_000_000_i64, "for_ns": 100_000_000 } ] });
    let bench = Bench::new();
    succeeded(&bench.run(&study(&script), &["measure.slots=5000", "measure.on_overrun=skip"]));
    let counts = bench.report()["conditions"][0]["counts"].clone();
    let not_sent = counts["not_sent"].as_u64().unwrap();
    assert!((98..=100).contains(&not_sent), "{counts}");
    assert_eq!(counts["answered"].as_u64().unwrap() + not_sent, 5000);
}

/// Test: latency at low rates depends on the idle states of the CPUs, so the report lists the idle states next to the
/// figures.
#[test]
fn idle_states_are_reported_if_the_rate_varies() {
    let told = |rates: &str| {
        let bench = Bench::new();
        succeeded(&bench.run(&study(&json!({})), &["measure.slots=100", rates]));
        let report = bench.report();
        let findings = report["findings"].as_array().unwrap().clone();
        findings.iter().find(|f| f["code"] == "idle_states").map(|f| f["text"].as_str().unwrap().to_owned())
    };
    let text = told("rate=[1 kHz, 2 kHz]").expect("a finding");
    assert!(text.contains("Idle states of "), "{text}");
    assert_eq!(told("rate=[1 kHz]"), None);
}

/// Test of the time range to which figures can be limited, in the study and on the command line: a stall before this
/// range affects only the figures of the whole trial.
#[test]
fn a_range_leaves_a_stall_to_the_whole() {
    let script = json!({ "links": {
        "out": { "delay": { "constant": 20000 } }, "back": { "delay": { "constant": 10000 } } },
        "stalls": [ { "where": "out", "at_ns": 1_000_000_000_i64, "for_ns": 200_000_000 } ] });
    let bench = Bench::new();
    let settings = ["measure.slots=4000", "report.range={ from: 2 s, to: 3 s }", "report.above=1 ms"];
    succeeded(&bench.run(&study(&script), &settings));
    let report = bench.report();
    let condition = &report["conditions"][0];
    let range = &condition["range"];
    assert_eq!((range["messages"].as_u64(), range["of"].as_u64()), (Some(1_000), Some(4_000)), "{range}");
    assert_eq!(range["metrics"]["out"]["max_ns"].as_i64(), Some(20_000));
    assert_eq!(range["above"]["metrics"]["round_trip"]["messages"].as_u64(), Some(0));
    let above = condition["above"]["metrics"]["round_trip"]["messages"].as_u64().unwrap();
    assert!((190..=200).contains(&above) && condition["out"]["max_ns"].as_i64() > Some(190_000_000), "{above}");

    let printed = |range: &str| {
        let output = bench.tailbound().args(["report", "record", "--range", range]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, text) = printed("500ms..1500ms");
    assert!(code == Some(0) && text.contains("chosen range: 500 ms to 1.5 s of each trial, 1,000 of 4,000"), "{text}");
    let (code, text) = printed("3s..2s");
    assert!(code == Some(2) && text.contains("the range from 3 s to 2 s is empty"), "{code:?} {text}");
}
