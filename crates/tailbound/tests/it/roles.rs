//! Tests of scheduling by thread role, read by programs other than Tailbound: `chrt`, `taskset`, procfs.

use crate::support::processes::{seen_from_outside, seen_while_running};
use crate::support::{Bench, exit_and_stderr, may_be_real_time};

fn study(driver: &str, receive: &str, scheduling: &str) -> String {
    format!(
        "study: roles\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 500, warm_up: 0, timeout: 200 ms, receive: {receive} }} }}\n\
         rate: 200 Hz\ndriver: {driver}\npath: loopback\nplace: process\nscheduling: {scheduling}\n"
    )
}

#[test]
fn cyclonedds_by_role() {
    if !may_be_real_time() {
        return;
    }
    let scheduling = "{ main: { policy: rr, priority: 41 }, middleware: { policy: batch, nice: 4 }, \
                      receive: { policy: fifo, priority: 42, cpus: \"1\" }, event: { policy: idle } }";
    let seen = seen_from_outside(&Bench::new(), &study("cyclonedds", "listener", scheduling));
    println!("{seen:?}");
    let of = |name: &str| seen.get(name).map_or("not there", String::as_str);
    assert_eq!(of("tb-ping"), "SCHED_RR 41 0");
    assert_eq!(of("recv"), "SCHED_FIFO 42 1");
    assert_eq!(of("tev"), "SCHED_IDLE 0 0");
    assert_eq!(of("gc"), "SCHED_BATCH 4 0");
    assert_eq!(of("dq.builtins"), "SCHED_BATCH 4 0");
}

/// Test: Cyclone DDS sets the policies of its threads from the configuration that Tailbound writes; Tailbound sets the
/// policy of the main thread.
#[test]
fn cyclonedds_by_its_own_configuration() {
    if !may_be_real_time() {
        return;
    }
    let scheduling = "{ apply: vendor, main: { policy: rr, priority: 41 }, middleware: { policy: fifo, priority: 12 }, \
                      receive: { policy: fifo, priority: 42, cpus: \"1\" }, event: { policy: other } }";
    let bench = Bench::new();
    let seen = seen_from_outside(&bench, &study("cyclonedds", "listener", scheduling));
    println!("{seen:?}");
    let of = |name: &str| seen.get(name).map_or("not there", String::as_str);
    assert_eq!(of("tb-ping"), "SCHED_RR 41 0");
    assert_eq!(of("recv"), "SCHED_FIFO 42 1");
    assert_eq!(of("dq.user"), "SCHED_FIFO 42 1");
    assert_eq!(of("tev"), "SCHED_OTHER 0 0");
    assert_eq!(of("gc"), "SCHED_FIFO 12 0");
    assert_eq!(of("dq.builtins"), "SCHED_FIFO 12 0");
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let told = &record.manifest.trials[0].ends["ping"].transport;
    assert!(serde_json::to_string(told).unwrap().contains("<Threads><Thread Name="), "{told:?}");
}

