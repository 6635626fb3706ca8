//! Tests of two ends with two clocks, through the real agent, hot loop, record and report: the driver `null` gives the
//! time stamps of the pong end in another clock. The true legs are known, and every printed range must enclose them.

use crate::support::{Bench, exit_and_stderr, quantile, succeeded};
use serde_json::{Value, json};
use tailbound_driver_null::script::{Direction, Script};

const SLOTS: u64 = 20_000;
const WARM_UP: u64 = 100;
/// Duration of a send call of each end, in ns.
const COST_OUT: i64 = 500;
/// Time in ns from the kernel's receive timestamp until the receiving end has the message, for the leg out and the leg
/// back.
const AFTER_KERNEL: [i64; 2] = [5_000, 9_000];
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

fn study(script: &Value) -> String {
    format!(
        "study: clocks\nquestion: Do ranges hold the truth?\n\
         measure: {{ ping-pong: {{ slots: {SLOTS}, warm_up: {WARM_UP}, timeout: 1 s }} }}\n\
         rate: 1 kHz\npayload: 64 B\nplace: same-process\npath: loopback\n\
         driver: {{ null: {{ clock: scripted, script: '{script}' }} }}\n\
         report: {{ quantiles: [0.5, 0.9, 0.99, 0.999] }}\n"
    )
}

/// Script of the delays in both directions: one direction takes longer than the other, and both distributions have
/// tails.
fn links() -> Value {
    json!({
        "out": { "delay": { "exponential": { "shift_ns": 12_000, "mean_ns": 8_000.0 } }, "send_cost_ns": COST_OUT,
                 "after_kernel_ns": AFTER_KERNEL[0] },
        "back": { "delay": { "exponential": { "shift_ns": 31_000, "mean_ns": 40_000.0 } }, "send_cost_ns": 300,
                  "after_kernel_ns": AFTER_KERNEL[1] } })
}

fn script(pong_clock: &Value) -> Value {
    json!({ "seed": 3, "links": links(), "pong_clock": pong_clock })
}

/// The true legs (out and back) of the measured slots, in ns, in rising order.
fn truth(script: &Value) -> [(&'static str, Vec<i64>); 2] {
    let script = Script::parse(&script.to_string()).unwrap();
    let legs = |direction, cost: i64| {
        let travel = |k| script.fate(direction, k).travel_ns as i64 + cost;
        let mut all: Vec<i64> = (WARM_UP..WARM_UP + SLOTS).map(travel).collect();
        all.sort_unstable();
        all
    };
    [("out", legs(Direction::Out, COST_OUT)), ("back", legs(Direction::Back, 0))]
}

/// The true times in ns from sending a message until the kernel's receive time stamp, for both legs.
fn network_truth(script: &Value) -> [(&'static str, Vec<i64>); 2] {
    let [(_, out), (_, back)] = truth(script);
    let less = |legs: Vec<i64>, of: usize| legs.into_iter().map(|ns| ns - AFTER_KERNEL[of]).collect();
    [("out_network", less(out, 0)), ("back_network", less(back, 1))]
}

fn with_stamps(study: &str) -> String {
    study.replace("clock: scripted,", "clock: scripted, timestamps: \"on\",")
}

fn at(sorted: &[i64], q: f64) -> i64 {
    sorted[(q * sorted.len() as f64 - 1e-9).ceil() as usize - 1]
}

fn end_of_range<'a>(report: &'a Value, leg: &str, end: &str, q: f64) -> &'a Value {
    let figures = &report["conditions"][0][format!("{leg}_range")][end];
    let quantiles = figures["quantiles"].as_array().unwrap_or_else(|| panic!("{leg} {end}: no figures"));
    quantiles.iter().find(|x| (x["q"].as_f64().unwrap() - q).abs() < 1e-12).expect("this quantile")
}

