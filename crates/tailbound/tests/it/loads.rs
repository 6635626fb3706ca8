//! Tests of loads during a measurement, observed by programs other than Tailbound: `chrt`, `taskset`, procfs.

use crate::support::processes::{descendants, kill, wait_for_measuring};
use crate::support::{Bench, exit_and_stderr, may_be_real_time, output_of};
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn study(slots: u32, load: &str) -> String {
    format!(
        "study: loads\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {slots}, warm_up: 0, timeout: 2 s }} }}\n\
         rate: 500 Hz\ndriver: udp\npath: loopback\nplace: process\nload: {load}\n"
    )
}

fn arguments(pid: i32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).replace('\0', " ")
}

/// User and system CPU time of a process, in clock ticks.
fn ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [11, 12].iter().filter_map(|i| rest.get(*i)?.parse::<u64>().ok()).sum()
}

/// Ids of the running processes that have `mark` in their arguments.
fn living(mark: &str) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter(|pid| arguments(*pid).contains(mark)).collect()
}

fn load(report: &Value, i: usize) -> &Value {
    &report["loads"].as_array().unwrap_or_else(|| panic!("no loads: {}", report["warnings"]))[i]
}

fn first_policy_line(pid: i32) -> String {
    let text = output_of("chrt", &["-p", &pid.to_string()]);
    let line = text.lines().next().unwrap_or_default();
    line.rsplit(": ").next().unwrap_or_default().to_owned()
}

