//! Tests that kill processes of a run at any moment: the record stays readable and has every sample up to the kill, and
//! no process, interface, namespace or journal is left.

use crate::support::processes::{descendants, kill, wait_for_measuring};
use crate::support::{Bench, exit_and_stderr};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tailbound_record::{Record, Status};

const STUDY: &str = "study: faults\nquestion: What is left after a kill?\n\
    measure: { ping-pong: { slots: 1500, warm_up: 10, timeout: 200 ms } }\nrate: 2 kHz\npath: veth\nplace: netns\n\
    factors: { driver: [udp, cyclonedds] }\nrepeat: 1\nattribution: auto\n";

/// Processes of the runs of one test: process id and command line. Unnamed network namespaces and their interfaces
/// exist only while such a process runs.
///
/// Every process of a run inherits the state directory of the run, which each test has for itself. A process whose
/// environment cannot be read belongs to the test if it runs the binary `tailbound`.
fn ours(bench: &Bench) -> Vec<(i32, String)> {
    let binary = fs::canonicalize(env!("CARGO_BIN_EXE_tailbound")).unwrap();
    let state = format!("TAILBOUND_STATE_DIR={}", bench.path("state").display());
    let is_ours = |pid: i32| match fs::read(format!("/proc/{pid}/environ")) {
        Ok(variables) => variables.split(|b| *b == 0).any(|variable| variable == state.as_bytes()),
        Err(_) => fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|e| e == binary),
    };
    processes().into_iter().filter(|(pid, _)| is_ours(*pid)).collect()
}

fn processes() -> Vec<(i32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|e| {
            let pid: i32 = e.ok()?.file_name().to_str()?.parse().ok()?;
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line: Vec<_> = line.split(|b| *b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect();
            Some((pid, line.join(" ")))
        })
        .collect()
}

fn interfaces() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/net/dev").unwrap();
    text.lines().skip(2).filter_map(|l| Some(l.split_once(':')?.0.trim().to_owned())).collect()
}

/// Names of all named network namespaces of the host.
fn named_namespaces() -> BTreeSet<String> {
    fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect()
}

fn start(bench: &Bench) -> Child {
    let study = bench.study(STUDY);
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().expect("the binary starts")
}

/// Checks the state after a kill: `tailbound lab cleanup` succeeds, no process, interface, namespace or journal is
/// left, and the record, if there is one, can be opened and is incomplete.
fn nothing_left(bench: &Bench, run_started: bool, before: (&BTreeSet<String>, &BTreeSet<String>), what: &str) {
    let output = bench.tailbound().args(["lab", "cleanup"]).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 0, "{what}: lab cleanup: {text}{}", String::from_utf8_lossy(&output.stdout));
    let listed = bench.tailbound().args(["lab", "list"]).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).starts_with("nothing"), "{what}: {listed:?}");
    assert_eq!(&interfaces(), before.0, "{what}: interfaces");
    let record = bench.path("record");
    if record.exists() {
        let opened = Record::open(&record).unwrap_or_else(|e| panic!("{what}: {e}"));
        let report = bench.tailbound().arg("report").arg(&record).output().unwrap();
        let expected = if opened.status() == Status::Valid { 0 } else { 6 };
        assert_eq!(exit_and_stderr(&report).0, expected, "{what}: {}", exit_and_stderr(&report).1);
    } else {
        assert!(!run_started, "{what}: no record");
    }
    let left: Vec<_> = fs::read_dir(bench.dir.path())
        .unwrap()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|n| n.contains(".partial-"))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "{what}: partial records");
    assert_eq!(&named_namespaces(), before.1, "{what}: named network namespaces");
    assert_eq!(ours(bench), Vec::new(), "{what}: processes, and with them network namespaces");
}

