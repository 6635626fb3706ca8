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
