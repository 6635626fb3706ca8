//! Writes an artificial record and its report in every form, for manual checks and for the browser test.
//!
//! Usage: `cargo run -p tailbound-report --example demo -- DIR [RECORD]`. If RECORD is given, the example writes the
//! report of that record and makes no artificial record.

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::path::Path;
use support::{Given, GivenTrial, Random};
use tailbound_model::*;
use tailbound_record::*;

const SLOTS: u64 = 6_000;
const PERIOD: i64 = 1_000_000;

/// Id of the trial of the demonstration record to which a load and a step of the clock are added.
const DISTURBED: usize = 7;

fn main() {
    let dir = std::env::args().nth(1).expect("a directory");
    let dir = Path::new(&dir);
    std::fs::create_dir_all(dir).expect("the directory is made");
    let record = match std::env::args().nth(2) {
        Some(given) => Record::open(Path::new(&given)).expect("the record opens"),
        None => made_up(&dir.join("record")),
    };
    let report = tailbound_report::analyse(&record).expect("the record is analysed");
    let write = |name: &str, text: String| std::fs::write(dir.join(name), text).expect("the file is written");
    write("report.json", tailbound_report::render_json(&report));
    write("report.csv", tailbound_report::render_csv(&report));
    write("report.md", tailbound_report::render_markdown(&report));
    write("report.html", tailbound_report::render_html(&report));
    print!("{}", tailbound_report::render_terminal(&report, 80, false));
}

fn made_up(record: &Path) -> Record {
    if record.exists() {
        std::fs::remove_dir_all(record).expect("the old record is removed");
    }
    support::write(record, &conditions(), raise)
}

fn conditions() -> Vec<Given> {
    let mut random = Random(20_260_101);
    let mut all = Vec::new();
    for (driver, base) in [("udp", 10_000.0), ("cyclonedds", 23_000.0)] {
        for payload in [64, 1_024, 8_192, 60_000] {
            let wire = base + payload as f64 * if payload > 1_500 { 2.6 } else { 1.1 };
            let trials = (0..2).map(|_| trial(&mut random, wire, driver == "udp" && payload == 60_000)).collect();
            all.push(Given { driver, payload, rate: Rate::Period(Nanos(PERIOD)), trials });
        }
    }
    // One trial of the last condition is invalid.
    if let Some(trial) = all.last_mut().and_then(|c| c.trials.last_mut()) {
        trial.status = TrialStatus::Invalid;
    }
    all
}

fn trial(random: &mut Random, wire: f64, lossy: bool) -> GivenTrial {
    let (mut slots, mut echoes) = (Vec::new(), Vec::new());
    let mut stall = 0;
    for seq in 0..SLOTS + 500 {
        if random.next().is_multiple_of(900) {
            stall = (1_500_000.0 * random.unit().powi(3)) as i64 + wire as i64;
        }
        stall = (stall - PERIOD / 2).max(0);
        let body = |random: &mut Random| {
            let heavy = if random.next().is_multiple_of(60) { 1.0 + 4.0 * random.unit() } else { 1.0 };
            0.8 + 0.25 * random.unit() * heavy + 0.15 * random.unit()
        };
        let out = (0.42 * wire * body(random)) as i64;
        let turnaround = (0.16 * wire * body(random)) as i64;
        let back = (0.42 * wire * body(random)) as i64 + stall;
        let late = 900 + (3_000.0 * random.unit().powi(4)) as i64;
        let (mut row, echo) = support::slot(seq, PERIOD, late, [out, turnaround, back]);
        row.send_end_ns += (900.0 * random.unit()) as i64 + stall / 3;
        row.warm_up = seq < 500;
        if lossy && random.next().is_multiple_of(400) {
            support::lose(&mut row);
        } else {
            echoes.push(echo);
        }
        slots.push(row);
    }
    GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None }
}

/// Adds a load and a step of the clock to the middle of the trial [`DISTURBED`] of the demonstration record.
fn disturb(manifest: &mut Manifest) {
    let Some(end) = manifest.trials.get_mut(DISTURBED).and_then(|t| t.ends.get_mut("ping")) else { return };
    let at = |ms: i64| support::T0 + ms * 1_000_000;
    end.invalid_windows.push(InvalidWindow { from_ns: at(5_000), to_ns: at(5_500), step_ns: 40_000_000 });
    end.loads.push(LoadDone {
        run: "cpu".into(),
        at: "ping".into(),
        policy: "fifo 90".into(),
        cpus: "1".into(),
        began_ns: Some(at(2_000)),
        ended_ns: Some(at(4_000)),
        cpu_ns: 1_900_000_000,
        ..LoadDone::default()
    });
}

fn raise(manifest: &mut Manifest) {
    disturb(manifest);
    let last = manifest.trials.len() - 1;
    let text = "the pong's thread `recv` ran with other instead of the requested fifo 80 (no CAP_SYS_NICE)";
    let remedy = "Run as root, or give the binary CAP_SYS_NICE.";
    let policy = Warning::new("policy_not_as_asked", Severity::Invalid, text, remedy);
    manifest.warnings.push(policy.at_trial(last).at_end("pong"));
    let text = "pages were not locked into memory (RLIMIT_MEMLOCK is 8 MiB); a page fault may show as a late message";
    manifest.warnings.push(Warning::new(
        "memory_not_locked",
        Severity::Warning,
        text,
        "Raise it: `ulimit -l unlimited`.",
    ));
    let text = "CPU 0 and CPU 1 may enter deep idle states";
    manifest.warnings.push(Warning::new("idle_states", Severity::Note, text, ""));
}
