//! Tests of records with files that are missing, mixed up or damaged: the report names the damage, and shows the other
//! trials.

use crate::support::{Given, GivenTrial, slot};
#[allow(dead_code)]
use std::fs;
use std::path::Path;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

const PERIOD: i64 = 1_000_000;

fn trial(from: u64) -> GivenTrial {
    let (slots, echoes) = (from..from + 500).map(|seq| slot(seq, PERIOD, 900, [8_000, 4_000, 9_000])).unzip();
    GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None }
}

fn given(payload: u64, trials: Vec<GivenTrial>) -> Given {
    Given { driver: "udp", payload, rate: Rate::Period(Nanos(PERIOD)), trials }
}

/// Computes the report of two conditions with two trials each. Before that, `harm` damages the directory of the record.
fn harmed(harm: impl FnOnce(&Path)) -> Report {
    let conditions = [64, 1_024].map(|payload| given(payload, vec![trial(0), trial(0)]));
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    crate::support::write(&dir, &conditions, |_| ());
    harm(&dir);
    analyse(&Record::open(&dir).unwrap()).unwrap()
}

/// Codes of the report's warnings with their trials, and the status of the report.
fn codes(report: &Report) -> (Vec<(&str, Option<usize>)>, ReportStatus) {
    (report.warnings.iter().map(|w| (w.problem.code.as_str(), w.trial)).collect(), report.status)
}

fn told(report: &Report) -> String {
    let warnings: String = report
        .warnings
        .iter()
        .map(|w| format!("{}: {} {}\n", w.problem.code, w.problem.what, w.problem.remedy))
        .collect();
    let findings: String = report
        .findings
        .iter()
        .filter(|f| f.level == FindingLevel::Untrusted)
        .map(|f| format!("{}\n", f.text))
        .collect();
    warnings + &findings
}

/// Asserts that the report leaves out trial 0 and has the other three trials.
fn only_trial_0_is_out(report: &Report, code: &str) {
    assert_eq!(codes(report), (vec![(code, Some(0))], ReportStatus::Invalid));
    let used: Vec<_> = report.conditions.iter().map(|c| (c.used_trial_ids.clone(), c.counts.answered)).collect();
    assert_eq!(used, [(vec![1], 500), (vec![2, 3], 1_000)]);
    assert_eq!(report.conditions[0].status, ConditionStatus::Valid);
    assert_eq!(report.invalid_trials().collect::<Vec<_>>(), [0]);
    let round_trip = report.conditions[0].round_trip.as_ref().unwrap();
    assert_eq!(round_trip.quantile(0.5).unwrap().value_ns(), Some(21_000));
}

#[test]
fn a_whole_record_has_no_flaw() {
    assert_eq!(codes(&harmed(|_| ())), (vec![], ReportStatus::Valid));
}

#[test]
fn missing_samples() {
    let report = harmed(|dir| fs::remove_file(dir.join("samples/0/ping-0.parquet")).unwrap());
    only_trial_0_is_out(&report, "samples_missing");
    insta::assert_snapshot!("missing", told(&report));

    let report = harmed(|dir| fs::remove_dir_all(dir.join("samples")).unwrap());
    assert_eq!(report.status, ReportStatus::Invalid);
    assert_eq!(codes(&report).0, [0, 1, 2, 3].map(|t| ("samples_missing", Some(t))));
    assert!(report.conditions.iter().all(|c| c.status == ConditionStatus::Invalid && c.counts == Counts::default()));
    assert!(render_terminal(&report, 80, false).contains("samples/3/ping-0.parquet"));
}

#[test]
fn missing_last_segment() {
    let report = harmed(|dir| {
        let segment = |n| RecordWriter::segment_path(dir, 0, "ping", n);
        write_slots(&segment(0), 0, trial(0).slots.into_iter().take(300)).unwrap();
    });
    only_trial_0_is_out(&report, "samples_missing");
    assert!(told(&report).contains("the record contains only 300 of the 500 slots of the trial"), "{}", told(&report));
}

