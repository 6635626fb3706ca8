//! Tests of the driver `rclcpp` with the real ROS 2 of this machine, against which its library is compiled.

use crate::support::host::is_root;
use crate::support::rcl::{Ros, forget, real, stand_in};
use crate::support::rclcpp::{build, built};
use crate::support::ros2::{study, transport};
use crate::support::studies::built_in;
use crate::support::{Bench, all_answered, exit_and_stderr, succeeded};
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use tailbound_driver::{Driver, Kind, Kv, ReceiveMode, Session, Silent};

/// Runs a study with this ROS 2 sourced, and with its library.
fn run(bench: &Bench, ros: &Ros, study: &str) -> Output {
    let mut command = bench.to_run(bench.tailbound(), "record", study);
    ros.source(&mut command);
    command.env("TAILBOUND_DRIVER_PATH", built(ros)).output().unwrap()
}

/// A study of the driver with these options.
fn of(options: &str, place: &str, path: &str) -> String {
    study(&format!("{{ rclcpp: {{ {options} }} }}"), "listener", place, path)
}

/// The driver passes the conformance suite with these options. It has callbacks only, so that the checks of the other receive modes
/// do not apply.
fn conforms(ros: &Ros, options: &[&str]) {
    let bench = Bench::new();
    let mut command = bench.tailbound();
    command.args(["driver", "check", "rclcpp"]).args(options.iter().map(|option| format!("--option={option}")));
    ros.source(&mut command);
    let output = command.env("TAILBOUND_DRIVER_PATH", built(ros)).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(exit_and_stderr(&output).0, 0, "{options:?}: {out}{}", exit_and_stderr(&output).1);
    assert!(out.contains("keeps the rules") && !out.contains("FAIL"), "{options:?}: {out}");
    let not_run = out.lines().filter(|line| line.starts_with("n/a"));
    let others: Vec<_> = not_run.filter(|line| !line.contains("block") && !line.contains("spin")).collect();
    assert_eq!(others, Vec::<&str>::new(), "{out}");
}

#[test]
fn every_executor_keeps_the_rules() {
    let Some(ros) = real() else { return };
    for executor in ["single", "multi", "events"] {
        conforms(&ros, &[&format!("executor={executor}")]);
    }
}

#[test]
fn every_way_of_publishing_keeps_the_rules() {
    let Some(ros) = real() else { return };
    conforms(&ros, &["message=serialized"]);
    conforms(&ros, &["send_by=timer"]);
    conforms(&ros, &["send_by=timer", "executor=events", "callback_groups=own"]);
    conforms(&ros, &["callback_groups=reentrant", "executor=multi", "threads=3"]);
}

/// Test: nothing is lost with every executor, inside one process and between two, typed and serialized, sent by call and by timer;
/// the record has what was in force.
#[test]
fn it_loses_nothing() {
    let Some(ros) = real() else { return };
    for (options, place) in [
        ("executor: single", "process"),
        ("executor: multi, threads: 2, callback_groups: own", "process"),
        ("executor: events", "process"),
        ("executor: events, send_by: timer", "process"),
        ("send_by: timer", "process"),
        ("message: serialized", "process"),
        ("executor: events", "same-process"),
    ] {
        let bench = Bench::new();
        succeeded(&run(&bench, &ros, &of(options, place, "loopback")));
        all_answered(&bench, options);
        let facts = transport(&bench);
        for (key, wanted) in options.split(", ").map(|option| option.split_once(": ").unwrap()) {
            let found = &facts[if key == "threads" { "executor_threads" } else { key }];
            let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            assert_eq!(found, wanted, "{key}: {facts}");
        }
        assert!(facts["library"].as_str().unwrap().starts_with("rclcpp "), "{facts}");
    }
}

/// Test: with `intra_process`, messages between the nodes of one process do not pass the middleware: the executor takes none from it.
#[test]
fn messages_stay_inside_the_process() {
    let Some(ros) = real() else { return };
    let taken = |options: &str| {
        let bench = Bench::new();
        let text = of(options, "same-process", "loopback").replace("keep-all", "{ keep-last: 300 }");
        succeeded(&run(&bench, &ros, &text));
        let report = all_answered(&bench, options);
        let stages = report["conditions"][0]["stages"].as_array().map_or(0, Vec::len);
        (stages, transport(&bench)["intra_process"].clone())
    };
    assert_eq!(taken("intra_process: on"), (0, true.into()));
    assert_eq!(taken("intra_process: off"), (2, false.into()));
}