#[test]
fn each_kind_works_where_and_as_it_was_asked_to() {
    for kind in ["cpu", "memory", "cache", "syscall"] {
        let bench = Bench::new();
        let study = study(1000, &format!("[{{ run: {kind}, scheduling: {{ policy: batch, nice: 3, cpus: \"0\" }} }}]"));
        let study = bench.study(&study);
        let mut command = bench.tailbound();
        command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for_measuring(child.id() as i32, "ping");
        let deadline = Instant::now() + Duration::from_secs(10);
        let mark = format!("agent --load {kind}");
        let found = loop {
            let found = descendants(child.id() as i32).into_iter().find(|pid| arguments(*pid).contains(&mark));
            if found.is_some() || Instant::now() > deadline {
                break found;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let pid = found.unwrap_or_else(|| panic!("no load {kind} was seen"));
        std::thread::sleep(Duration::from_millis(1000));
        let (policy, used) = (first_policy_line(pid), ticks(pid));
        let cpus = output_of("taskset", &["-pc", &pid.to_string()]);
        let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{kind}: {text}");
        assert_eq!(policy, "SCHED_BATCH", "{kind}");
        assert!(cpus.trim().ends_with("list: 0"), "{kind}: {cpus}");
        let report = bench.report();
        let load = load(&report, 0);
        assert_eq!((&load["policy"], &load["cpus"]), (&"batch nice 3".into(), &"0".into()));
        // procfs was read during the run, so that the CPU time of the whole run is at least as long; a tick is 10 ms.
        assert!(used > 5, "{kind} took {used} ticks");
        assert!(load["cpu_ns"].as_u64().unwrap() + 20_000_000 >= used * 10_000_000, "{kind}: {load}, {used} ticks");
        assert!(load["rounds"].as_u64().unwrap() > 0, "{kind}: {load}");
        let counts_bytes = matches!(kind, "cpu" | "memory");
        assert_eq!(load["octets"].as_u64().is_some_and(|o| o > 0), counts_bytes, "{kind}: {load}");
        assert!(living(&mark).is_empty(), "{kind} is left");
        let text = report["findings"].to_string();
        assert!(text.contains(&format!("the load `{kind}` ran (batch nice 3, CPU 0)")), "{text}");
    }
}

#[test]
fn loads_begin_and_end_when_they_are_to() {
    let bench = Bench::new();
    let loads = "[{ run: syscall, at: pong, start: before-discovery }, { run: syscall, start: after-matching }, \
                  { run: { command: [sleep, \"60\"] }, start: 500 ms, duration: 300 ms }, \
                  { run: syscall, start: 1 h }]";
    let (code, text) = exit_and_stderr(&bench.run(&study(1000, loads), &[]));
    assert_eq!(code, 0, "{text}");
    let report = bench.report();
    let by = |run: &str, at: &str| -> Vec<(Option<i64>, i64)> {
        let of = report["loads"].as_array().unwrap().iter().filter(|l| l["run"] == run && l["at"] == at);
        of.map(|l| (l["began_after_ns"].as_i64(), l["ran_ns"].as_i64().unwrap())).collect()
    };
    const MS: i64 = 1_000_000;
    let [(Some(began), ran)] = by("syscall", "pong")[..] else { panic!("{report}") };
    assert!(began < 0 && ran > 2000 * MS, "{began} {ran}");
    let [(Some(began), ran), (never, 0)] = by("syscall", "ping")[..] else { panic!("{}", report["loads"]) };
    assert!((-1000 * MS..0).contains(&began) && ran >= 1990 * MS, "{began} {ran}");
    assert_eq!(never, None);
    let [(Some(began), ran)] = by("sleep 60", "ping")[..] else { panic!("{}", report["loads"]) };
    assert!((400 * MS..1500 * MS).contains(&began), "{began}");
    assert!((300 * MS..1500 * MS).contains(&ran), "{ran}");
}

/// Test: a trial whose load failed is invalid, because the load may have disturbed the ends less than the study
/// requests.
#[test]
fn a_load_that_fails_or_ends_early_makes_the_trial_invalid() {
    let mut texts = String::new();
    for command in ["[sh, -c, \"echo no such device >&2; exit 7\"]", "[\"true\"]"] {
        let bench = Bench::new();
        let (code, _) =
            exit_and_stderr(&bench.run(&study(500, &format!("[{{ run: {{ command: {command} }} }}]")), &[]));
        assert_eq!(code, 6);
        let report = bench.report();
        assert_eq!(report["status"], "invalid");
        let warnings = report["warnings"].as_array().unwrap();
        let warning = warnings.iter().find(|w| w["code"] == "load_fell_short").unwrap();
        let (text, remedy) = (warning["text"].as_str().unwrap(), warning["remedy"].as_str().unwrap());
        let after = text.split("after ").nth(1).unwrap().split(" (").next().unwrap();
        texts.push_str(&format!("exit {code}\n{}. {remedy}\n", text.replace(after, "TIME")));
        // No sample is missing.
        assert_eq!(report["trials"][0]["status"], "invalid");
        let conditions = &report["conditions"][0];
        assert_eq!(conditions["counts"]["scheduled"].as_u64().unwrap_or(0), 500, "{conditions}");
    }
    insta::assert_snapshot!(texts);
}

#[test]
fn a_load_that_keeps_its_own_time_is_none_that_failed() {
    let bench = Bench::new();
    let loads = "[{ run: { command: [sleep, \"0.5\"] }, duration: 510 ms }]";
    let (code, text) = exit_and_stderr(&bench.run(&study(500, loads), &[]));
    assert_eq!(code, 0, "{text}");
    let report = bench.report();
    assert_eq!(load(&report, 0)["failed"], Value::Null);
}

#[test]
fn loads_that_cannot_start_are_refused_before_anything_is_measured() {
    let bench = Bench::new();
    let mut texts = String::new();
    let all = "{ policy: rr, priority: 5, cpus: \"0-1\" }";
    let topic = |keys: &str| format!("[{{ run: {{ topic: {{ payload: 1 kB, rate: 10 Hz, {keys} }} }} }}]");
    for load in [
        "[{ run: { command: [no-such-program-here, -x] } }]",
        &format!("[{{ run: cpu, scheduling: {all} }}]"),
        &topic("qos: { reliability: reliable }"),
        &topic("jitter: 100 ms"),
    ] {
        let (code, text) = exit_and_stderr(&bench.run(&study(100, load), &[]));
        let text = text.replace(&bench.dir.path().display().to_string(), "DIR");
        texts.push_str(&format!("exit {code}\n{text}\n"));
    }
    if tailbound_host_cpus() != 2 {
        // The second message names the CPUs of this machine.
        println!("skipped: the snapshot is that of two CPUs");
        return;
    }
    insta::assert_snapshot!(texts);
}

fn tailbound_host_cpus() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

#[test]
fn a_real_time_load_has_its_policy_and_its_limits() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let load_keys =
        "[{ run: cpu, scheduling: { policy: rr, priority: 30, cpus: \"0\" }, start: 200 ms, duration: 700 ms }]";
    let study = bench.study(&study(600, load_keys));
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_measuring(child.id() as i32, "ping");
    let deadline = Instant::now() + Duration::from_secs(10);
    let (mut policy, mut limits) = (String::new(), String::new());
    while Instant::now() < deadline && policy != "SCHED_RR" {
        if let Some(pid) =
            descendants(child.id() as i32).into_iter().find(|p| arguments(*p).contains("agent --load cpu"))
        {
            policy = first_policy_line(pid);
            limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{text}");
    assert_eq!(policy, "SCHED_RR");
    let limit = limits.lines().find(|l| l.starts_with("Max realtime timeout")).unwrap();
    assert!(limit.contains("5700000"), "duration and 5 s: {limit}");
    let report = bench.report();
    assert_eq!(load(&report, 0)["policy"], "rr 30");
}

/// Test: after all processes of a run were killed, `lab cleanup` also ends a load that left its process group.
#[test]
fn nothing_of_a_killed_run_goes_on() {
    let bench = Bench::new();
    let mark = format!("tailbound-test-load-{}", std::process::id());
    let loads = format!(
        "[{{ run: cpu }}, {{ run: {{ command: [sh, -c, \"setsid sh -c 'sleep 120; true {mark}' & sleep 121\"] }} }}]"
    );
    let study = bench.study(&study(5000, &loads));
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let supervisor = wait_for_measuring(child.id() as i32, "ping");
    let deadline = Instant::now() + Duration::from_secs(10);
    // The shell, and the process that the shell started in another session.
    while living(&mark).len() < 3 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(child.id() as i32);
    kill(supervisor);
    child.wait().unwrap();
    assert!(!living(&mark).is_empty(), "the load that left its group is the point of this test");
    let cleaned = bench.tailbound().args(["lab", "cleanup"]).output().unwrap();
    assert!(cleaned.status.success(), "{}", String::from_utf8_lossy(&cleaned.stderr));
    let left = living(&mark);
    assert!(left.is_empty(), "{:?}", left.iter().map(|p| arguments(*p)).collect::<Vec<_>>());
}