#[test]
fn only_processes_of_the_own_run_are_counted() {
    let (one, two) = (Bench::new(), Bench::new());
    let hold = |bench: &Bench| {
        let mut command = bench.tailbound();
        command.args(["agent", "hold", "--socket"]).arg(bench.path("socket")).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !bench.path("socket").exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    };
    let (mut first, mut second) = (hold(&one), hold(&two));
    let pids = |bench: &Bench| ours(bench).into_iter().map(|(pid, _)| pid).collect::<Vec<_>>();
    let seen = [pids(&one), pids(&two)];
    let expected = [first.id(), second.id()].map(|pid| vec![pid as i32]);
    for child in [&mut first, &mut second] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(seen, expected);
    assert_eq!([pids(&one), pids(&two)], [Vec::<i32>::new(), Vec::new()], "ended processes are not counted");
}

/// Draws the next random number (SplitMix64).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn seed() -> u64 {
    let given = std::env::var("TAILBOUND_TEST_SEED").ok().and_then(|s| s.parse().ok());
    given.unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64
    })
}

#[test]
fn the_controller_killed_at_any_moment_leaves_nothing() {
    kill_the_controller(6);
}

#[test]
fn long_the_controller_killed_at_any_moment_leaves_nothing() {
    kill_the_controller(30);
}

/// Kills runs at random moments. The time of a run is divided into equal parts, one for each kill, so that a small
/// number of kills covers all phases.
fn kill_the_controller(kills: u32) {
    let (before_interfaces, before_namespaces) = (interfaces(), named_namespaces());
    let before = (&before_interfaces, &before_namespaces);
    // The time of a run without a kill is the range of the random moments.
    let bench = Bench::new();
    let began = Instant::now();
    let status = start(&bench).wait().unwrap();
    let whole = began.elapsed();
    assert!(status.success(), "the run without a kill: {status}");
    nothing_left(&bench, true, before, "no kill");
    let mut state = seed();
    println!("TAILBOUND_TEST_SEED={state}; a whole run takes {whole:?}");
    let mut with_samples = 0;
    for number in 0..kills {
        let part = whole / kills;
        let at = part * number + Duration::from_nanos(draw(&mut state) % part.as_nanos() as u64);
        let bench = Bench::new();
        let mut child = start(&bench);
        std::thread::sleep(at);
        kill(child.id() as i32);
        child.wait().unwrap();
        nothing_left(&bench, false, before, &format!("kill {number} after {at:?}"));
        with_samples += u32::from(segments(&bench.path("record")) > 0);
    }
    println!("{with_samples} of {kills} killed runs left samples");
    assert!(with_samples > kills / 4, "only {with_samples} of {kills} killed runs left samples");
}

fn segments(record: &Path) -> usize {
    let trials = fs::read_dir(record.join("samples")).into_iter().flatten().flatten();
    trials.map(|t| fs::read_dir(t.path()).into_iter().flatten().count()).sum()
}

/// Test: kills one run right after each line that the controller writes to its journal.
#[test]
fn the_controller_killed_after_each_journal_entry_leaves_nothing() {
    let (before_interfaces, before_namespaces) = (interfaces(), named_namespaces());
    let before = (&before_interfaces, &before_namespaces);
    let mut kills = 0;
    for entry in 1..40 {
        let bench = Bench::new();
        let mut child = start(&bench);
        let journal = bench.path("state/journal");
        let lines = || {
            let files = fs::read_dir(&journal).into_iter().flatten().flatten();
            files.map(|f| fs::read_to_string(f.path()).unwrap_or_default().lines().count()).sum::<usize>()
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut reached = false;
        while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
            if lines() > entry {
                reached = true;
                break;
            }
        }
        kill(child.id() as i32);
        child.wait().unwrap();
        nothing_left(&bench, false, before, &format!("kill after journal line {entry}"));
        if !reached {
            break;
        }
        kills += 1;
    }
    println!("killed after each of {kills} journal lines");
    assert!(kills >= 8, "only {kills} journal lines were seen");
}