/// rclcpp asks twice for each message whether it came from inside the process: in the take, and between the take and the callback.
/// This library makes every tenth of the second questions take 5 ms, and writes into a file how long it took in fact.
const SLEEPS: &str = r#"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

_Bool _ZNK6rclcpp16SubscriptionBase36matches_any_intra_process_publishersEPK9rmw_gid_s(const void *self, const void *gid) {
    static atomic_int asked;
    static _Thread_local const void *last;
    struct timespec length = {0, 5000000};
    int is_second = self == last;
    (void)gid;
    last = is_second ? NULL : self;
    if (is_second && ++asked % 10 == 0) {
        char path[1000];
        long begin = now();
        nanosleep(&length, 0);
        snprintf(path, sizeof path, "%s/%d", getenv("SLEPT"), (int)getpid());
        FILE *file = fopen(path, "a");
        if (file) {
            fprintf(file, "%ld\n", now() - begin);
            fclose(file);
        }
    }
    return 0;
}
"#;

/// Test: a known time between the take of a message and its callback is in the stage `executor`, and in no other one.
#[test]
fn the_time_in_the_executor_is_a_stage_of_its_own() {
    let Some(ros) = real() else { return };
    let bench = Bench::new();
    let (source, library, slept) = (bench.path("sleeps.c"), bench.path("sleeps.so"), bench.path("slept"));
    std::fs::write(&source, SLEEPS).unwrap();
    std::fs::create_dir(&slept).unwrap();
    let compiler =
        std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output();
    succeeded(&compiler.unwrap());
    let text = of("executor: single", "process", "loopback").replace("500 Hz", "50 Hz");
    let mut command = bench.to_run(bench.tailbound(), "record", &text);
    ros.source(&mut command);
    command.env("TAILBOUND_DRIVER_PATH", built(&ros)).env("LD_PRELOAD", &library).env("SLEPT", &slept);
    succeeded(&command.output().unwrap());
    let report = all_answered(&bench, "executor");
    // Of each end: the sleeps after the two of the warm-up, which has 20 messages.
    let files = std::fs::read_dir(&slept).unwrap().flatten().map(|file| std::fs::read_to_string(file.path()).unwrap());
    let sleeps: Vec<Vec<f64>> =
        files.map(|text| text.lines().skip(2).map(|line| line.parse().unwrap()).collect()).collect();
    // The nodes of ROS 2 also get a message about parameters or none.
    assert!(sleeps.len() == 2 && sleeps.iter().all(|of| (30..=31).contains(&of.len())), "{sleeps:?}");
    let planted_ns: f64 = sleeps.iter().flatten().sum();
    let stages = report["conditions"][0]["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 2, "{stages:#?}");
    let mut found_ns = 0.0;
    for end in stages {
        let [_, executor] = &end["parts"].as_array().unwrap()[..] else { panic!("{end:#}") };
        assert_eq!(executor["stages"], serde_json::json!(["executor"]), "{end:#}");
        assert_eq!(executor["messages"], 300, "{end:#}");
        found_ns += executor["mean_ns"].as_f64().unwrap() * 300.0;
    }
    // Limit: 70 to 130 % of the sleeps, as for all planted faults.
    assert!((planted_ns * 0.7..planted_ns * 1.3).contains(&found_ns), "{planted_ns} {found_ns} {stages:#?}");
}

/// Test: with `loan`, every message is written into memory that the middleware lends. The middleware of this ROS 2 lends none, so that
/// a library that is loaded before it does.
#[test]
fn messages_are_written_into_lent_memory() {
    let Some(ros) = real() else { return };
    let bench = Bench::new();
    let (library, lent) = (bench.path("lends.so"), bench.path("lent"));
    std::fs::create_dir(&lent).unwrap();
    let mut compiler = std::process::Command::new("c++");
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]);
    for package in std::fs::read_dir(ros.prefix().join("include")).unwrap().flatten() {
        // Only headers of packages of ROS 2 are in a directory of the same name.
        if package.path().join(package.file_name()).is_dir() {
            compiler.arg("-isystem").arg(package.path());
        }
    }
    compiler.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../drivers/rclcpp/tests/lends.cpp")).arg("-o").arg(&library);
    succeeded(&compiler.output().unwrap());
    let mut command = bench.to_run(bench.tailbound(), "record", &of("loan: on", "process", "loopback"));
    ros.source(&mut command);
    command.env("TAILBOUND_DRIVER_PATH", built(&ros)).env("LD_PRELOAD", &library).env("LENT", &lent);
    succeeded(&command.output().unwrap());
    all_answered(&bench, "loan");
    assert_eq!(transport(&bench)["loan"], true);
    // Of each end: the messages that were lent, published, and returned unused.
    let files = std::fs::read_dir(&lent).unwrap().flatten().map(|file| std::fs::read(file.path()).unwrap());
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
    let counts: Vec<Vec<u64>> = files.map(|bytes| bytes.chunks(8).map(number).collect()).collect();
    assert_eq!(counts, [[320, 320, 0], [320, 320, 0]]);
}

