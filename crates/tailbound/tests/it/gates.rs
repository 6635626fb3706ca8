//! Tests of `tailbound gates`: what it prints for a schedule, and its error messages.

use crate::support::{Bench, exit_and_stderr, succeeded};
use serde_json::{Value, json};
use std::fs;
use tailbound_record::Record;

/// The published schedule of 503 us, as tc prints it; class 0 is open for 101 us.
const TC: &str = r#"[{"kind":"taprio","handle":"8001:","dev":"eth0","root":true,"refcnt":9,"options":{"tc":4,"map":[0],
"queues":[{"offset":0,"count":1}],"clockid":"TAI","base_time":0,"cycle_time":503000,"cycle_time_extension":0,"schedule":[
{"index":0,"cmd":"S","gatemask":"0x3","interval":101000},{"index":1,"cmd":"S","gatemask":"0x2","interval":103000},
{"index":2,"cmd":"S","gatemask":"0x6","interval":109000},{"index":3,"cmd":"S","gatemask":"0xa","interval":190000}]}}]"#;

/// What `gates predict` prints about a frame of 126 bytes on 1 Gbit/s, with these flags.
fn predicted(bench: &Bench, flags: &str) -> Result<String, String> {
    let mut command = bench.tailbound();
    command
        .args(["gates", "predict", "gates.json", "--bytes", "126", "--speed", "1Gbps"])
        .args(flags.split_whitespace());
    let output = command.output().unwrap();
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout).unwrap());
    }
    let (code, text) = exit_and_stderr(&output);
    Err(format!("exit {code}\n{text}"))
}

fn bench(tc: &str) -> Bench {
    let bench = Bench::new();
    fs::write(bench.path("gates.json"), tc).unwrap();
    bench
}

#[test]
fn waits_are_predicted_from_the_output_of_tc() {
    let bench = bench(TC);
    let text = |flags: &str| predicted(&bench, flags).unwrap();
    insta::assert_snapshot!([text("--class 0"), text("--class 1"), text("--class 0 --format json")].concat());
    // Class 0 in an entry of 1 us, shorter than the frame.
    let short = self::bench(&TC.replace("101000", "1000").replace("503000", "0"));
    insta::assert_snapshot!(
        predicted(&short, "--class 0 --format json").unwrap() + &predicted(&short, "--class 0").unwrap()
    );
}

#[test]
fn a_cycle_that_differs_from_its_entries_needs_a_rule() {
    let bench = bench(&TC.replace("503000", "600000"));
    let worst = |rule: &str| {
        let json = predicted(&bench, &format!("--class 0 --format json --as {rule}")).unwrap();
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["worst_wait_ns"].as_u64().unwrap()
    };
    assert_eq!(["kernel", "standard"].map(worst), [403_199, 500_199]);
    insta::assert_snapshot!(predicted(&bench, "--class 0").unwrap_err());
}

#[test]
fn wrong_input_is_said_with_its_place() {
    let good = bench(TC);
    let two = bench(&format!("{},{}", TC.trim_end_matches(']'), TC.trim_start_matches('[').replace("eth0", "eth1")));
    let said = [
        predicted(&good, "--class 4"),
        predicted(&good, "--class 0 --device eth7"),
        predicted(&two, "--class 0"),
        predicted(&bench("qdisc taprio 100: root"), "--class 0"),
        predicted(&Bench::new(), "--class 0"),
    ];
    let said = said.map(|said| said.unwrap_err());
    assert!(predicted(&two, "--class 0 --device eth1").is_ok());
    insta::assert_snapshot!(said.join("\n"));
}

/// The gates of the ping end of a study, with these entries and this further text.
fn study(bench: &Bench, entries: &str, rest: &str) {
    let text = format!(
        "study: s\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 10 }} }}\nrate: 1006 us\npath: veth\nplace: netns\n{rest}ends:\n  \
         ping:\n    gates:\n      classes: [{{ name: stream, priorities: [7] }}, {{ name: ptp, priorities: [5] }}, {{ name: rest }}]\n      \
         entries: {entries}\n"
    );
    fs::write(bench.path("s.yaml"), text).unwrap();
}