#[test]
fn every_range_encloses_the_true_leg() {
    for (offset, drift) in [
        (0, 0.0),
        (7_654_321, 0.0),
        (2_000_000_000_000_000_000_i64, 0.0),
        (-2_000_000_000_000_000_000, 200.0),
        (8_990_000_000_000_000_000, -200.0),
        (-8_990_000_000_000_000_000, 25.5),
        (-1_000_000_001, -0.7),
    ] {
        let script = script(&json!({ "offset_ns": offset, "drift_ppm": drift }));
        let bench = Bench::new();
        succeeded(&bench.run(&study(&script), &[]));
        let report = bench.report();
        let condition = &report["conditions"][0];
        let case = format!("offset {offset}, drift {drift}");
        assert_eq!(report["status"], "valid", "{case}");
        assert!(condition["out"].is_null() && condition["back"].is_null(), "{case}: exact legs of two clocks");
        assert_eq!(condition["counts"]["answered"].as_u64(), Some(SLOTS));
        for (leg, values) in truth(&script) {
            for q in QUANTILES {
                let [low, high] = ["low", "high"].map(|end| end_of_range(&report, leg, end, q));
                let [least, most] = [low, high].map(|e| e["value_ns"].as_i64().expect("a value"));
                let true_ns = at(&values, q);
                assert!(least <= true_ns && true_ns <= most, "{case}: {leg} q {q}: {true_ns} not in {least} to {most}");
                // The range cannot be narrower than the fastest messages of both directions allow: 12.5 us and 31 us.
                // The lines between the two convex hulls make the range a little wider.
                let width = most - least;
                assert!((1..50_000).contains(&width), "{case}: {leg} q {q} is {width} ns wide");
                let (interval_low, interval_high) =
                    (low["low_ns"].as_i64().unwrap(), high["high_ns"].as_i64().unwrap());
                assert!(interval_low <= least && most <= interval_high, "{case}: {leg} q {q}");
            }
            let range = &condition[format!("{leg}_range")];
            let [least, most] = ["low", "high"].map(|end| range[end]["max_ns"].as_i64().unwrap());
            assert!((least..=most).contains(values.last().unwrap()), "{case}: {leg} max");
            assert_eq!(range["low"]["n"].as_u64(), Some(SLOTS));
        }
        // Figures of one clock are exact to the nanosecond; the turnaround uses only the clock of the pong end.
        let round_trip = quantile(&report, "round_trip", 0.5)["value_ns"].as_i64().unwrap();
        let turnaround = quantile(&report, "turnaround", 0.5)["value_ns"].as_i64().unwrap();
        assert!(round_trip > 43_000 && (299..=301).contains(&turnaround), "{case}: {round_trip}, {turnaround}");
        for message in condition["worst"].as_array().unwrap() {
            assert!(message["out_ns"].is_null() && message["back_ns"].is_null(), "{case}: {message}");
            let [out, back] = ["out", "back"].map(|leg| message[format!("{leg}_range_ns")].as_array().unwrap());
            let way = message["round_trip_ns"].as_i64().unwrap() - message["turnaround_ns"].as_i64().unwrap();
            let sum = |end: usize, other: usize| out[end].as_i64().unwrap() + back[other].as_i64().unwrap();
            // If one leg is longer by some time, the other leg is shorter by the same time.
            assert!((sum(0, 1) - way).abs() <= 400 && (sum(1, 0) - way).abs() <= 400, "{case}: {message}");
        }
    }
}

#[test]
fn one_clock_has_exact_legs() {
    let script = json!({ "seed": 3, "links": links() });
    let bench = Bench::new();
    succeeded(&bench.run(&study(&script), &[]));
    let report = bench.report();
    for (leg, values) in truth(&script) {
        assert!(report["conditions"][0].get(format!("{leg}_range")).is_none(), "{leg}: a range of one clock");
        for q in QUANTILES {
            assert_eq!(quantile(&report, leg, q)["value_ns"].as_i64(), Some(at(&values, q)), "{leg} q {q}");
        }
    }
    // Both ends name the kernel that they ran on.
    let manifest: Value = serde_json::from_slice(&std::fs::read(bench.path("record/manifest.json")).unwrap()).unwrap();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let [ping, pong] = ["ping", "pong"].map(|end| manifest["trials"][0]["ends"][end]["clock"].as_str().unwrap());
    assert!(ping == pong && ping.starts_with(boot_id.trim()), "{ping} and {pong}");
}