/// Test: rclcpp and programs with another DDS implementation and the names of ROS 2 understand each other, at either end.
#[cfg(feature = "system-tests")]
#[test]
fn it_meets_other_drivers_with_the_names_of_ros() {
    let Some(ros) = real() else { return };
    let mut others = vec!["{ cyclonedds: { naming: ros2 } }"];
    if crate::support::fastdds::built().is_some() {
        others.push("{ fastdds: { naming: ros2 } }");
    }
    for other in others {
        for (ping, pong) in [("rclcpp", other), (other, "rclcpp")] {
            let bench = Bench::new();
            let ends = format!("ends: {{ ping: {{ driver: {ping} }}, pong: {{ driver: {pong} }} }}\n");
            let text = study("X", "listener", "process", "loopback").replace("driver: X\n", &ends);
            succeeded(&run(&bench, &ros, &text));
            all_answered(&bench, &ends);
        }
    }
}

/// Test: the same with the driver `ros2`, in one direction after the other, because it has no callbacks and rclcpp has nothing else.
#[cfg(feature = "system-tests")]
#[test]
fn it_meets_the_driver_ros2() {
    let Some(ros) = real() else { return };
    crate::support::ros2::built();
    for (ping, pong, receive) in [("rclcpp", "ros2", "block"), ("ros2", "rclcpp", "listener")] {
        let bench = Bench::new();
        let text = format!(
            "study: meeting\nquestion: q\nquiet: off\nplace: process\npath: loopback\nrate: 500 Hz\npayload: 1 KiB\n\
             measure: {{ throughput: {{ duration: 1 s, ramp_up: 100 ms, receive: {receive} }} }}\n\
             qos: {{ reliability: reliable, history: keep-all }}\n\
             ends: {{ ping: {{ driver: {ping} }}, pong: {{ driver: {pong} }} }}\n"
        );
        succeeded(&run(&bench, &ros, &text));
        let report = bench.report();
        assert_eq!(report["status"], "valid", "{ping}, {pong}: {}", report["warnings"]);
        let flow = &report["conditions"][0]["flow"];
        assert!(flow["sent"].as_i64() >= Some(500) && flow["lost"] == 0, "{ping}, {pong}: {flow}");
    }
}

