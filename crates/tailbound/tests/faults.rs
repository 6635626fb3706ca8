//! Processes killed at any moment: the record stays readable with every sample so far, and nothing is left behind.
#![cfg(feature = "system-tests")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::processes::{descendants, kill, wait_for_measuring};
use support::{Bench, told};
use tailbound_record::{Record, Status};

const STUDY: &str = "study: faults\nquestion: What is left after a kill?\n\
    measure: { ping-pong: { slots: 1500, warm_up: 10, timeout: 200 ms } }\nrate: 2 kHz\npath: veth\nplace: netns\n\
    factors: { driver: [udp, cyclonedds] }\nrepeat: 1\n";

/// These tests look at all processes of the binary, so they go one after the other.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Processes that run the binary. Unnamed network namespaces, and the interfaces in them, live only as long as these.
fn ours() -> Vec<(i32, String)> {
    let binary = fs::canonicalize(env!("CARGO_BIN_EXE_tailbound")).unwrap();
    processes()
        .into_iter()
        .filter(|(pid, _)| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|e| e == binary))
        .collect()
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

/// Named network namespaces of the host.
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

/// After the kill: clean-up succeeds, nothing is left, the record (if it came to one) opens and says incomplete.
fn nothing_left(bench: &Bench, run_started: bool, before: (&BTreeSet<String>, &BTreeSet<String>), what: &str) {
    let output = bench.tailbound().args(["lab", "cleanup"]).output().unwrap();
    let (code, text) = told(&output);
    assert_eq!(code, 0, "{what}: lab cleanup: {text}{}", String::from_utf8_lossy(&output.stdout));
    let listed = bench.tailbound().args(["lab", "list"]).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).starts_with("nothing"), "{what}: {listed:?}");
    assert_eq!(&interfaces(), before.0, "{what}: interfaces");
    let record = bench.path("record");
    if record.exists() {
        let opened = Record::open(&record).unwrap_or_else(|e| panic!("{what}: {e}"));
        let report = bench.tailbound().arg("report").arg(&record).output().unwrap();
        let expected = if opened.status() == Status::Valid { 0 } else { 6 };
        assert_eq!(told(&report).0, expected, "{what}: {}", told(&report).1);
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
    assert_eq!(ours(), Vec::new(), "{what}: processes, and with them network namespaces");
}

/// SplitMix64.
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
    let _alone = alone();
    let (before_interfaces, before_namespaces) = (interfaces(), named_namespaces());
    let before = (&before_interfaces, &before_namespaces);
    // How long a whole run takes here decides where the kills fall.
    let bench = Bench::new();
    let began = Instant::now();
    let status = start(&bench).wait().unwrap();
    let whole = began.elapsed();
    assert!(status.success(), "the run without a kill: {status}");
    nothing_left(&bench, true, before, "no kill");
    let (mut state, kills) = (seed(), 30);
    println!("TAILBOUND_TEST_SEED={state}; a whole run takes {whole:?}");
    let mut with_samples = 0;
    for number in 0..kills {
        let at = Duration::from_nanos(draw(&mut state) % whole.as_nanos() as u64);
        let bench = Bench::new();
        let mut child = start(&bench);
        std::thread::sleep(at);
        kill(child.id() as i32);
        child.wait().unwrap();
        nothing_left(&bench, false, before, &format!("kill {number} after {at:?}"));
        with_samples += usize::from(segments(&bench.path("record")) > 0);
    }
    println!("{with_samples} of {kills} killed runs left samples");
    assert!(with_samples > kills / 4, "only {with_samples} of {kills} killed runs left samples");
}

fn segments(record: &Path) -> usize {
    let trials = fs::read_dir(record.join("samples")).into_iter().flatten().flatten();
    trials.map(|t| fs::read_dir(t.path()).into_iter().flatten().count()).sum()
}

