//! Tests of `collect: live`: trials that have more rows than their sample memory, and drains (the threads that store
//! rows) that are stopped or killed.

use crate::support::processes::{descendants, kill, wait_for_measuring};
use crate::support::{Bench, exit_and_stderr, succeeded};
use std::process::{Child, Stdio};
use std::time::Duration;
use tailbound_model::{NO_TIME, Outcome};
use tailbound_record::{Record, Source, Status};

/// Number of cells of the smallest ring of sample memory for the test's rate and timeout: the ring has room for the
/// slots of 2.3 s.
const RING: u64 = 32_768;
const RATE_HZ: u64 = 14_000;
const PERIOD_NS: i64 = 71_429;

/// A study with `collect: live`. Both ends run on one CPU, and the drain on the other CPU.
fn study(slots: u64) -> String {
    format!(
        "study: live\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {slots}, warm_up: 0, timeout: 10 ms }} }}\n\
         rate: {RATE_HZ} Hz\ndriver: udp\npath: loopback\nplace: process\ncollect: live\n\
         ends: {{ ping: {{ cpus: \"0\" }}, pong: {{ cpus: \"0\" }} }}\n"
    )
}

fn has_two_cpus() -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        println!("skipped: draining needs a second CPU");
    }
    cpus >= 2
}