/// Test: every layer of `rmw-compare` that this ROS 2 has is measured, and a middleware that is not installed is named.
#[test]
fn the_study_of_layers_measures_what_is_installed() {
    let Some(ros) = real() else { return };
    let bench = Bench::new();
    let mut command = bench.tailbound();
    ros.source(&mut command);
    command.env("TAILBOUND_DRIVER_PATH", built(&ros));
    let report = built_in(&bench, command, "rmw-compare", &["measure.slots=200", "measure.warm_up=20", "repeat=1"]);
    let (mut measured, mut absent) = (0, 0);
    for condition in report["conditions"].as_array().unwrap() {
        let driver = condition["levels"]["driver"].as_str().unwrap();
        if driver.contains("rmw_fastrtps_cpp") || driver.contains("rmw_zenoh_cpp") {
            let why = condition["not_possible"].as_str().unwrap_or_else(|| panic!("{condition:#}"));
            assert!(why.contains(driver.split_whitespace().find(|word| word.starts_with("rmw_")).unwrap()), "{why}");
            absent += 1;
        } else if !driver.starts_with("fastdds") {
            let counts = &condition["counts"];
            // Best effort: a message may be replaced by the next one.
            assert!(counts["answered"].as_i64() >= Some(190), "{driver}: {counts}");
            measured += 1;
        }
    }
    assert_eq!((measured, absent), (5, 6));
    let against = report["against"]["rows"].as_array().unwrap();
    assert!(against.len() >= 4, "{}", report["against"]);
}

/// Test: both layers name the policy that does not fit. ROS 2 is sourced before a process starts, so that the check is one of its own.
#[test]
fn policies_that_do_not_fit_are_named() {
    let Some(ros) = real() else { return };
    let mut part = std::process::Command::new(std::env::current_exe().unwrap());
    ros.source(part.args(["--ignored", "--exact", "rclcpp::in_a_sourced_process_policies_are_named"]));
    let output = part.env("TAILBOUND_DRIVER_PATH", built(&ros)).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "run by another test"]
