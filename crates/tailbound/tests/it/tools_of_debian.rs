//! Tests of Debian's benchmark programs in place of a driver: on loopback, in namespaces, and next to drivers.

use crate::support::{Bench, ping_pong, succeeded};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Fails if a program is not installed; `dev/setup test` installs it.
fn needs(program: &str, package: &str) {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
    assert!(
        found.is_ok_and(|s| s.success()),
        "there is no {program}: install the package {package}, or run dev/setup test"
    );
}

/// The first value of a tool's figure with this name and statistic.
fn figure(tool: &Value, what: &str, statistic: &str) -> f64 {
    let of = |f: &&Value| f["what"] == what && f["statistic"] == statistic;
    let found = tool["figures"].as_array().unwrap().iter().find(of);
    found.unwrap_or_else(|| panic!("{what} {statistic}: {tool}"))["values"][0].as_f64().unwrap()
}

#[test]
fn sockperf_runs_where_a_driver_does() {
    needs("sockperf", "sockperf");
    let bench = Bench::new();
    let study = ping_pong("udp", "ends: { ping: { scheduling: { policy: batch } } }").replace("driver: udp\n", "");
    succeeded(&bench.run(&format!("{study}factors: {{ driver: [udp, sockperf] }}\n"), &[]));
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let tool = &report["tools"][0];
    assert_eq!(
        (&tool["tool"], &tool["imported"], report["tools"].as_array().unwrap().len()),
        (&"sockperf".into(), &false.into(), 1)
    );
    assert!(tool["version"].as_str().unwrap().starts_with("3."), "{tool}");
    let command = tool["commands"]["ping"].as_str().unwrap();
    assert!(command.starts_with("sockperf ping-pong -i 127.0.0.1 -p "), "{command}");
    assert!(command.ends_with(" -m 72 -t 1 --mps=500"), "{command}");
    let p50 = tool["figures"].as_array().unwrap().iter().find(|f| f["statistic"] == "p50").unwrap();
    let p50_ns = p50["values"][0].as_f64().unwrap();
    assert!((1e3..1e9).contains(&p50_ns), "{p50}");
    // The processes of the tool are scheduled as ends are, and the scheduling was read back.
    let manifest = bench.manifest();
    let trial = manifest["trials"].as_array().unwrap().iter().find(|t| t["source"] == "summary").unwrap();
    let processes = &trial["summary"]["processes"];
    assert_eq!(
        (&processes["ping"]["policy"], &processes["ping"]["cpus"]),
        (&"batch".into(), &"0".into()),
        "{processes}"
    );
    let threads = report["threads"].as_array().unwrap().iter();
    let mut of_tool = threads.filter(|t| t["trial"] == tool["trial"]);
    assert!(of_tool.any(|t| t["before"][0]["name"] == "sockperf" && t["before"][0]["policy"] == "batch"), "{report}");
    // The record has the output of the tool, and packets passed the path of the study.
    let id = tool["trial"].as_u64().unwrap();
    let log = std::fs::read_to_string(bench.path(&format!("record/logs/{id}-ping.log"))).unwrap();
    assert!(log.contains("<MAX> observation"), "{log}");
    assert!(trial["ends"]["ping"]["counters"]["interface.tx_packets"].as_i64().unwrap() > 500, "{trial}");
}

#[test]
fn ddsperf_in_namespaces_of_its_own() {
    needs("ddsperf", "cyclonedds-tools");
    let bench = Bench::new();
    succeeded(&bench.run(&ping_pong("ddsperf", ""), &["path=veth", "place=netns", "measure.duration=2s"]));
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let tool = &report["tools"][0];
    assert!(figure(tool, "round_trip_ns", "min") > 1e3 && figure(tool, "samples", "total") > 10.0, "{tool}");
    let command = tool["commands"]["pong"].as_str().unwrap();
    assert!(command.starts_with("CYCLONEDDS_URI='<CycloneDDS>"), "{command}");
    assert!(command.ends_with(" ddsperf -i 77 pong listener"), "{command}");
    // The messages of the tool passed the veth pair.
    let sent = &bench.manifest()["trials"][0]["ends"]["ping"]["counters"]["interface.tx_packets"];
    assert!(sent.as_i64().unwrap() > 100, "{sent}");
}

#[test]
fn cyclictest_measures_alone() {
    needs("cyclictest", "rt-tests");
    let bench = Bench::new();
    succeeded(&bench.run(&ping_pong("cyclictest", ""), &[]));
    let report = bench.report();
    let tool = &report["tools"][0];
    assert!(figure(tool, "wake_up_ns", "max") >= figure(tool, "wake_up_ns", "min"), "{tool}");
    assert!(tool["commands"]["ping"].as_str().unwrap().ends_with("-D 1 --interval=2000"), "{tool}");
    assert!(tool["commands"].get("pong").is_none(), "{tool}");
    assert!(
        tool["remarks"].to_string().contains("The payload of the study, 64 B, has no effect on the tool."),
        "{tool}"
    );
}

