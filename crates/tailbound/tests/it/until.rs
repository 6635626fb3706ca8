//! Tests of `tailbound run --until` with the scripted driver `null`, whose late and lost messages are known.

use crate::support::{Bench, exit_and_stderr};
use serde_json::{Value, json};

/// A study whose answers take 30 us, with further keys at its end. Slot 700 takes 25 ms longer and slot 900 is lost in
/// every trial; 10 slots are the warm-up.
fn study(rest: &str) -> String {
    let script = json!({ "links": {
        "out": { "delay": { "constant": 20_000 }, "loss": { "counters": [900] } },
        "back": { "delay": { "constant": 10_000 }, "reorder": { "counters": [5, 700], "extra_ns": 25_000_000 } } } });
    let driver = format!("driver: {{ \"null\": {{ clock: scripted, script: '{script}' }} }}\n");
    format!(
        "study: until\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 1000, warm_up: 10, timeout: 1 s }} }}\nrate: 1 kHz\n\
         place: same-process\npath: loopback\n{driver}{rest}"
    )
}

/// Runs a study with these arguments. Returns exit code, standard output with single spaces, and standard error.
fn run(bench: &Bench, study: &str, args: &[&str]) -> (i32, String, String) {
    bench.remove_record();
    let output = bench.to_run(bench.tailbound(), "record", study).args(args).output().unwrap();
    let (code, err) = exit_and_stderr(&output);
    let out = String::from_utf8(output.stdout).unwrap();
    (code, out.split_whitespace().collect::<Vec<_>>().join(" "), err)
}

/// The sentence of the report about the message at which the run ended, with a short name of the condition.
fn sentence(report: &Value) -> String {
    let findings = report["findings"].as_array().unwrap();
    let text = findings.iter().find(|f| f["code"] == "until").expect("a finding")["text"].as_str().unwrap();
    match (text.find("(null clock"), text.find("}}}}")) {
        (Some(from), Some(to)) => format!("{}(null{}", &text[..from], &text[to + 4..]),
        _ => text.to_owned(),
    }
}

#[test]
fn a_run_ends_after_the_trial_of_the_first_message_that_fulfils_the_condition() {
    let bench = Bench::new();
    let mut sentences = Vec::new();
    for (condition, slot, value_ns) in [
        ("round_trip > 20 ms", 700, json!(25_030_000)),
        ("from_intended>1ms", 700, json!(25_030_000)),
        ("lost", 900, Value::Null),
        ("round_trip > 30 ms or lost", 900, Value::Null),
        ("lost or round_trip > 25029 us", 700, json!(25_030_000)),
    ] {
        let (code, out, err) = run(&bench, &study("repeat: 3\nattribution: auto\n"), &["--until", condition]);
        assert_eq!(code, 0, "{condition}: {out}{err}");
        let report = bench.report();
        assert_eq!(report["status"], "valid", "{condition}");
        assert_eq!(report["trials"].as_array().unwrap().len(), 1, "{condition}: two trials did not run");
        let found = &report["run"]["until"]["found"];
        assert_eq!((&found["trial"], &found["slot"], &found["value_ns"]), (&json!(0), &json!(slot), &value_ns));
        assert!(out.contains("The run ended because message"), "{out}");
        sentences.push(sentence(&report));
    }
    insta::assert_snapshot!(sentences.join("\n\n"));
}

#[test]
fn a_run_without_such_a_message_ends_after_its_trials() {
    let bench = Bench::new();
    let (code, out, err) =
        run(&bench, &study("repeat: 2\n"), &["--until", "round_trip > 26 ms or send_lateness > 1 s"]);
    assert_eq!(code, 7, "{out}{err}");
    let report = bench.report();
    assert_eq!((&report["status"], report["trials"].as_array().unwrap().len()), (&json!("valid"), 2));
    assert!(report["run"]["until"].get("found").is_none());
    insta::assert_snapshot!(sentence(&report), @"None of the 2,000 messages fulfilled `round_trip > 26 ms or send_lateness > 1 s`, the condition at which the run would have ended.");
}