fn in_a_sourced_process_policies_are_named() {
    let layers = [
        ("rcl", tailbound_driver_rcl::table(), ReceiveMode::Spin),
        ("rclcpp", tailbound_driver_rcl::rclcpp_table(), ReceiveMode::Listener),
    ];
    for (layer, table, receive) in layers {
        let driver = Driver::linked(layer, table).unwrap();
        let open = || Session::open(&driver, &Kv::new().with("domain", "144"), Arc::new(Silent)).unwrap();
        let (from, to) = (open(), open());
        for (topic, key, offered, requested) in [
            ("q1", "reliability", "best-effort", "reliable"),
            ("q2", "durability", "volatile", "transient-local"),
            ("q3", "deadline", "2000000000", "1000000000"),
        ] {
            let end = |session: &Session, kind, value| session.create(kind, topic, 64, &Kv::new().with(key, value), 7);
            let reader = end(&to, Kind::Reader(receive), requested).unwrap();
            let writer = end(&from, Kind::Writer, offered).unwrap();
            for (session, end) in [(&to, reader), (&from, writer)] {
                let mut answer = serde_json::Value::Null;
                for _ in 0..2_000 {
                    answer = serde_json::from_str(&session.query(end, "unmatched").unwrap()).unwrap();
                    if answer["reason"] == "incompatible QoS" {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                assert_eq!(answer["policy"], key, "{layer}: {answer}");
            }
        }
    }
}

/// Test: the node of an end is in the graph that a program with another DDS implementation sees.
#[cfg(feature = "system-tests")]
#[test]
fn the_nodes_are_in_the_graph() {
    let Some(ros) = real() else { return };
    let text = of("node: measured", "process", "loopback").replace("slots: 300", "slots: 2500");
    let bench = Bench::new();
    let mut command = bench.to_run(bench.tailbound(), "record", &format!("{text}domain: 143\n"));
    ros.source(&mut command);
    command.env("TAILBOUND_DRIVER_PATH", built(&ros));
    assert_eq!(crate::support::ros2::participants_of(command, "measured", "143"), 2);
}

/// Test between network namespaces: the packets pass the interface of the path.
#[test]
fn it_uses_the_interface_of_the_path() {
    if !is_root() {
        println!("skipped: network namespaces need root");
        return;
    }
    let Some(ros) = real() else { return };
    let bench = Bench::new();
    succeeded(&run(&bench, &ros, &of("executor: single", "netns", "veth")));
    all_answered(&bench, "veth");
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let sent = record.manifest.trials[0].ends["ping"].counters["interface.tx_packets"];
    assert!(sent >= 320 * 6, "8 KiB are six packets: {sent}");
}

/// The message of a run that is refused, with the directories of the test by name.
fn refused(bench: &Bench, ros: &Ros, options: &str, drivers: &Path) -> String {
    let mut command = bench.to_run(bench.tailbound(), "record", &of(options, "same-process", "loopback"));
    ros.source(&mut command);
    // The user who runs the tests may have built the driver.
    command.env("HOME", bench.dir.path()).env("TAILBOUND_DRIVER_PATH", drivers);
    let (code, text) = exit_and_stderr(&command.output().unwrap());
    let text = text.replace(bench.dir.path().to_str().unwrap(), "BENCH").replace(ros.prefix().to_str().unwrap(), "ROS");
    format!("exit {code}\n{text}")
}

#[test]
fn a_library_that_does_not_fit_is_refused_with_a_remedy() {
    let Some(ros) = real() else { return };
    let bench = Bench::new();
    let mut all = vec![("not built", refused(&bench, &ros, "executor: single", &bench.path("none")))];
    let place = bench.path("drivers/rclcpp-jazzy");
    std::fs::create_dir_all(&place).unwrap();
    for entry in std::fs::read_dir(built(&ros).join("rclcpp-jazzy")).unwrap().flatten() {
        std::fs::copy(entry.path(), place.join(entry.file_name())).unwrap();
    }
    let library = place.join("libtailbound_rclcpp.so");
    let good = std::fs::read(&library).unwrap();
    let version = ros.version("rclcpp");
    // The library contains the version as a text that ends with a NUL byte.
    let [from, to] = [version.clone(), version.replace(['0', '1', '2'], "9")].map(|text| format!("{text}\0"));
    let at = good.windows(from.len()).position(|window| window == from.as_bytes()).expect("the version");
    let mut other = good.clone();
    other[at..at + to.len()].copy_from_slice(to.as_bytes());
    std::fs::write(&library, &other).unwrap();
    let text = refused(&bench, &ros, "executor: single", &bench.path("drivers"));
    all.push(("another rclcpp", text.replace(&version, "VERSION")));
    std::fs::write(&library, b"no library").unwrap();
    all.push(("no library", refused(&bench, &ros, "executor: single", &bench.path("drivers"))));
    std::fs::write(&library, &good).unwrap();
    let support = "libtailbound_msgs__rosidl_typesupport_introspection_cpp.so";
    std::fs::remove_file(place.join(support)).unwrap();
    all.push(("no type support", refused(&bench, &ros, "executor: single", &bench.path("drivers"))));
    let text: Vec<String> = all.into_iter().map(|(what, text)| format!("== {what}\n{text}")).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let Some(ros) = real() else { return };
    let drivers = built(&ros);
    let all = [
        "message: serialized, intra_process: on",
        "message: serialized, loan: on",
        "executor: events, threads: 4",
        "loan: on",
        "intra_process: on",
        "executor: static",
    ]
    .map(|options| format!("== {options}\n{}", refused(&Bench::new(), &ros, options, &drivers)));
    insta::assert_snapshot!(all.join("\n"));
}

/// Test: the command that compiles the library says what is missing: a sourced ROS 2, a program, a package, a place to write to.
#[test]
fn a_build_that_cannot_be_made_says_what_is_missing() {
    let bench = Bench::new();
    let shown = |mut command: std::process::Command, ros: Option<&Ros>| {
        let (code, mut text) = exit_and_stderr(&command.output().unwrap());
        if let Some(ros) = ros {
            text = text.replace(ros.prefix().to_str().unwrap(), "ROS");
        }
        format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH"))
    };
    let mut without = bench.tailbound();
    forget(without.args(["driver", "build", "rclcpp"]));
    let mut all = vec![format!("== nothing is sourced\n{}", shown(without, None))];
    // The stand-in has rcl and none of the packages for cmake.
    let Some(ros) = stand_in(&[]) else { return };
    let mut no_cmake = build(&ros, &bench.path("drivers"));
    no_cmake.env("PATH", bench.dir.path());
    all.push(format!("== no cmake\n{}", shown(no_cmake, Some(&ros))));
    all.push(format!("== no package\n{}", shown(build(&ros, &bench.path("drivers")), Some(&ros))));
    std::fs::write(bench.path("file"), "").unwrap();
    all.push(format!("== no place\n{}", shown(build(&ros, &bench.path("file")), Some(&ros))));
    insta::assert_snapshot!(all.join("\n"));
}