fn said_by(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.tailbound().arg("gates").args(arguments).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    format!("exit {code}\n{}{text}", String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_gates_of_a_study_are_checked_before_a_run() {
    let bench = Bench::new();
    let udp = "driver: { udp: { priority: 7 } }\n";
    let whole = "[{ open: [stream, ptp], for: 101 us }, { open: [rest], for: 402 us }]";
    let mut said = Vec::new();
    let cases = [
        (whole, udp.to_owned(), "      cycle: 503 us\n"),
        (whole, udp.to_owned(), "      cycle: 600 us\n"),
        ("[{ open: [stream], for: 1 us }, { open: [rest], for: 502 us }]", format!("{udp}payload: 1400 B\n"), ""),
        (whole, format!("{udp}vlan: {{ id: 5, egress: {{ 5: 5 }} }}\n"), ""),
        ("[{ open: [rest], for: 503 us }]", udp.to_owned(), "      cycle: 400 us\n"),
    ];
    for (entries, rest, more) in cases {
        study(&bench, &format!("{entries}\n{more}"), &rest);
        said.push(without_note_about_tai(&said_by(&bench, &["check", "s.yaml"])));
    }
    fs::write(bench.path("s.yaml"), "study: s\nmeasure: { ping-pong: { slots: 10 } }\ndriver: udp\n").unwrap();
    said.push(said_by(&bench, &["check", "s.yaml"]));
    insta::assert_snapshot!(said.join("\n"));
}

/// The output of `gates check` without the note that depends on the machine: a time service may have set the difference between
/// CLOCK_TAI and CLOCK_REALTIME.
pub fn without_note_about_tai(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if let Some(at) = lines.iter().position(|line| line.contains("note: CLOCK_TAI of this machine")) {
        lines.drain(at..(at + 2).min(lines.len()));
    }
    lines.join("\n")
}

#[test]
fn waits_are_predicted_from_a_study() {
    let bench = Bench::new();
    study(&bench, "[{ open: [stream, ptp], for: 101 us }, { open: [rest], for: 402 us }]", "driver: udp\n");
    let frame = ["--bytes", "126", "--speed", "1Gbps"];
    let said = |arguments: &[&str]| said_by(&bench, &[&["predict", "s.yaml"], &frame[..], arguments].concat());
    let all = [
        said(&["--class", "stream", "--format", "json"]),
        said(&["--class", "2"]),
        said(&["--class", "best"]),
        said(&["--class", "stream", "--device", "pong"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

const MS: i64 = 1_000_000;

/// Runs a study with messages of this script and at this rate, and returns what `gates recover` prints about the record.
fn recovered(bench: &Bench, script: &Value, slots: u64, rate: &str, format: &str) -> String {
    let text = format!(
        "study: s\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {slots}, timeout: 1 s }} }}\nrate: {rate}\nplace: same-process\n\
         path: loopback\ndriver: {{ null: {{ clock: scripted, script: '{script}' }} }}\n"
    );
    succeeded(&bench.run(&text, &[]));
    without_script(&said_by(bench, &["recover", "record", "--format", format]))
}

/// The same text without the script, which is a part of the name of the condition.
fn without_script(text: &str) -> String {
    let line = |line: &str| match (line.find('{'), line.rfind("}]}").or(line.rfind("}}"))) {
        (Some(from), Some(to)) if line.contains("null clock scripted") => {
            format!("{}...{}", &line[..from], &line[to..])
        }
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Script of messages to the pong that take 30 us and an exponentially distributed time of 50 us, and more members.
fn script(more: Value) -> Value {
    let out = json!({ "delay": { "exponential": { "shift_ns": 30_000, "mean_ns": 50_000.0 } } });
    let mut script = json!({ "seed": 5, "links": { "out": out, "back": { "delay": { "constant": 20_000 } } } });
    more.as_object().unwrap().iter().for_each(|(key, value)| script[key] = value.clone());
    script
}

/// Test: every 23 ms, messages pass from 5 to 9 ms and from 14 to 17 ms after the begin of a cycle.
#[test]
fn a_schedule_is_recovered_from_a_record() {
    let bench = Bench::new();
    let closed = |cycle: i64| [(17 - 23, 11), (9, 5)].map(|(at, long)| (cycle * 23 + at, long));
    let stalls =
        (0..1_000).flat_map(closed).map(|(at, long)| json!({ "where": "out", "at_ns": at * MS, "for_ns": long * MS }));
    let script = script(json!({ "stalls": stalls.collect::<Vec<_>>() }));
    let found: Value = {
        let text = recovered(&bench, &script, 2_000, "97 Hz", "json");
        serde_json::from_str(text.strip_prefix("exit 0\n").unwrap_or_else(|| panic!("{text}"))).unwrap()
    };
    let [out, back] = [&found["ways"][0], &found["ways"][1]];
    assert_eq!((&out["end"], &out["lost"], &back["end"]), (&"ping".into(), &0.into(), &"pong".into()));
    assert_eq!(back["not_recovered"]["reason"], "no_gate", "{back}");
    let mut begin_ns = i64::MAX;
    let record = Record::open(&bench.path("record")).unwrap();
    record.slots(0, &mut |batch| begin_ns = begin_ns.min(batch.send_begin_ns[0])).unwrap();
    let schedule = &out["schedule"];
    let holds = |interval: &Value, ns: f64| {
        let [low_ns, high_ns] = ["low_ns", "high_ns"].map(|key| interval[key].as_f64().unwrap());
        assert!((low_ns..=high_ns).contains(&ns), "{ns}: {interval}");
        // Limit: a hundredth of the cycle of virtual time.
        assert!(high_ns - low_ns < 0.01 * 23e6, "{interval}");
    };
    holds(&schedule["cycle"], 23e6);
    let windows = schedule["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 2, "{schedule}");
    let later_ns = (schedule["reference_ns"].as_i64().unwrap() - begin_ns) as f64;
    for window in windows {
        let near =
            |ns: f64| ns - later_ns + 23e6 * ((window["opens"]["ns"].as_f64().unwrap() + later_ns - ns) / 23e6).round();
        let opens_ns = window["opens"]["ns"].as_f64().unwrap();
        let nearest =
            |a: &(f64, f64), b: &(f64, f64)| (near(a.0) - opens_ns).abs().total_cmp(&(near(b.0) - opens_ns).abs());
        let (opens, closes) = [(5e6, 9e6), (14e6, 17e6)].into_iter().min_by(nearest).unwrap();
        holds(&window["opens"], near(opens));
        holds(&window["closes"], near(opens) + closes - opens);
    }
    insta::assert_snapshot!(without_script(&said_by(&bench, &["recover", "record"])));
}

#[test]
fn a_record_without_a_schedule_is_an_error_with_its_reason() {
    let said = |script: Value, slots: u64| recovered(&Bench::new(), &script, slots, "97 Hz", "text");
    let lost = json!({ "out": { "loss": { "probability": 1.0 } } });
    let closed = (0..600).map(|cycle| json!({ "where": "out", "at_ns": cycle * 20 * MS, "for_ns": 9 * MS }));
    let gate = script(json!({ "stalls": closed.collect::<Vec<_>>() }));
    let all = [
        said(script(json!({})), 2_000),
        said(script(json!({})), 150),
        said(script(json!({ "pong_clock": { "offset_ns": 7_654_321 } })), 300),
        said(script(json!({ "links": lost })), 300),
        recovered(&Bench::new(), &gate, 400, "25 ms", "text"),
        said_by(&Bench::new(), &["recover", "nothing"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn the_built_in_study_of_gates_is_checked_and_predicted() {
    let bench = Bench::new();
    let check = without_note_about_tai(&said_by(&bench, &["check", "tsn-gates"]));
    fs::copy("../../studies/tsn-gates.yaml", bench.path("tsn-gates.yaml")).unwrap();
    let frame = ["--bytes", "114", "--speed", "1Gbps"];
    let predict = said_by(&bench, &[&["predict", "tsn-gates.yaml", "--class", "stream"], &frame[..]].concat());
    insta::assert_snapshot!([check, predict].join("\n"));
}

/// Test: 2,000 messages say how early messages must be due for a miss rate of 10 %, and are too few for 0.1 %.
#[test]
fn a_lead_time_is_advised_from_the_messages_of_a_record() {
    let bench = Bench::new();
    let study = bench.study(
        "measure: { ping-pong: { slots: 2000, warm_up: 50 } }\nrate: 1 kHz\ndriver: udp\npath: loopback\nplace: process\n\
         attribution: off\n",
    );
    succeeded(&bench.tailbound().arg("run").arg(study).arg("--out").arg(bench.path("record")).output().unwrap());
    let advise = |arguments: &[&str]| said_by(&bench, &[&["advise", "record"], arguments].concat());
    let printed = |arguments: &str| -> Value {
        let output = bench.tailbound().args(arguments.split_whitespace()).output().unwrap();
        succeeded(&output);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let advice = printed("gates advise record --miss-rate 0.1 --format json");
    let of = &advice["conditions"][0];
    assert_eq!((&advice["miss_rate"], &of["messages"], &of["quantile"]), (&json!(0.1), &json!(2_000), &json!(0.9)));
    let report = printed("report record --format json");
    // The time contains the wake-up and the send call, and is at least the 90th percentile of each.
    let lead_ns = of["lead_ns"].as_i64().unwrap();
    let p90 = |metric: &str| {
        let quantiles = report["conditions"][0][metric]["quantiles"].as_array().unwrap();
        quantiles.iter().find(|one| one["q"] == 0.9).unwrap()["value_ns"].as_i64().unwrap()
    };
    assert!(lead_ns >= p90("send_lateness") && lead_ns >= p90("send_duration"), "{of}");
    assert_eq!(of["window_ns"].as_i64().unwrap() + of["least_ns"].as_i64().unwrap(), lead_ns);
    let text = advise(&["--miss-rate", "0.1"]);
    let stream = text.split("--set stream='").nth(1).and_then(|rest| rest.split('\'').next()).expect(&text).to_owned();
    assert!(stream.contains("launch: { lead: "), "{text}");
    // A study accepts the advice.
    let with_queue = "study: s\nmeasure: { ping-pong: { slots: 10 } }\nrate: 50 Hz\npath: veth\nplace: netns\n\
                      driver: { udp: { priority: 3 } }\n";
    fs::write(bench.path("s.yaml"), with_queue).unwrap();
    let checked = said_by(&bench, &["check", "s.yaml", "--set", &format!("stream={stream}")]);
    assert!(checked.starts_with("exit 0\n"), "{checked}");
    let few = advise(&[]);
    assert!(
        few.starts_with("exit 7\n") && few.contains("2,000 messages, worth ") && few.contains("3,688 are needed"),
        "{few}"
    );
    insta::assert_snapshot!([advise(&["--miss-rate", "2"]), said_by(&bench, &["advise", "nowhere"])].join("\n"));
}