/// Test: in every output format, legs are exact with one clock and ranges with two clocks; without time stamps there
/// are no legs.
#[test]
fn legs_to_the_kernels_stamp_are_the_scripts() {
    let network = ["out_network", "out_network_range", "back_network", "back_network_range"];
    let one = json!({ "seed": 3, "links": links() });
    let two = script(&json!({ "offset_ns": -77_000_000_000_i64, "drift_ppm": 12.5 }));
    for (script, clocks) in [(&one, 1), (&two, 2)] {
        let bench = Bench::new();
        succeeded(&bench.run(&study(script), &[]));
        let (without, text) = (bench.report(), printed(&bench, &["report", "record", "--format", "html"]).1);
        assert!(network.iter().all(|leg| without["conditions"][0].get(leg).is_none()), "no stamps, {clocks} clocks");
        assert!(!text.contains(", network") && !text.contains("out_network"), "no stamps, {clocks} clocks");

        let bench = Bench::new();
        succeeded(
            &bench
                .run(&with_stamps(&study(script)), &["report.histogram={ metric: out-network, bin: 10 us, bins: 5 }"]),
        );
        let report = bench.report();
        let condition = &report["conditions"][0];
        for leg in ["round_trip", "out", "out_range", "turnaround", "back", "back_range", "counts"] {
            assert_eq!(condition[leg], without["conditions"][0][leg], "{leg}: stamps change no other figure");
        }
        let ends = &bench.manifest()["trials"][0]["ends"];
        let converted_ns = ["ping", "pong"].map(|end| ends[end]["clock_width_ns"].as_i64().unwrap_or(0));
        let converted_ns = converted_ns[0].max(converted_ns[1]);
        for (leg, values) in network_truth(script) {
            for q in QUANTILES {
                let true_ns = at(&values, q);
                if clocks == 1 {
                    assert_eq!(quantile(&report, leg, q)["value_ns"].as_i64(), Some(true_ns), "{leg} q {q}");
                    continue;
                }
                assert!(condition[leg].is_null(), "{leg}: exact between two clocks");
                let [least, most] = ["low", "high"].map(|end| end_of_range(&report, leg, end, q)["value_ns"].as_i64());
                let (least, most) = (least.expect("a value"), most.expect("a value"));
                assert!(least <= true_ns && true_ns <= most, "{leg} q {q}: {true_ns} not in {least} to {most}");
                // Both limits of the range include the error of the converted time stamps.
                assert!(most - least < 50_000 + 2 * converted_ns, "{leg} q {q} is {} ns wide", most - least);
            }
        }
        let (_, csv) = printed(&bench, &["report", "record", "--format", "csv"]);
        let named = |metric: &str| csv.lines().filter(|l| l.contains(&format!(",{metric},"))).count();
        let counted = ["out_network", "back_network", "out_network_low", "back_network_high"].map(named);
        assert_eq!(counted, if clocks == 1 { [4, 4, 0, 0] } else { [0, 0, 4, 4] }, "{csv}");
        let (_, html) = printed(&bench, &["report", "record", "--format", "html"]);
        assert!(html.contains("<h3>Back, network"), "{clocks} clocks");
        assert_eq!(condition["bins"].is_object(), clocks == 1, "a range has no bins");
        let (code, text) = printed(&bench, &["compare", "record", "record", "--metric", "out-network"]);
        if clocks == 1 {
            assert!(code == 0 || code == 7, "{code} {text}");
        } else {
            assert!(
                code == 2 && text.contains("only the smallest and the largest possible out_network are known"),
                "{code} {text}"
            );
            let (_, text) = printed(&bench, &["report", "record"]);
            assert!(text.contains("out_network p50"), "{text}");
        }
    }
}