fn start(bench: &Bench, slots: u64) -> Child {
    let study = bench.study(&study(slots));
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Numbers of rows of samples of a record. [`check`] counts the rows, and checks the schedule and the order of the
/// timestamps of every row.
#[derive(Debug, Default)]
struct Checked {
    rows: u64,
    answered: u64,
    echoed: u64,
    lost: u64,
}

fn check(bench: &Bench) -> Checked {
    let record = Record::open(&bench.path("record")).unwrap();
    let t0 = record.manifest.trials[0].t0_ns;
    let mut checked = Checked::default();
    let mut last_wake = 0;
    let mut first_intended = None;
    record
        .slots(0, &mut |batch| {
            for i in 0..batch.len() {
                let slot = checked.rows;
                assert_eq!(batch.seq[i], slot, "a row is missing or doubled");
                let first = *first_intended.get_or_insert(batch.intended_ns[i]);
                let drift = (batch.intended_ns[i] - first - slot as i64 * PERIOD_NS).abs();
                assert!(drift <= slot as i64, "slot {slot} was due {drift} ns off the schedule");
                assert!(batch.wake_ns[i] >= batch.intended_ns[i] && batch.wake_ns[i] >= last_wake, "slot {slot}");
                last_wake = batch.wake_ns[i];
                let steps = [
                    batch.wake_ns[i],
                    batch.send_begin_ns[i],
                    batch.echo_in_ns[i],
                    batch.echo_begin_ns[i],
                    batch.echo_end_ns[i],
                ];
                let steps: Vec<_> = steps.into_iter().filter(|t| *t != NO_TIME).collect();
                assert!(steps.is_sorted(), "slot {slot}: {steps:?}");
                checked.echoed += u64::from(batch.echo_in_ns[i] != NO_TIME);
                if batch.receive_ns[i] != NO_TIME {
                    checked.answered += 1;
                    assert!(batch.receive_ns[i] > batch.echo_begin_ns[i].max(batch.send_begin_ns[i]), "slot {slot}");
                }
                checked.lost += u64::from(batch.outcome[i] == Outcome::Lost as u8);
                checked.rows += 1;
            }
        })
        .unwrap();
    if let (Some(t0), Some(first)) = (t0, first_intended) {
        assert_eq!(t0, first, "slot 0 is due at t0");
    }
    checked
}

fn segments(bench: &Bench, end: &str) -> usize {
    let files = std::fs::read_dir(bench.path("record/samples/0")).unwrap().flatten();
    files.filter(|f| f.file_name().to_string_lossy().starts_with(end)).count()
}

/// Test: a trial of ten minutes ends within seconds after a message that a stopped pong delays, in order, and all rows
/// until then are stored.
#[test]
fn a_trial_ends_early_at_the_message_of_a_stall() {
    if !has_two_cpus() {
        return;
    }
    for rate in ["500 Hz", "max"] {
        let bench = Bench::new();
        let study = bench.study(&format!(
            "study: live\nquestion: q\nmeasure: {{ ping-pong: {{ duration: 10 min, timeout: 500 ms }} }}\nrate: {rate}\n\
             driver: udp\npath: loopback\nplace: process\ncollect: live\n\
             ends: {{ ping: {{ cpus: \"0\" }}, pong: {{ cpus: \"0\" }} }}\n"
        ));
        let mut command = bench.tailbound();
        command.arg("run").arg(study).arg("--out").arg(bench.path("record")).args(["--until", "round_trip > 200 ms"]);
        let run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let pong = descendants(wait_for_measuring(run.id() as i32, "pong"))[0];
        std::thread::sleep(Duration::from_secs(2));
        // SAFETY: a process of a run that this test started.
        unsafe { libc::kill(pong, libc::SIGSTOP) };
        std::thread::sleep(Duration::from_millis(400));
        // SAFETY: as above.
        unsafe { libc::kill(pong, libc::SIGCONT) };
        let (code, err) = exit_and_stderr(&run.wait_with_output().unwrap());
        assert_eq!(code, 0, "{rate}: {err}");
        let record = Record::open(&bench.path("record")).unwrap();
        let found = record.manifest.until.clone().unwrap().found.expect("a message");
        assert!(found.value_ns.unwrap() > 200_000_000, "{rate}: {found:?}");
        assert_eq!(record.manifest.status, Status::Valid, "{rate}: {:?}", record.manifest.warnings);
        let (mut rows, mut next) = (0, 0);
        record
            .slots(0, &mut |batch| {
                rows += batch.len() as u64;
                for seq in &batch.seq {
                    assert_eq!(*seq, next, "{rate}: a row is missing or doubled");
                    next += 1;
                }
            })
            .unwrap();
        assert!(rows > found.row, "{rate}: {rows} rows, {found:?}");
        // Ten minutes at 500 Hz are 300,000 rows.
        assert!(rate == "max" || rows < 300_000, "{rate}: the trial did not end early: {rows} rows");
    }
}

#[test]
fn ten_times_the_ring_without_a_lost_row() {
    if !has_two_cpus() {
        return;
    }
    let slots = 10 * RING + 12_345;
    let bench = Bench::new();
    succeeded(&bench.run(&study(slots), &[]));
    let checked = check(&bench);
    assert_eq!(checked.rows, slots);
    // A row without an answer is a lost message.
    assert_eq!(checked.answered + checked.lost, slots, "{checked:?}");
    assert!(checked.answered > slots * 99 / 100, "{checked:?}");
    assert!(checked.echoed >= checked.answered, "{checked:?}");
    assert!(segments(&bench, "ping") > 1 && segments(&bench, "pong") > 1, "rows were stored at the end only");
    let report = bench.report();
    assert_eq!(report["conditions"][0]["counts"]["scheduled"].as_u64(), Some(slots));
    println!("{checked:?}");
}

/// Test: the drain is stopped until the ring is full; then the trial ends, the reason is reported, and no row is wrong.
#[test]
fn a_drain_that_is_stopped_makes_the_trial_invalid() {
    if !has_two_cpus() {
        return;
    }
    for end in ["ping", "pong"] {
        let bench = Bench::new();
        let slots = 100_000;
        let child = start(&bench, slots);
        let supervisor = wait_for_measuring(child.id() as i32, end);
        std::thread::sleep(Duration::from_millis(1200));
        // SAFETY: a process of this test.
        unsafe { libc::kill(supervisor, libc::SIGSTOP) };
        std::thread::sleep(Duration::from_millis(4000));
        // SAFETY: as above.
        unsafe { libc::kill(supervisor, libc::SIGCONT) };
        let output = child.wait_with_output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        assert_eq!(code, 6, "{end}: {text}");
        assert!(text.contains("were not stored in time"), "{end}: {text}");
        let checked = check(&bench);
        println!("{end}: {checked:?}");
        if end == "ping" {
            assert!(checked.rows > RING && checked.rows < slots, "{checked:?}");
        } else {
            assert_eq!(checked.rows, slots);
            assert!(checked.echoed < slots, "{checked:?}");
        }
        assert_eq!(bench.report()["status"], "invalid");
    }
}

/// Test: after a kill of any process, the record has every row up to the kill, and no row twice.
#[test]
fn a_kill_in_mid_drain_loses_no_row() {
    if !has_two_cpus() {
        return;
    }
    for victim in ["controller", "supervisor", "measuring"] {
        let bench = Bench::new();
        let child = start(&bench, 200_000);
        let supervisor = wait_for_measuring(child.id() as i32, "ping");
        // Longer than the ring keeps a slot, so that the drain has stored some rows.
        std::thread::sleep(Duration::from_millis(2500));
        match victim {
            "controller" => kill(child.id() as i32),
            "supervisor" => kill(supervisor),
            _ => kill(descendants(supervisor)[0]),
        }
        let output = child.wait_with_output().unwrap();
        if victim == "controller" {
            let output = bench.tailbound().args(["lab", "cleanup"]).output().unwrap();
            assert_eq!(exit_and_stderr(&output).0, 0, "{}", exit_and_stderr(&output).1);
        } else {
            assert_eq!(exit_and_stderr(&output).0, 6, "{victim}: {}", exit_and_stderr(&output).1);
        }
        let record = Record::open(&bench.path("record")).unwrap();
        let expected = if victim == "controller" { Status::Incomplete } else { Status::Invalid };
        assert_eq!(record.status(), expected, "{victim}");
        assert_eq!(record.manifest.trials[0].source, Source::Samples);
        let checked = check(&bench);
        println!("{victim} killed: {checked:?}");
        assert!(checked.rows > RATE_HZ * 2 && checked.rows < 200_000, "{victim}: {checked:?}");
        assert!(checked.answered + checked.lost >= checked.rows - 1, "{victim}: {checked:?}");
        assert!(checked.answered > checked.rows * 9 / 10, "{victim}: {checked:?}");
    }
}
