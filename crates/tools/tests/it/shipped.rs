//! Tests of the tool files that are part of Tailbound, with outputs of the programs (`evidence: tried`), or with
//! outputs that were written by hand from the documentation of the programs.

use std::collections::BTreeMap;
use tailbound_model::{Nanos, ToolFigure, ToolMetric};
use tailbound_tools::{Evidence, Tool, ToolError, Values, figures, find, names, seconds};

fn output(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/outputs/{name}.txt", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn value<'a>(all: &'a [ToolFigure], what: ToolMetric, statistic: &str) -> &'a [f64] {
    let of = |f: &&ToolFigure| f.what == what && f.statistic == statistic;
    &all.iter().find(of).unwrap_or_else(|| panic!("{what:?} {statistic}: {all:?}")).values
}

#[test]
fn every_file_reads_the_output_of_its_program() {
    use ToolMetric::*;
    let read = |name: &str| figures(&find(name).unwrap(), &output(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let ddsperf = read("ddsperf");
    // The program prints half round trips of each second, which are doubled.
    assert_eq!(value(&ddsperf, RoundTripNs, "p50"), [17966.0, 15832.0]);
    assert_eq!(value(&ddsperf, RoundTripNs, "max"), [8387758.0, 1372946.0]);
    assert_eq!(value(&ddsperf, Samples, "total"), [50696.0, 58997.0]);
    let sockperf = read("sockperf");
    assert_eq!(value(&sockperf, RoundTripNs, "p99.9"), [219516.0]);
    assert_eq!(value(&sockperf, RoundTripNs, "mean"), [27762.0]);
    assert_eq!(value(&sockperf, Samples, "total"), [55781.0]);
    assert_eq!(value(&sockperf, Lost, "total"), [0.0]);
    assert_eq!(value(&read("sockperf-throughput"), SentPerS, "mean"), [181276.0]);
    let iperf3 = read("iperf3");
    assert_eq!(value(&iperf3, Samples, "total"), [24405.0]);
    assert!((value(&iperf3, PayloadMbitPerS, "mean")[0] - 99.94).abs() < 0.01, "{iperf3:?}");
    assert!(value(&read("cyclictest"), WakeUpNs, "max")[0] >= 1000.0);
    // The sorted differences of the 100 lines, by another program.
    let isochron = read("isochron");
    let of = |statistic| value(&isochron, OneWayFromDueNs, statistic)[0].round();
    let expected = [665_190.0, 1_169_156.0, 50_952_280.0, 58_411_732.0, 6_170_052.0];
    assert_eq!(["min", "p50", "p99", "max", "mean"].map(of), expected);
    assert_eq!((value(&isochron, Samples, "total"), value(&isochron, Lost, "total")), (&[100.0][..], &[0.0][..]));
    // The emulated cards have stamped nothing. With stamps written by hand, and one message that was lost:
    assert!(!isochron.iter().any(|figure| figure.what == PathDelayNs), "{isochron:?}");
    let lines = "message 9.000000000 9.000002000 cards 9.000000600 9.000001000\n\
                 message 9.500000000 0.000000000 cards 9.500000700 0.000000000\n\
                 message 10.000000000 10.000004000 cards 10.000000500 10.000001500\n";
    let stamped = figures(&find("isochron").unwrap(), lines).unwrap();
    let of = |what, statistic| value(&stamped, what, statistic)[0].round();
    assert_eq!(["min", "mean", "max"].map(|statistic| of(PathDelayNs, statistic)), [400.0, 700.0, 1_000.0]);
    assert_eq!((of(OneWayFromDueNs, "mean"), of(Samples, "total"), of(Lost, "total")), (3_000.0, 2.0, 1.0));
    let perftest = read("rti-perftest");
    assert_eq!(value(&perftest, RoundTripNs, "p99"), [116_000.0]);
    assert_eq!(value(&perftest, RoundTripNs, "max"), [422_000.0]);
    let performance_test = read("performance-test");
    assert_eq!(value(&performance_test, OneWayNs, "max"), [512_000.0, 1_204_000.0]);
    assert_eq!(value(&performance_test, Lost, "total"), [0.0, 2.0]);
}

#[test]
fn tool_files_that_were_never_run_are_marked() {
    let never: Vec<&str> = names().into_iter().filter(|n| find(n).unwrap().evidence == Evidence::NeverRun).collect();
    assert_eq!(never, ["rti-perftest", "performance-test"]);
}

#[test]
fn commands_are_filled_in() {
    let sockperf = find("sockperf").unwrap();
    let values = Values { payload: 64, seconds: 3, peer: "10.0.0.2".into(), port: 7000, ..Values::default() };
    let words = |values: &Values| Tool::command(&sockperf.ping, values).unwrap().0.join(" ");
    assert_eq!(words(&values), "sockperf ping-pong -i 10.0.0.2 -p 7000 -m 72 -t 3", "as fast as it can");
    let at_a_rate = Values { rate_hz: Some(500.0), ..values.clone() };
    assert_eq!(words(&at_a_rate), "sockperf ping-pong -i 10.0.0.2 -p 7000 -m 72 -t 3 --mps=500");
    let iperf3 = find("iperf3").unwrap();
    let words = |values: &Values| Tool::command(&iperf3.ping, values).unwrap().0.join(" ");
    assert!(words(&values).ends_with("--bitrate=0 -J") && words(&at_a_rate).ends_with("--bitrate=256000 -J"));
    let [base_s, offset_s] = [1_790_000_000_000_000_001, 3_000_000].map(|ns| seconds(Nanos(ns)));
    let of_stream = Values { priority: 5, base_s, offset_s, ..at_a_rate.clone() };
    let isochron = Tool::command(&find("isochron").unwrap().ping, &of_stream).unwrap().0;
    let isochron = isochron.join(" ");
    let sent = "--priority 5 --frame-size 114 --cycle-time 0.002000000 --base-time 1790000000.000000001 --shift-time 0.003000000 \
                --advance-time 0.000000001 --num-frames 1500";
    assert!(isochron.ends_with(sent), "{isochron}");
    let ddsperf = find("ddsperf").unwrap();
    let with_interface = Values { interface: "eth0".into(), ..values };
    let environment: BTreeMap<String, String> = Tool::command(&ddsperf.ping, &with_interface).unwrap().1;
    assert!(environment["CYCLONEDDS_URI"].contains(r#"name="eth0""#), "{environment:?}");
}

fn error(text: &str) -> String {
    Tool::read("mine.yaml", text).map(|_| "none".to_owned()).unwrap_or_else(|e| e.to_string())
}

const MINE: &str = "tool: mine\nabout: a\nevidence: tried\nmeasures: ping-pong\nping: { command: [mine, '{payload}'] }\n\
                    definition: { latency: round-trip, window: whole-run }\n";

#[test]
fn wrong_files_are_refused_with_the_place() {
    let with = |figure: &str| format!("{MINE}figures: [{{ {figure} }}]\n");
    let right = "is: latency, statistic: p50, unit: us, at: { line: 'p50 (\\d+)' }";
    let all = [
        error(&with(right)),
        error(&with(&right.replace("unit: us", "unit: fortnights"))),
        error(&with(&right.replace("(\\d+)", "\\d+"))),
        error(&with(&right.replace("(\\d+)", "(\\d+"))),
        error(&with(&right.replace("line", "difference"))),
        error(&with(&right.replace("is: latency", "is: lateness"))),
        error(&with(right).replace("latency: round-trip, ", "")),
        error(&format!("{MINE}figures: []\n")),
        error(&format!("{}output: pong\n", with(right))),
        error(&with(right).replace("{payload}", "{secs}")),
        error(&with(&right.replace("is: latency", "is: lost"))),
        error(&with(right).replace("'{payload}']", "'{payload}'], ready: a, ready_when_listening: true")),
        find("sockpref").unwrap_err().to_string(),
        find("/nowhere/mine.yaml").unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(all.join("\n--\n"));
}

#[test]
fn outputs_that_do_not_match_the_tool_file_are_shown() {
    let said = |name: &str, output: &str| match figures(&find(name).unwrap(), output) {
        Err(e @ ToolError::Output { .. }) => e.to_string(),
        other => panic!("{other:?}"),
    };
    let cut = output("sockperf").split("percentile 99.900").next().unwrap().to_owned();
    let all = [
        said("sockperf", ""),
        said("sockperf", &cut),
        said("sockperf", &output("sockperf").repeat(2)),
        said("iperf3", "iperf3: error - unable to connect to server: Connection refused"),
        said("iperf3", &output("iperf3")[..900]),
        said("iperf3", "{ \"error\": \"unable to connect\" }"),
        said("iperf3", &output("iperf3").replace("\"packets\":\t24405", "\"packets\":\t\"many\"")),
        said("performance-test", &output("performance-test").replace("0.512", "?")),
        said("rti-perftest", &output("rti-perftest").replace("Ave (us)", "Average (us)")),
    ];
    insta::assert_snapshot!(all.join("\n--\n"));
}