/// Test: over real sockets, the kernel's time stamp of every message is earlier than the time stamp of the receiving
/// end.
#[test]
fn the_kernel_has_a_message_before_the_application() {
    let bench = Bench::new();
    let study = "study: real\nquestion: q\nmeasure: { ping-pong: { slots: 2000, warm_up: 100, timeout: 1 s } }\n\
                 rate: 4 kHz\npayload: 64 B\nplace: process\npath: loopback\ndriver: { udp: { timestamps: \"on\" } }\n\
                 report: { quantiles: [0.5, 0.9, 0.99] }\n";
    let output = bench.run(study, &[]);
    assert!([0, 6].contains(&exit_and_stderr(&output).0), "{}", exit_and_stderr(&output).1);
    let report = bench.report();
    let condition = &report["conditions"][0];
    for (network, user) in [("out_network", "out"), ("back_network", "back")] {
        assert_eq!(condition[network]["n"], condition[user]["n"], "{network}: every answered message has its stamp");
        for q in [0.5, 0.9, 0.99] {
            let [kernel, application] =
                [network, user].map(|leg| quantile(&report, leg, q)["value_ns"].as_i64().unwrap());
            assert!(kernel <= application, "{network} q {q}: {kernel} ns after {application} ns");
        }
    }
}

/// Test: a step makes only the time around it untrustworthy. The legs of all messages still have ranges that hold the truth,
/// and the report says when the clocks changed.
#[test]
fn a_step_is_found_and_every_range_encloses_the_true_leg() {
    for by_ns in [-250_000_i64, 250_000, 3_600_000_000_000] {
        let steps = json!([ { "at_ns": 12_345_000_000_i64, "by_ns": by_ns } ]);
        let script = script(&json!({ "offset_ns": 5_000_000_000_i64, "drift_ppm": 20.0, "steps": steps }));
        let bench = Bench::new();
        succeeded(&bench.run(&study(&script), &[]));
        let report = bench.report();
        assert_eq!((&report["status"], &report["trials"][0]["status"]), (&json!("valid"), &json!("valid")), "{by_ns}");
        let warnings = report["warnings"].as_array().unwrap();
        let warning = warnings.iter().find(|w| w["code"] == "clocks_moved").expect("a warning");
        assert_eq!(warning["severity"], "warning", "{by_ns}");
        let window = report["clocks"].as_array().unwrap().iter().find_map(|clock| clock["invalid_windows"].get(0));
        let window = window.unwrap_or_else(|| panic!("{by_ns}: no window: {}", report["clocks"]));
        let t0 = report["trials"][0]["t0_ns"].as_i64().unwrap();
        let after_slot_0 = |member: &str| window[member].as_i64().unwrap() - t0;
        // Limit: the times are of a scripted clock.
        assert!((12_100_000_000..=12_345_000_000).contains(&after_slot_0("from_ns")), "{by_ns}: {window}");
        // Limit: as above.
        assert!((12_345_000_000..=12_600_000_000).contains(&after_slot_0("to_ns")), "{by_ns}: {window}");
        let step = window["step_ns"].as_i64().unwrap();
        assert!(step.signum() == by_ns.signum() && (by_ns - step).abs() < 100_000, "{by_ns}: {window}");
        for (leg, sorted) in truth(&script) {
            assert!(report["conditions"][0][leg].is_null(), "{by_ns}: {leg} is exact");
            for q in QUANTILES {
                let [least, most] = ["low", "high"].map(|end| end_of_range(&report, leg, end, q)["value_ns"].as_i64());
                let (least, most, true_ns) = (least.expect("a value"), most.expect("a value"), at(&sorted, q));
                assert!(least <= true_ns && true_ns <= most, "{by_ns}: {leg} {q}: {true_ns} not in {least} to {most}");
                assert!(q > 0.9 || most - least < 80_000, "{by_ns}: {leg} {q}: {least} to {most}");
            }
        }
        assert!(quantile(&report, "round_trip", 0.5)["value_ns"].as_i64().is_some_and(|ns| ns > 43_000), "{by_ns}");
        let (code, html) = printed(&bench, &["report", "record", "--format", "html"]);
        assert!(code == 0 && html.contains("class=\"invalid-window\""), "{by_ns}: {code}: no hatched time");
    }
}