#[test]
fn what_a_vendors_configuration_cannot_say_is_refused() {
    crate::support::ros2::built();
    let refused = |driver: &str, receive: &str, scheduling: &str| {
        let bench = Bench::new();
        let (code, text) = exit_and_stderr(&bench.run(&study(driver, receive, scheduling), &[]));
        // Without the progress lines of the run.
        let text = &text[text.find("error:").unwrap_or(0)..];
        format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH"))
    };
    let fifo = "{ apply: vendor, receive: { policy: fifo, priority: 42 } }";
    let mut all = vec![
        refused("cyclonedds", "listener", "{ apply: vendor, event: { policy: idle } }"),
        refused("{ cyclonedds: { threads: \"event:timeshare::\" } }", "listener", fifo),
        refused("{ cyclonedds: { threads: \"event:idle::\" } }", "listener", "{ policy: other }"),
        refused("udp", "listener", fifo),
        refused("ros2", "block", fifo),
    ];
    if crate::support::fastdds::built().is_some() {
        all.push(refused("fastdds", "listener", fifo));
    }
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn fastdds_by_role() {
    if !may_be_real_time() || crate::support::fastdds::built().is_none() {
        return;
    }
    let scheduling = "{ main: { policy: rr, priority: 41 }, middleware: { policy: batch, nice: 4 }, \
                      receive: { policy: fifo, priority: 42, cpus: \"1\" }, event: { policy: idle } }";
    let seen = seen_from_outside(&Bench::new(), &study("fastdds", "listener", scheduling));
    println!("{seen:?}");
    let of = |name: &str| seen.get(name).map_or("not there", String::as_str);
    assert_eq!(of("tb-ping"), "SCHED_RR 41 0");
    assert_eq!(of("fdds.recv"), "SCHED_FIFO 42 1");
    assert_eq!(of("fdds.event"), "SCHED_IDLE 0 0");
    assert_eq!(of("fdds.meta"), "SCHED_BATCH 4 0");
}

#[test]
fn ros2_by_role() {
    crate::support::ros2::built();
    if !may_be_real_time() {
        return;
    }
    let scheduling = "{ main: { policy: rr, priority: 41 }, middleware: { policy: batch, nice: 4 }, \
                      receive: { policy: fifo, priority: 42, cpus: \"1\" } }";
    let seen = seen_from_outside(&Bench::new(), &study("ros2", "block", scheduling));
    println!("{seen:?}");
    let of = |name: &str| seen.get(name).map_or("not there", String::as_str);
    assert_eq!(of("tb-ping"), "SCHED_RR 41 0");
    // One thread of RustDDS receives and sends. The thread that takes samples belongs to Tailbound.
    assert_eq!(of("RustDDS Partici"), "SCHED_FIFO 42 1");
    assert_eq!(of("tb-receive"), "SCHED_FIFO 42 1");
    assert_eq!(of("RustDDS discove"), "SCHED_BATCH 4 0");
    assert_eq!(of("ros2.status"), "SCHED_BATCH 4 0");
}

/// Test with the real ROS 2: the threads of its middleware have roles by their names, the thread of an executor of rclcpp has the role
/// main, and each has the policy of its role.
#[test]
fn rcl_and_rclcpp_by_role() {
    let Some(ros) = crate::support::rcl::real() else { return };
    if !may_be_real_time() {
        return;
    }
    let scheduling = "{ main: { policy: rr, priority: 41 }, middleware: { policy: batch, nice: 4 }, \
                      receive: { policy: fifo, priority: 42, cpus: \"1\" }, event: { policy: idle } }";
    for (driver, own) in [("rcl", None), ("rclcpp", Some("rclcpp.exec"))] {
        let bench = Bench::new();
        let mut command = bench.to_run(bench.tailbound(), "record", &study(driver, "listener", scheduling));
        ros.source(&mut command);
        command.env("TAILBOUND_DRIVER_PATH", crate::support::rclcpp::built(&ros));
        let seen = seen_while_running(&bench, command);
        let of = |name: &str| seen.get(name).map_or("not there", String::as_str);
        for main in own.into_iter().chain(["tb-ping"]) {
            assert_eq!(of(main), "SCHED_RR 41 0", "{driver}: {seen:?}");
        }
        assert_eq!(of("recv"), "SCHED_FIFO 42 1", "{driver}: {seen:?}");
        assert_eq!(of("tev"), "SCHED_IDLE 0 0", "{driver}: {seen:?}");
        assert_eq!(of("gc"), "SCHED_BATCH 4 0", "{driver}: {seen:?}");
    }
}

#[test]
fn udp_by_role() {
    if !may_be_real_time() {
        return;
    }
    let scheduling = "{ policy: other, nice: 2, middleware: { policy: rr, priority: 43 }, receive: { cpus: \"1\" } }";
    let seen = seen_from_outside(&Bench::new(), &study("udp", "listener", scheduling));
    println!("{seen:?}");
    assert_eq!(seen.get("tb-ping").unwrap(), "SCHED_OTHER 2 0");
    assert_eq!(seen.get("tb-udp-rx").unwrap(), "SCHED_RR 43 1");
    // Here the receiving thread belongs to Tailbound and not to the middleware.
    let seen = seen_from_outside(&Bench::new(), &study("udp", "block", scheduling));
    assert_eq!(seen.get("tb-receive").unwrap(), "SCHED_OTHER 2 1");
}

#[test]
fn a_deadline_for_the_main_thread() {
    let scheduling = "{ main: { policy: deadline, runtime: 300 us, deadline: 2 ms, period: 2 ms } }";
    let bench = Bench::new();
    let output = bench.run(&study("cyclonedds", "listener", scheduling), &[]);
    let (code, text) = exit_and_stderr(&output);
    if code == 3 && text.contains("deadline") {
        println!("skipped: {text}");
        return;
    }
    assert_eq!(code, 0, "{text}");
    let report = bench.report();
    let main = report["threads"][0]["after"].as_array().unwrap().iter().find(|t| t["role"] == "main").unwrap().clone();
    assert_eq!(main["policy"], "deadline 300000/2000000/2000000 ns");
}

/// Test: each thread of a role reserves its own CPU time. The kernel admits reservations of at most 95 % of the CPUs; a
/// larger reservation is refused with a reason.
#[test]
fn deadlines_beyond_the_bandwidth_are_refused_with_a_reason() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let scheduling = "{ policy: deadline, runtime: 1 ms, deadline: 1 ms, period: 1 ms }";
    let output = bench.run(&study("cyclonedds", "listener", scheduling), &[]);
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("would exceed what the kernel admits"), "{text}");
}

#[test]
fn a_role_that_the_driver_does_not_have() {
    let bench = Bench::new();
    let output = bench.run(&study("udp", "listener", "{ event: { policy: idle } }"), &[]);
    let (code, text) = exit_and_stderr(&output);
    insta::assert_snapshot!(format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH")));
}