#[test]
fn throughput_of_sockets_and_of_the_driver_udp() {
    needs("iperf3", "iperf3");
    needs("sockperf", "sockperf");
    let bench = Bench::new();
    let study = ping_pong("udp", "factors: { driver: [udp, iperf3, sockperf-throughput] }")
        .replace("driver: udp\n", "")
        .replace("{ ping-pong: { duration: 1 s } }", "{ throughput: { duration: 1 s } }");
    succeeded(&bench.run(&study, &["rate=5kHz", "payload=1KiB"]));
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let tool = |name: &str| report["tools"].as_array().unwrap().iter().find(|t| t["tool"] == name).unwrap();
    // 5,000 messages of 1 KiB in a second are 41 Mbit/s; a busy machine sends fewer.
    let mbit_s = figure(tool("iperf3"), "payload_mbit_per_s", "mean");
    assert!((1.0..60.0).contains(&mbit_s), "{mbit_s}");
    assert!(figure(tool("sockperf-throughput"), "sent_per_s", "mean") > 100.0);
    let pair = |a: &str, b: &str| {
        let names = serde_json::json!([a, b]);
        report["side_by_side"].as_array().unwrap().iter().find(|p| p["names"] == names).unwrap()
    };
    let same = &pair("iperf3", "udp")["same"];
    assert_eq!((&same[0]["what"], &same[0]["statistic"]), (&"payload_mbit_per_s".into(), &"mean".into()), "{same}");
    let apart = pair("sockperf-throughput", "udp");
    assert_eq!(apart["same"].as_array().unwrap().len(), 0, "{apart}");
    assert!(apart["apart"][0].as_str().unwrap().contains("has figures of sent/s, udp of"), "{apart}");
}

#[test]
fn the_study_shows_which_tools_are_comparable() {
    needs("ddsperf", "cyclonedds-tools");
    needs("sockperf", "sockperf");
    let bench = Bench::new();
    let out = bench.path("record");
    let mut command = bench.tailbound();
    command.args(["run", "tools-side-by-side", "--set", "payload=[64 B]", "--set", "measure.duration=2s"]);
    command.args(["--set", "repeat=2", "--set", "path=loopback", "--set", "place=process", "--out"]).arg(out);
    succeeded(&command.output().unwrap());
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let pairs = report["side_by_side"].as_array().unwrap();
    let pair = |a: &str, b: &str| pairs.iter().find(|p| p["names"] == serde_json::json!([a, b])).unwrap();
    let statistics = |pair: &Value| -> Vec<String> {
        pair["same"].as_array().unwrap().iter().map(|f| f["statistic"].as_str().unwrap().to_owned()).collect()
    };
    // The tool prints half round trips of the whole run; doubled they are round trips.
    let sockperf = pair("sockperf", "udp");
    let all = statistics(sockperf);
    if !sockperf["apart"].to_string().contains("messages were lost") {
        assert!(all.starts_with(&["mean".into(), "p50".into(), "p90".into()]), "{sockperf}");
    }
    let mean = &sockperf["same"][0];
    let ratio = mean["a"].as_f64().unwrap() / mean["b"].as_f64().unwrap();
    assert!((mean["ratio"].as_f64().unwrap() - ratio).abs() < 1e-9);
    // The percentiles of single seconds are not percentiles of the whole run; the mean is of the whole run.
    let ddsperf = pair("ddsperf", "cyclonedds");
    assert_eq!(statistics(ddsperf), ["mean"], "{ddsperf}");
    assert!(
        ddsperf["apart"].to_string().contains("p50, p90, p99: those of ddsperf are of one second each"),
        "{ddsperf}"
    );
    // Results of another middleware are not in the same comparison.
    for (a, b, why) in [
        ("sockperf", "cyclonedds", "sockperf sends as udp does, not as cyclonedds"),
        ("ddsperf", "udp", "ddsperf sends as cyclonedds does, not as udp"),
        ("sockperf", "ddsperf", "sockperf sends as udp does, ddsperf as cyclonedds does"),
    ] {
        let pair = pair(a, b);
        assert!(statistics(pair).is_empty() && pair["apart"].to_string().contains(why), "{pair}");
    }
    let findings = report["findings"].as_array().unwrap().iter().filter(|f| f["code"] == "side_by_side");
    assert_eq!(findings.count(), pairs.len());
    assert_eq!(pairs.len(), 5);
    let page = std::fs::read_to_string(bench.path("record/report.html")).unwrap();
    assert!(page.contains("<h3>Side by side</h3>") && page.contains("half round trips of sockperf were doubled"));
}