#[test]
fn a_clock_that_changes_all_the_time_makes_the_trial_invalid() {
    let steps: Vec<Value> = (1..1_000_i64).map(|n| json!({ "at_ns": n * 20_000_000, "by_ns": n * 700_000 })).collect();
    let script = script(&json!({ "offset_ns": 5_000_000_000_i64, "drift_ppm": 20.0, "steps": steps }));
    let bench = Bench::new();
    let (code, text) = exit_and_stderr(&bench.run(&study(&script), &[]));
    assert_eq!(code, 6, "{text}");
    let report = bench.report();
    assert_eq!((&report["status"], &report["trials"][0]["status"]), (&json!("invalid"), &json!("invalid")));
    let warnings = report["warnings"].as_array().unwrap();
    let warning = warnings.iter().find(|w| w["code"] == "clocks_moved").expect("a warning");
    assert!(
        warning["severity"] == "invalid" && warning["text"].as_str().unwrap().contains("more than half"),
        "{warning}"
    );
    // The report has round trips, marked as figures of an invalid trial, but no legs.
    let condition = &report["conditions"][0];
    assert_eq!(condition["status"], "invalid");
    assert!(quantile(&report, "round_trip", 0.5)["value_ns"].as_i64().is_some_and(|ns| ns > 43_000));
    for leg in ["out", "back", "out_range", "back_range", "turnaround"] {
        assert!(condition[leg].is_null(), "{leg}");
    }
}

/// Changes the record so that its two ends have two clocks, as if one agent had run on another kernel.
fn on_another_kernel(bench: &Bench, ends: &[&str]) {
    let path = bench.path("record/manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for end in ends {
        manifest["trials"][0]["ends"][end]["clock"] = json!("7b0c7d2e-another-kernel");
    }
    std::fs::write(&path, manifest.to_string()).unwrap();
}

fn printed(bench: &Bench, arguments: &[&str]) -> (i32, String) {
    let output = bench.tailbound().args(arguments).output().expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// Finds the ranges, such as `12.3 to 18.4`, in the first row of a table, in the order of the table's columns.
fn ranges(text: &str) -> Vec<(f64, f64)> {
    let number = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit()).replace(',', "").parse().ok();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(3).filter(|w| w[1] == "to").filter_map(|w| Some((number(w[0])?, number(w[2])?))).collect()
}