/// Test: kills a measuring process and a supervisor; every sample up to the kill is in the record.
#[test]
fn an_agent_killed_in_mid_run_loses_no_sample() {
    for victim in ["measuring", "supervisor"] {
        for end in ["ping", "pong"] {
            let bench = Bench::new();
            let study = "study: kill\nquestion: q\nmeasure: { ping-pong: { slots: 4000, warm_up: 0, timeout: 100 ms } }\n\
                rate: 1 kHz\ndriver: udp\npath: veth\nplace: netns\nattribution: auto\n";
            let study = bench.study(study);
            let mut command = bench.tailbound();
            command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
            let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            // The ping end sends for four seconds; the kill comes in the middle.
            let supervisor = wait_for_measuring(child.id() as i32, end);
            std::thread::sleep(Duration::from_millis(1500));
            let measuring = descendants(supervisor);
            kill(if victim == "supervisor" { supervisor } else { measuring[0] });
            let output = child.wait_with_output().unwrap();
            let (code, text) = exit_and_stderr(&output);
            assert_eq!(code, 6, "{victim} of {end}: {text}");
            assert!(text.contains("was lost in mid-trial"), "{victim} of {end}: {text}");
            let report = bench.report();
            assert_eq!(report["status"], "invalid");
            let record = Record::open(&bench.path("record")).unwrap();
            let mut rows = 0;
            let mut answered = 0;
            record
                .slots(0, &mut |batch| {
                    rows += batch.len();
                    answered += batch.receive_ns.iter().filter(|t| **t != tailbound_model::NO_TIME).count();
                })
                .unwrap();
            println!("{victim} of {end} killed: {rows} slots, {answered} answered");
            assert!(answered > 200, "{victim} of {end}: only {answered} answers are in the record");
            if end == "ping" {
                // No row before the kill is missing: the rows end where the sender ended.
                assert!(answered + 20 >= rows, "{victim} of {end}: {answered} of {rows} answered");
                assert!(rows < 4000, "{victim} of {end}: the kill came too late to prove anything");
            }
        }
    }
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    let (one, two) = (Bench::new(), Bench::new());
    let study = STUDY.replace("slots: 1500", "slots: 1000");
    let spawn = |bench: &Bench| {
        let study = bench.study(&study);
        let mut command = bench.tailbound();
        command.env("TAILBOUND_STATE_DIR", one.path("state")).env("TAILBOUND_LOG", "debug");
        command.args(["run", "--allow-concurrent"]).arg(study).arg("--out").arg(bench.path("record"));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (first, second) = (spawn(&one), spawn(&two));
    // A clean-up in the middle changes nothing for either run.
    two.wait_for_event("measuring begins", 1);
    let cleanup = one.tailbound().args(["lab", "cleanup"]).output().unwrap();
    assert_eq!(exit_and_stderr(&cleanup).0, 0);
    for child in [first, second] {
        let output = child.wait_with_output().unwrap();
        assert_eq!(exit_and_stderr(&output).0, 0, "{}", exit_and_stderr(&output).1);
    }
    for bench in [&one, &two] {
        assert_eq!(bench.report()["conditions"][0]["counts"]["scheduled"].as_u64(), Some(1000));
    }
}

#[test]
fn ctrl_c_keeps_the_samples_and_marks_the_record_incomplete() {
    let bench = Bench::new();
    let mut child = start(&bench);
    wait_for_measuring(child.id() as i32, "ping");
    std::thread::sleep(Duration::from_millis(900));
    // SAFETY: a process of this test.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(6));
    let record = Record::open(&bench.path("record")).unwrap();
    assert_eq!(record.status(), Status::Incomplete);
    assert!(segments(&bench.path("record")) > 0);
    assert!(record.manifest.warnings.iter().any(|w| w.problem.code == "interrupted"));
    // The stop loses no message: messages that were not answered yet have no row.
    let counts = bench.report()["conditions"][0]["counts"].clone();
    assert_eq!(counts["lost"].as_u64(), Some(0), "{counts}");
    assert!(counts["answered"].as_u64().unwrap() > 300, "{counts}");
}

#[test]
fn a_signal_at_any_moment_ends_the_run_in_order() {
    interrupt(3);
}

#[test]
fn long_a_signal_at_any_moment_ends_the_run_in_order() {
    interrupt(12);
}

/// Sends signals to runs at random moments. The trials are short, so that most signals arrive between two trials or
/// while a lab is built, and more trials are planned than a run can finish before the last signal.
fn interrupt(signals: usize) {
    let mut state = seed();
    println!("TAILBOUND_TEST_SEED={state}");
    let mtus: Vec<String> = (1500..1600).map(|mtu| mtu.to_string()).collect();
    let study = format!(
        "study: signal\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 1, warm_up: 0, timeout: 1 ms }} }}\nrate: 10 kHz\n\
         driver: udp\npath: veth\nplace: netns\nfactors: {{ path.mtu: [{}] }}\n",
        mtus.join(", ")
    );
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP].into_iter().cycle().take(signals) {
        let bench = Bench::new();
        let study = bench.study(&study);
        let mut command = bench.tailbound();
        command.arg("run").arg(study).arg("--out").arg(bench.path("record")).process_group(0);
        // Under nohup the tests ignore SIGHUP, and without this reset the run would ignore it too.
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGHUP, libc::SIG_DFL);
                Ok(())
            })
        };
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let journal = bench.path("state/journal");
        let deadline = Instant::now() + Duration::from_secs(20);
        while fs::read_dir(&journal).map_or(0, |d| d.count()) == 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(draw(&mut state) % 1_000_000));
        // SAFETY: a process of this test.
        unsafe { libc::kill(child.id() as i32, signal) };
        let output = child.wait_with_output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        assert_eq!(code, 6, "signal {signal}: {text}");
        assert!(text.contains("the run was interrupted"), "signal {signal}: {text}");
        assert_eq!(fs::read_dir(&journal).unwrap().count(), 0, "signal {signal}: a journal is left: {text}");
    }
}

