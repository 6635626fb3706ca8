//! Tests of `tailbound gates`: what it prints for a schedule, and its error messages.

use crate::support::{Bench, exit_and_stderr};
use std::fs;

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
        ("[{ open: [rest], for: 503 us }]", udp.to_owned(), "      cycle: 400 us\n"),
    ];
    for (entries, rest, more) in cases {
        study(&bench, &format!("{entries}\n{more}"), &rest);
        said.push(said_by(&bench, &["check", "s.yaml"]));
    }
    fs::write(bench.path("s.yaml"), "study: s\nmeasure: { ping-pong: { slots: 10 } }\ndriver: udp\n").unwrap();
    said.push(said_by(&bench, &["check", "s.yaml"]));
    insta::assert_snapshot!(said.join("\n"));
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