#[test]
fn every_form_prints_ranges_and_none_an_exact_leg() {
    let script = script(&json!({ "offset_ns": -77_000_000_000_i64, "drift_ppm": 12.5 }));
    let bench = Bench::new();
    succeeded(&bench.run(&study(&script), &["report.histogram={ metric: out, bin: 10 us, bins: 5 }"]));
    let truth = truth(&script);
    let us = |leg: usize, q: f64| at(&truth[leg].1, q) as f64 / 1e3;
    let wanted: Vec<f64> = (0..2).flat_map(|leg| [0.5, 0.99, 0.999, 1.0].map(|q| us(leg, q))).collect();
    for format in ["terminal", "md", "html"] {
        let (code, text) = printed(&bench, &["report", "record", "--format", format]);
        assert_eq!(code, 0, "{text}");
        // The text without HTML tags.
        let plain: String = text
            .split('<')
            .map(|part| part.rsplit_once('>').map_or(part, |(_, rest)| rest))
            .collect::<Vec<_>>()
            .join(" ");
        let after = plain
            .split("between two clocks: the smallest and the largest value")
            .nth(1)
            .unwrap_or_else(|| panic!("{format}: {text}"));
        let after = after.split("the sender's loop").next().unwrap();
        let found = ranges(after.split("all messages").nth(1).unwrap());
        let found: Vec<&(f64, f64)> = found.iter().take(wanted.len()).collect();
        assert_eq!(found.len(), wanted.len(), "{format}: {after}");
        for ((low, high), true_us) in found.iter().zip(&wanted) {
            assert!(low <= true_us && true_us <= high && low < high, "{format}: {true_us} not in {low} to {high}");
        }
    }
    let (_, csv) = printed(&bench, &["report", "record", "--format", "csv"]);
    let named = |metric: &str| csv.lines().filter(|l| l.contains(&format!(",{metric},"))).count();
    assert_eq!(["out_low", "out_high", "back_low", "back_high", "out", "back"].map(named), [4, 4, 4, 4, 0, 0], "{csv}");
    // A range has no histogram: a warning says so.
    let report = bench.report();
    assert!(report["conditions"][0]["bins"].is_null());
    let warnings = report["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|w| w["code"] == "bins_between_clocks"), "{warnings:?}");
    // Ratios of ranges are refused, ratios of round trips are printed.
    let (code, text) = printed(&bench, &["compare", "record", "record", "--metric", "back"]);
    assert!(code == 2 && text.contains("only the smallest and the largest possible back are known"), "{code} {text}");
    let (code, text) = printed(&bench, &["compare", "record", "record"]);
    assert!(code == 0 || code == 7, "{code} {text}");
    // A limit is kept if the upper bound of the range keeps it, and broken if the lower bound breaks it.
    let budget = |limit: &str| {
        std::fs::write(bench.path("budget.yaml"), format!("budget: legs\nlimits:\n  - out: {{ p50: {limit} }}\n"))
            .unwrap();
        printed(&bench, &["budget", "record", "budget.yaml"])
    };
    for (limit, code) in [("100 us", 0), ("20 us", 7), ("1 us", 5)] {
        let (found, text) = budget(limit);
        assert_eq!(found, code, "{limit}: {text}");
    }
}

#[test]
fn a_fan_out_between_clocks_has_no_latency_there() {
    let bench = Bench::new();
    let study = "study: fan\nquestion: q\nmeasure: { fan-out: { subscribers: 2, duration: 500 ms, ramp_up: 100 ms } }\n\
                 rate: 1 kHz\npayload: 64 B\nplace: process\npath: loopback\ndriver: udp\n";
    succeeded(&bench.run(study, &[]));
    let flow = |report: &Value| report["conditions"][0]["flow"].clone();
    let same = flow(&bench.report());
    assert_eq!(same["one_way"].as_array().map(Vec::len), Some(2));
    assert!(same["slowest"].is_object() && same["discovery_ns"].is_object(), "{same}");
    on_another_kernel(&bench, &["pong2"]);
    let report = bench.report();
    let apart = flow(&report);
    let ends: Vec<&str> = apart["one_way"].as_array().unwrap().iter().map(|s| s["end"].as_str().unwrap()).collect();
    assert_eq!(ends, ["pong"], "the publisher's own clock tells of this one");
    for figure in ["slowest", "slowest_from_intended", "discovery_ns"] {
        assert!(apart[figure].is_null(), "{figure}: {}", apart[figure]);
    }
    assert_eq!(apart["samples_per_s"], same["samples_per_s"]);
    let warnings = report["warnings"].as_array().unwrap();
    let warning = warnings.iter().find(|w| w["code"] == "one_way_between_clocks").expect("a word");
    let text = warning["text"].as_str().unwrap();
    let expected = "the latencies of messages to pong2 are not known: the publisher has another clock";
    assert!(text.contains(expected), "{text}");
}

/// Test: the true legs of a record with one clock lie within the ranges that are computed if the record is treated as a
/// record with two clocks. An answer may arrive before the pong's send call has returned, so the end of that call must
/// not be used for the bounds between the clocks.
#[test]
fn legs_of_one_clock_lie_within_their_ranges_as_of_two() {
    for place in ["process", "same-process"] {
        let bench = Bench::new();
        let study = format!(
            "study: real\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 4000, warm_up: 100, timeout: 1 s }} }}\n\
             rate: 4 kHz\npayload: 64 B\nplace: {place}\npath: loopback\ndriver: udp\nreport: {{ quantiles: [0.5, 0.9, 0.99] }}\n"
        );
        let output = bench.run(&study, &[]);
        assert!([0, 6].contains(&exit_and_stderr(&output).0), "{}", exit_and_stderr(&output).1);
        let exact = bench.report();
        on_another_kernel(&bench, &["pong"]);
        let report = bench.report();
        assert_eq!(report["conditions"][0]["counts"], exact["conditions"][0]["counts"]);
        assert_eq!(report["conditions"][0]["round_trip"], exact["conditions"][0]["round_trip"], "{place}");
        for leg in ["out", "back"] {
            for q in [0.5, 0.9, 0.99] {
                let true_ns = quantile(&exact, leg, q)["value_ns"].as_i64().unwrap();
                let end = |end| end_of_range(&report, leg, end, q)["value_ns"].as_i64().unwrap();
                let (least, most) = (end("low"), end("high"));
                assert!(
                    least <= true_ns && true_ns <= most,
                    "{place}: {leg} q {q}: {true_ns} not in {least} to {most}"
                );
            }
            let [min, max] = ["min_ns", "max_ns"].map(|of| exact["conditions"][0][leg][of].as_i64().unwrap());
            let range = &report["conditions"][0][format!("{leg}_range")];
            let of = |end: &str, of: &str| range[end][of].as_i64().unwrap();
            assert!(of("low", "min_ns") <= min && min <= of("high", "min_ns"), "{place}: {leg} min {min}: {range}");
            assert!(of("low", "max_ns") <= max && max <= of("high", "max_ns"), "{place}: {leg} max {max}: {range}");
        }
    }
}

/// Test: a record of one clock is changed so that it claims two clocks; then the report has no begin of a load at the other
/// end, and the ledgers claim no more than those of the exact times.
#[test]
fn loads_and_causes_at_the_other_end_stay_within_the_bounds_of_the_clocks() {
    let bench = Bench::new();
    let study = "study: loads\nquestion: q\nmeasure: { ping-pong: { slots: 400, warm_up: 0, timeout: 2 s } }\n\
                 rate: 500 Hz\ndriver: udp\npath: loopback\nplace: process\nload: [{ run: cpu, at: ping }, { run: cpu, at: pong }]\n\
                 attribution: auto\n";
    let output = bench.run(study, &[]);
    assert!([0, 6].contains(&exit_and_stderr(&output).0), "{}", exit_and_stderr(&output).1);
    let began = |report: &Value| -> Vec<(String, bool)> {
        let loads = report["loads"].as_array().unwrap();
        loads.iter().map(|l| (l["at"].as_str().unwrap().to_owned(), l["began_after_ns"].is_i64())).collect()
    };
    let exact = bench.report();
    assert_eq!(began(&exact), [("ping".to_owned(), true), ("pong".to_owned(), true)]);
    on_another_kernel(&bench, &["pong"]);
    let report = bench.report();
    assert_eq!(began(&report), [("ping".to_owned(), true), ("pong".to_owned(), false)]);
    let condition = &report["conditions"][0];
    assert!(condition["out"].is_null() && condition["out_range"].is_object(), "{}", condition["out"]);
    let incidents = condition["incidents"].as_array().unwrap();
    assert!(!incidents.is_empty(), "{condition}");
    for incident in incidents {
        let Some(entries) = incident["ledger"].as_array() else { continue };
        let followed = incident["other_clock"]["width_ns"].as_i64().is_some_and(|ns| ns > 0);
        assert!(followed || incident["other_clock"]["not_followed"].is_string(), "{incident}");
        let excess_ns = incident["excess_ns"].as_i64().unwrap();
        let low: i64 = entries.iter().map(|e| e["ns_low"].as_i64().unwrap()).sum();
        assert!(low <= excess_ns * 105 / 100 + 20_000, "{incident}");
        // Waits of threads of the pong lie between events of one clock. Small shares are left out of either ledger.
        let waits = |incident: &Value, of: &str, causes: &[&str]| -> i64 {
            let entries = incident["ledger"].as_array().into_iter().flatten();
            let caused = |e: &&Value| e["cause"].as_str().is_some_and(|cause| causes.contains(&cause));
            let waits = entries.filter(|e| e["end"] == "pong").filter(caused);
            waits.map(|e| e[of].as_i64().unwrap()).sum()
        };
        let incidents = exact["conditions"][0]["incidents"].as_array().unwrap();
        let same = incidents.iter().find(|i| i["begin_ns"] == incident["begin_ns"]).expect("the same incidents");
        // On another kernel, a process of Tailbound at the ping has another number, and cannot be recognised.
        let least = waits(incident, "ns_low", &["waited_for_cpu"]);
        let most = waits(same, "ns_high", &["waited_for_cpu", "instrument"]);
        assert!(least <= most + excess_ns / 20 + 50_000, "{least} of {most}: {incident}\nwith one clock: {same}");
    }
}