#[test]
fn a_full_disk_is_named_and_leaves_a_readable_record() {
    let bench = Bench::new();
    let small = bench.path("small");
    fs::create_dir(&small).unwrap();
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=300k", "tmpfs"])
        .arg(&small)
        .output()
        .expect("mount runs");
    if !mount.status.success() {
        println!(
            "skipped: a small file system cannot be mounted here: {}",
            String::from_utf8_lossy(&mount.stderr).trim()
        );
        return;
    }
    let study = bench.study(&STUDY.replace("slots: 1500", "slots: 15000").replace("2 kHz", "20 kHz"));
    let output = bench.tailbound().arg("run").arg(study).arg("--out").arg(small.join("record")).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    let opened = Record::open(&small.join("record")).map(|r| r.status());
    let unmounted = std::process::Command::new("umount").arg(&small).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("free some space"), "{text}");
    assert_eq!(opened.unwrap(), Status::Incomplete);
}

#[test]
fn an_agent_killed_at_any_moment_ends_the_run_in_order() {
    kill_agents(4);
}

#[test]
fn long_an_agent_killed_at_any_moment_ends_the_run_in_order() {
    kill_agents(12);
}

/// Kills agents and measuring processes at random moments, in every phase: the controller ends with the right exit
/// code, the record is readable, and nothing is left.
fn kill_agents(kills: u64) {
    let (before_interfaces, before_namespaces) = (interfaces(), named_namespaces());
    let before = (&before_interfaces, &before_namespaces);
    let mut state = seed();
    println!("TAILBOUND_TEST_SEED={state}");
    let mut codes = Vec::new();
    for number in 0..kills {
        let part = 2000 / kills;
        let at = Duration::from_millis(50 + part * number + draw(&mut state) % part);
        let bench = Bench::new();
        let mut child = start(&bench);
        std::thread::sleep(at);
        let victims = descendants(child.id() as i32);
        if let Some(victim) = victims.get((draw(&mut state) % victims.len().max(1) as u64) as usize) {
            kill(*victim);
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => panic!("kill {number} after {at:?}: the controller hangs"),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let code = status.code().expect("the controller is not killed along");
        assert!([0, 4, 6].contains(&code), "kill {number} after {at:?}: exit {code}");
        codes.push(code);
        nothing_left(&bench, false, before, &format!("kill {number} of an agent after {at:?}"));
    }
    println!("exit codes {codes:?}");
    assert!(codes.iter().any(|c| *c != 0), "no kill hit a running trial: {codes:?}");
}