#[test]
fn samples_of_another_trial() {
    let copy = |end: &'static str| {
        harmed(move |dir| {
            let file = |trial| RecordWriter::segment_path(dir, trial, end, 0);
            fs::copy(file(1), file(0)).unwrap();
        })
    };
    only_trial_0_is_out(&copy("pong"), "samples_foreign");
    let report = copy("ping");
    only_trial_0_is_out(&report, "samples_foreign");
    insta::assert_snapshot!("foreign", told(&report));
}

#[test]
fn slots_that_do_not_follow_each_other() {
    let segments = |rows: [Vec<SenderRow>; 2]| {
        harmed(move |dir| {
            for (n, rows) in rows.into_iter().enumerate() {
                write_slots(&RecordWriter::segment_path(dir, 0, "ping", n), 0, rows.into_iter()).unwrap();
            }
        })
    };
    let doubled = segments([trial(0).slots, trial(0).slots]);
    only_trial_0_is_out(&doubled, "samples_not_consecutive");
    insta::assert_snapshot!("doubled", told(&doubled));
    let cut = segments([trial(0).slots, trial(501).slots]);
    only_trial_0_is_out(&cut, "samples_not_consecutive");
    assert!(told(&cut).contains("slot 500 is missing"), "{}", told(&cut));

    // Damage inside a row group, which the end of the file does not show.
    let mut swapped = trial(0).slots;
    swapped[200] = swapped[201];
    only_trial_0_is_out(&segments([swapped, trial(500).slots]), "samples_not_consecutive");
}

#[test]
fn damaged_samples() {
    let cut = |end: &'static str, part: fn(&mut Vec<u8>)| {
        harmed(move |dir| {
            let file = RecordWriter::segment_path(dir, 0, end, 0);
            let mut bytes = fs::read(&file).unwrap();
            part(&mut bytes);
            fs::write(file, bytes).unwrap();
        })
    };
    let half = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
    only_trial_0_is_out(&cut("pong", half), "samples_damaged");
    let report = cut("ping", half);
    only_trial_0_is_out(&report, "samples_damaged");
    insta::assert_snapshot!("damaged", told(&report));
    // The end of the file is whole, but pages are damaged: the pass that reads the pages reports the damage.
    only_trial_0_is_out(&cut("ping", |bytes| bytes[4..400].fill(0xff)), "samples_damaged");
}

#[test]
fn trials_of_the_plan_that_the_manifest_lacks() {
    let conditions = || [64, 1_024].map(|payload| given(payload, vec![trial(0), trial(0)]));
    let report = |change: fn(&mut Manifest)| {
        let folder = tempfile::tempdir().unwrap();
        analyse(&crate::support::write(&folder.path().join("record"), &conditions(), change)).unwrap()
    };
    let cut = report(|m| m.trials.truncate(2));
    assert_eq!(codes(&cut), (vec![("trials_missing", None)], ReportStatus::Invalid));
    assert_eq!(cut.conditions[0].counts.answered, 1_000);
    insta::assert_snapshot!("lacking", told(&cut));
    let pending = report(|m| m.trials[3].status = TrialStatus::Pending);
    assert_eq!(codes(&pending).1, ReportStatus::Invalid);
    let incomplete = report(|m| {
        m.trials[3].status = TrialStatus::Pending;
        m.status = Status::Incomplete;
    });
    assert_eq!(codes(&incomplete), (vec![], ReportStatus::Incomplete));
}

#[test]
fn circumstances_that_cannot_be_read_leave_the_figures() {
    let report = harmed(|dir| {
        fs::remove_dir_all(dir.join("facts")).unwrap();
        fs::write(dir.join("threads/2-ping.json"), "{").unwrap();
    });
    assert_eq!(
        codes(&report),
        (vec![("facts_unreadable", None), ("threads_unreadable", Some(2))], ReportStatus::Valid)
    );
    assert_eq!(report.conditions[1].counts.answered, 1_000);
    insta::assert_snapshot!("circumstances", told(&report));
}

#[test]
fn a_trial_that_failed_needs_no_samples() {
    let mut failed = trial(0);
    failed.status = TrialStatus::Invalid;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    crate::support::write(&dir, &[given(64, vec![trial(0), failed])], |_| ());
    fs::remove_dir_all(dir.join("samples/1")).unwrap();
    let report = analyse(&Record::open(&dir).unwrap()).unwrap();
    assert_eq!(codes(&report), (vec![], ReportStatus::Invalid));
}
