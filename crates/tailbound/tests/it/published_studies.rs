//! Tests of built-in studies that repeat published ones, in the form in which they are shipped and shortened only by what their files
//! name: trials of loops, timers that skip, priorities as published, and the tables in which published numbers stand beside ours.

use crate::support::ssh::TwoHosts;
use crate::support::studies::{built_in, published};
use crate::support::{Bench, fastdds, may_be_real_time};
use serde_json::Value;

/// Name of the table with M1 to M4 of each run.
const NINE_RUNS: &str = "M1 to M4 of the nine runs: two processes, Fast DDS, middleware time-sharing, load from 1 s on";
const LOAD: &str = "{ run: cpu, scheduling: { policy: rr, priority: 90, cpus: \"0\" }, start: 1 s }";

/// Policies of the threads of the ping in a trial: name and policy.
fn policies(report: &Value, trial: usize) -> Vec<(String, String)> {
    let tables = report["threads"].as_array().unwrap().iter();
    let mut of = tables.filter(|t| t["trial"] == trial && t["ends"].as_array().unwrap().contains(&"ping".into()));
    let rows = of.next().unwrap_or_else(|| panic!("{}", report["threads"]))["after"].as_array().unwrap().clone();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "name"), text(row, "policy"))).collect()
}

/// Trial of the only condition whose name contains all of these words.
fn trial_of(report: &Value, words: &[&str]) -> usize {
    let name = |c: &Value| c["name"].as_str().unwrap().to_owned();
    let all = report["conditions"].as_array().unwrap();
    let mut found = all.iter().filter(|c| words.iter().all(|word| name(c).contains(word)));
    let condition = found.next().unwrap_or_else(|| panic!("{words:?}: {:?}", all.iter().map(name).collect::<Vec<_>>()));
    assert!(found.next().is_none(), "{words:?}: {:?}", all.iter().map(name).collect::<Vec<_>>());
    condition["trial_ids"][0].as_u64().unwrap() as usize
}

/// Test: a trial is a number of loops, timers skip, the ends wait for a load that begins before they have met, and the table has
/// M1 to M4 of the run.
#[test]
fn child_threads_counts_loops_and_has_a_row_for_each_run() {
    if !may_be_real_time() || fastdds::built().is_none() {
        return;
    }
    let bench = Bench::new();
    let before =
        "{ run: cpu, scheduling: { policy: rr, priority: 90, cpus: \"0\" }, start: before-discovery, duration: 12 s }";
    let report = built_in(
        &bench,
        bench.tailbound(),
        "child-threads",
        &[
            "measure.loops=200",
            "measure.timeout=1s",
            "repeat=1",
            "driver=[fastdds]",
            "arrangement=[{ processes: 2, participants: 2, executors: 2 }]",
            "scheduling=[{ main: { policy: rr, priority: 98 }, middleware: { policy: other } }]",
            &format!("load=[[], [{LOAD}], [{before}]]"),
        ],
    );
    for condition in report["conditions"].as_array().unwrap() {
        let counts = &condition["counts"];
        let sent = counts["scheduled"].as_i64().unwrap() - counts["not_sent"].as_i64().unwrap();
        assert_eq!(sent, 200, "{}: {counts}", condition["name"]);
    }
    let run = published(&report, NINE_RUNS, "run 1");
    assert_eq!(run.len(), 5);
    let here: Vec<f64> = run.iter().map(|cell| cell["here"][1].as_f64().unwrap_or_else(|| panic!("{cell}"))).collect();
    // 200 loops at 100 Hz; with the time until the ends had met it is not shorter.
    assert!(here[0] >= 1.98 && here[4] >= here[0], "{here:?}");
    assert_eq!(published(&report, NINE_RUNS, "the worst of nine")[1]["published"]["high"], 59_736_187.0);
    let missing = &published(&report, NINE_RUNS, "run 2")[0];
    assert!(missing["why"].as_str().unwrap().contains("run 2 is not in this record"), "{missing}");
}

/// Test of the advice: Fast DDS that publishes by a thread of its own, main thread RR 97, threads of the middleware RR 97 and 96, and
/// the load on either CPU; the policies are read from the threads.
#[test]
fn the_advice_has_the_published_priorities() {
    if !may_be_real_time() || fastdds::built().is_none() {
        return;
    }
    let bench = Bench::new();
    let settings =
        ["measure.duration=1s", "measure.timeout=1s", "repeat=1", "driver=[{ fastdds: { publish_mode: async } }]"];
    let report = built_in(&bench, bench.tailbound(), "child-threads-advice", &settings);
    assert_eq!(report["conditions"].as_array().unwrap().len(), 9);
    for (load, cpu) in [("load none", None), ("CPU 0", Some("0")), ("CPU 1", Some("1"))] {
        for (middleware, policy) in [
            ("middleware policy other", "other"),
            ("middleware policy rr, priority 97", "rr 97"),
            ("middleware policy rr, priority 96", "rr 96"),
        ] {
            let trial = trial_of(&report, &[load, middleware]);
            let found = policies(&report, trial);
            let of = |name: &str| found.iter().find(|(n, _)| n == name).map(|(_, p)| p.as_str());
            assert_eq!(of("tb-ping"), Some("rr 97"), "{load}, {middleware}: {found:?}");
            let threads: Vec<_> = found.iter().filter(|(name, _)| name.starts_with("fdds.")).collect();
            assert!(threads.len() > 2 && threads.iter().all(|(_, p)| p == policy), "{load}, {middleware}: {found:?}");
            let loads = report["loads"].as_array().unwrap().iter().find(|l| l["trial"] == trial);
            assert_eq!(loads.map(|l| l["cpus"].as_str().unwrap()), cpu, "{load}");
        }
    }
}