#[test]
fn trials_are_repeated_for_the_given_time() {
    let bench = Bench::new();
    // Two trials of 1.01 s each: with a third round, they would take longer than 4.1 s.
    let args = ["--until", "round_trip > 26 ms", "--at-most", "4.1 s"];
    let (code, out, err) = run(&bench, &study("factors: { payload: [64 B, 1 KiB] }\n"), &args);
    assert_eq!(code, 7, "{out}{err}");
    let report = bench.report();
    assert_eq!((&report["status"], report["trials"].as_array().unwrap().len()), (&json!("valid"), 6));
    let repeats: Vec<&Value> = report["trials"].as_array().unwrap().iter().map(|t| &t["repeat"]).collect();
    assert_eq!(repeats, [0, 0, 1, 1, 2, 2]);
    assert_eq!(report["run"]["until"]["at_most_ns"], 4_100_000_000_i64);
}

#[test]
fn a_condition_that_did_not_run_says_so() {
    let bench = Bench::new();
    let factors = "factors: { payload: [64 B, 1 KiB] }\n";
    let (code, out, err) = run(&bench, &study(factors), &["--until", "lost"]);
    assert_eq!(code, 0, "{out}{err}");
    let report = bench.report();
    let why: Vec<&Value> = report["conditions"].as_array().unwrap().iter().map(|c| &c["not_possible"]).collect();
    let left_out = why.iter().filter(|why| why.as_str().is_some_and(|why| why.contains("the run ended before")));
    assert_eq!(left_out.count(), 1, "{why:?}");
}

#[test]
fn the_incident_of_the_message_is_described_however_many_are_worse() {
    let bench = Bench::new();
    // Every third message takes 0.5 ms longer, and the send call of one message in between 0.2 ms.
    let script = json!({ "links": {
        "out": { "delay": { "constant": 20_000 }, "loss": { "counters": [] } },
        "back": { "delay": { "constant": 10_000 },
            "reorder": { "counters": (2..4000).step_by(3).collect::<Vec<u64>>(), "extra_ns": 500_000 } } },
        "stalls": [{ "where": "send", "at_ns": 2_027_500_000_u64, "for_ns": 700_000 }] });
    let driver = format!("driver: {{ \"null\": {{ clock: scripted, script: '{script}' }} }}\n");
    let study = format!(
        "study: until\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 4000, warm_up: 10, timeout: 1 s }} }}\nrate: 1 kHz\n\
         place: same-process\npath: loopback\npayload: 64 B\n{driver}report: {{ late_above: 100 us }}\n"
    );
    let (code, out, err) = run(&bench, &study, &["--until", "send_duration > 100 us"]);
    assert_eq!(code, 0, "{out}{err}");
    let report = bench.report();
    let found = &report["run"]["until"]["found"];
    let due = found["due_ns"].as_i64().unwrap();
    let incidents = report["conditions"][0]["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), 1_000);
    let holds = |i: &&Value| i["begin_ns"].as_i64().unwrap() <= due && due <= i["end_ns"].as_i64().unwrap();
    let incident = incidents.iter().find(holds).expect("the incident of the message");
    assert!(sentence(&report).contains(incident["text"].as_str().unwrap()), "{}", sentence(&report));
}

#[test]
fn what_cannot_be_a_condition_is_refused() {
    let bench = Bench::new();
    let mut all = String::new();
    let plain = study("");
    let stop_and_wait = plain.replace("rate: 1 kHz", "rate: max");
    for (study, args) in [
        (&plain, &["--until", "round_trap > 20 ms"][..]),
        (&plain, &["--until", "round_trip > 20"]),
        (&plain, &["--until", "lost", "--at-most", "0 s"]),
        (&plain, &["--at-most", "1 h"]),
        (&stop_and_wait, &["--until", "round_trip > 1 ms or from_intended > 20 ms"]),
    ] {
        let (code, out, err) = run(&bench, study, args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        all.push_str(&format!("{}\n{err}\n", args.join(" ")));
        assert!(!bench.path("record").exists(), "{args:?}");
    }
    insta::assert_snapshot!(all);
}