/// One kill right after each entry of the journal.
#[test]
fn the_controller_killed_after_each_journal_entry_leaves_nothing() {
    let _alone = alone();
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

/// A killed measuring process, and a killed supervisor: every sample up to the kill is in the record.
#[test]
fn an_agent_killed_in_mid_run_loses_no_sample() {
    let _alone = alone();
    for victim in ["measuring", "supervisor"] {
        for end in ["ping", "pong"] {
            let bench = Bench::new();
            let study = "study: kill\nquestion: q\nmeasure: { ping-pong: { slots: 4000, warm_up: 0, timeout: 100 ms } }\n\
                rate: 1 kHz\ndriver: udp\npath: veth\nplace: netns\n";
            let study = bench.study(study);
            let mut command = bench.tailbound();
            command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
            let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            // The ping sends from 50 ms after `go` on; the kill falls in the middle of its four seconds.
            let supervisor = wait_for_measuring(child.id() as i32, end);
            std::thread::sleep(Duration::from_millis(1500));
            let measuring = descendants(supervisor);
            kill(if victim == "supervisor" { supervisor } else { measuring[0] });
            let output = child.wait_with_output().unwrap();
            let (code, text) = told(&output);
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
                // Nothing is missing before the kill: rows end where the sender ended.
                assert!(answered + 20 >= rows, "{victim} of {end}: {answered} of {rows} answered");
                assert!(rows < 4000, "{victim} of {end}: the kill came too late to prove anything");
            }
        }
    }
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    let _alone = alone();
    let (one, two) = (Bench::new(), Bench::new());
    let study = STUDY.replace("slots: 1500", "slots: 1000");
    let spawn = |bench: &Bench| {
        let study = bench.study(&study);
        let mut command = bench.tailbound();
        command.env("TAILBOUND_STATE_DIR", one.path("state"));
        command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (first, second) = (spawn(&one), spawn(&two));
    // A clean-up in the middle touches neither.
    std::thread::sleep(Duration::from_millis(700));
    let cleanup = one.tailbound().args(["lab", "cleanup"]).output().unwrap();
    assert_eq!(told(&cleanup).0, 0);
    for child in [first, second] {
        let output = child.wait_with_output().unwrap();
        assert_eq!(told(&output).0, 0, "{}", told(&output).1);
    }
    for bench in [&one, &two] {
        assert_eq!(bench.report()["conditions"][0]["counts"]["scheduled"].as_u64(), Some(1000));
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_so() {
    let _alone = alone();
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
    assert!(record.manifest.warnings.iter().any(|w| w.code == "interrupted"));
    // The stop itself loses nothing: what was under way when it came is in no row.
    let counts = bench.report()["conditions"][0]["counts"].clone();
    assert_eq!(counts["lost"].as_u64(), Some(0), "{counts}");
    assert!(counts["answered"].as_u64().unwrap() > 300, "{counts}");
}

/// Short trials, so that most signals fall between two of them or into the building of a lab; more of them than can be
/// run before the last signal comes.
#[test]
fn a_signal_at_any_moment_ends_the_run_in_order() {
    let _alone = alone();
    let mut state = seed();
    println!("TAILBOUND_TEST_SEED={state}");
    let mtus: Vec<String> = (1500..1600).map(|mtu| mtu.to_string()).collect();
    let study = format!(
        "study: signal\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 1, warm_up: 0, timeout: 1 ms }} }}\nrate: 10 kHz\n\
         driver: udp\npath: veth\nplace: netns\nfactors: {{ path.mtu: [{}] }}\n",
        mtus.join(", ")
    );
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP].into_iter().cycle().take(12) {
        let bench = Bench::new();
        let study = bench.study(&study);
        let mut command = bench.tailbound();
        command.arg("run").arg(study).arg("--out").arg(bench.path("record")).process_group(0);
        // Under nohup the tests ignore SIGHUP, and so would the run.
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
        let (code, text) = told(&output);
        assert_eq!(code, 6, "signal {signal}: {text}");
        assert!(text.contains("the run was interrupted"), "signal {signal}: {text}");
        assert_eq!(fs::read_dir(&journal).unwrap().count(), 0, "signal {signal}: a journal is left: {text}");
    }
}

#[test]
fn a_full_disk_is_named_and_leaves_a_readable_record() {
    let _alone = alone();
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
    let (code, text) = told(&output);
    let opened = Record::open(&small.join("record")).map(|r| r.status());
    let unmounted = std::process::Command::new("umount").arg(&small).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("free some space"), "{text}");
    assert_eq!(opened.unwrap(), Status::Incomplete);
}

/// Agents and measuring processes killed at drawn moments, in every phase: the controller ends by itself with a fitting exit
/// code, the record is readable, nothing is left.
#[test]
fn an_agent_killed_at_any_moment_ends_the_run_in_order() {
    let _alone = alone();
    let (before_interfaces, before_namespaces) = (interfaces(), named_namespaces());
    let before = (&before_interfaces, &before_namespaces);
    let mut state = seed();
    println!("TAILBOUND_TEST_SEED={state}");
    let mut codes = Vec::new();
    for number in 0..12 {
        let at = Duration::from_millis(50 + draw(&mut state) % 2000);
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