/// Test with the real ROS 2: the thread of the executor has the priority of the main thread, and the threads of the middleware have
/// theirs; a trial is a number of loops, and the table has a row for it.
#[test]
fn child_threads_of_ros_gives_the_executor_its_priority() {
    let Some(ros) = crate::support::rcl::real() else { return };
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let mut command = bench.tailbound();
    ros.source(&mut command);
    command.env("TAILBOUND_DRIVER_PATH", crate::support::rclcpp::built(&ros));
    let load = format!("load=[[], [{LOAD}]]");
    let report =
        built_in(&bench, command, "child-threads-ros", &["measure.loops=200", "measure.timeout=1s", "repeat=1", &load]);
    for (middleware, policy) in [("middleware policy other", "other"), ("middleware policy rr, priority 97", "rr 97")] {
        let found = policies(&report, trial_of(&report, &["load none", middleware]));
        let of = |name: &str| found.iter().find(|(n, _)| n == name).map(|(_, p)| p.as_str());
        assert_eq!((of("rclcpp.exec"), of("recv")), (Some("rr 98"), Some(policy)), "{found:?}");
    }
    let run = published(&report, NINE_RUNS, "run 1");
    assert!(run.iter().all(|cell| cell["here"].is_array()), "{run:?}");
    for condition in report["conditions"].as_array().unwrap() {
        let counts = &condition["counts"];
        let sent = counts["scheduled"].as_i64().unwrap() - counts["not_sent"].as_i64().unwrap();
        assert_eq!(sent, 200, "{}: {counts}", condition["name"]);
    }
}

/// Test of the form with two hosts, between two network namespaces and over ssh: each payload has a row, and the maximum is marked as a
/// definition of the publication.
#[test]
fn vm_latency_between_two_hosts_has_the_published_figures() {
    if !may_be_real_time() {
        return;
    }
    let hosts = TwoHosts::new(0);
    let program = format!("ends.pong.place.program={}", env!("CARGO_BIN_EXE_tailbound"));
    let settings = [
        "ends.pong.place.host=guest-1",
        "path.ping.interface=x0",
        "path.pong.interface=x0",
        "ends.ping.cpus=0",
        "ends.pong.cpus=1",
        "measure.hand_off.cpus=1",
        "measure.duration=500ms",
        "measure.warm_up=20",
        "payload=[16 B, 16 KiB]",
        "repeat=1",
        &program,
    ];
    let report = built_in(&hosts.bench, hosts.tailbound(), "vm-latency-hosts", &settings);
    let table = &report["published"][0]["table"];
    assert_eq!(table["columns"][1]["published_definition"], true, "{table}");
    let name = report["published"][0]["name"].as_str().unwrap().to_owned();
    for (row, condition) in [("16 B", 0), ("16 KiB", 1)] {
        let cells = published(&report, &name, row);
        let longest = report["conditions"][condition]["round_trip"]["max_ns"].as_f64().unwrap();
        assert_eq!(cells[1]["here"][1].as_f64().unwrap(), longest / 2.0 / 1e3, "{row}");
        assert!(cells[0]["here"].is_array(), "{row}: {cells:?}");
    }
    assert!(published(&report, &name, "1 KiB")[0]["why"].is_string());
}

/// Test of the built-in study of a hand-over, shortened, with its own driver: the report says by itself what waking a thread on another
/// CPU costs, and that there is no such wait on the same CPU.
#[test]
fn a_hand_over_between_two_cpus_is_named() {
    let bench = Bench::new();
    let settings = ["measure.slots=2000", "measure.warm_up=100", "repeat=2", "attribution=machine"];
    let report = built_in(&bench, bench.tailbound(), "hand-off", &settings);
    if !bench.is_recorded_by_bpf("ping") {
        return;
    }
    // Of the second threads of both ends: how long they waited for a CPU, or for a CPU to leave its idle state, for each ordinary message.
    let waits_ns = |condition: &Value, causes: &[&str]| {
        let parts = condition["usual"]["parts"].as_array().unwrap_or_else(|| panic!("{:#}", condition["usual"]));
        let is = |part: &&Value| causes.contains(&part["cause"].as_str().unwrap()) && part["thread"] == "tb-process";
        parts.iter().filter(is).map(|part| part["mean_ns"].as_i64().unwrap()).sum::<i64>()
    };
    let conditions = report["conditions"].as_array().unwrap();
    let all = [0, 1, 2].map(|id| waits_ns(&conditions[id], &["idle_exit", "waited_for_cpu"]));
    let idle = [0, 1, 2].map(|id| waits_ns(&conditions[id], &["idle_exit"]));
    println!(
        "waits of the second thread without one, on the same CPU, on another CPU: {all:?} ns, for an idle CPU: {idle:?}"
    );
    // Leaving the idle state takes microseconds; the CPU of the receiving thread is not idle, so that there is nothing to leave. A program
    // beside the test keeps the other CPU from being idle.
    assert!(all[0] == 0 && all[2] > 1_000 && idle[1] < all[2] / 4, "{all:?} {idle:?}");
    let page = bench.tailbound().args(["report", "record"]).output().unwrap();
    assert!(String::from_utf8_lossy(&page.stdout).contains("thread `tb-process`"));
}
