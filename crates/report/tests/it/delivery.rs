//! Tests of the findings about losses and the QoS of the ends.

use crate::support::{Given, GivenTrial, lose, slot};
use std::collections::BTreeMap;
use tailbound_model::*;
use tailbound_record::Manifest;
use tailbound_report::*;

const PERIOD: i64 = 1_000_000;

/// Computes the report of one condition with 500 messages, of which every `nth` is lost, and whose ends have this QoS.
fn report(status: TrialStatus, nth: u64, policies: &[(&str, &str)]) -> Report {
    let of_ends = |manifest: &mut Manifest| {
        manifest.trials[0].ends.values_mut().for_each(|end| end.qos = qos(policies));
    };
    report_with(status, nth, of_ends)
}

fn qos(policies: &[(&str, &str)]) -> BTreeMap<String, String> {
    policies.iter().map(|(policy, value)| ((*policy).to_owned(), (*value).to_owned())).collect()
}

fn report_with(status: TrialStatus, nth: u64, change: impl FnOnce(&mut Manifest)) -> Report {
    let (mut slots, echoes): (Vec<_>, Vec<_>) =
        (0..500).map(|k| slot(k, PERIOD, 1_000, [10_000, 5_000, 15_000])).unzip();
    slots.iter_mut().filter(|s| s.seq % nth == nth - 1).for_each(lose);
    let trial = GivenTrial { status, slots, echoes, finding: None };
    let given = Given { driver: "cyclonedds", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![trial] };
    let folder = tempfile::tempdir().unwrap();
    analyse(&crate::support::write(&folder.path().join("record"), &[given], change)).unwrap()
}

/// Code and text of the first finding of a report.
fn first(report: &Report) -> (&str, &str) {
    let finding = &report.findings[0];
    (&finding.code, &finding.text)
}

#[test]
fn a_loss_under_reliable_is_the_first_finding() {
    let keep_all = [("reliability", "reliable"), ("history", "keep-all")];
    let few = report(TrialStatus::Valid, 100, &keep_all);
    assert_eq!(first(&few).0, "reliable_lost");
    insta::assert_snapshot!("few", first(&few).1);
    insta::assert_snapshot!("many", first(&report(TrialStatus::Valid, 5, &keep_all)).1);
    let all = report(TrialStatus::Valid, 1, &keep_all);
    insta::assert_snapshot!("all", first(&all).1);
    assert_eq!(all.findings.iter().filter(|f| f.level == FindingLevel::Failed).count(), 1, "one sentence is enough");
    let expiring = [keep_all.as_slice(), &[("lifespan", "1000000000")]].concat();
    insta::assert_snapshot!("lifespan", first(&report(TrialStatus::Valid, 100, &expiring)).1);
}

#[test]
fn a_promise_that_history_limits_is_named_with_its_limit() {
    let keep_last = [("reliability", "reliable"), ("history", "keep-last"), ("history.depth", "1")];
    insta::assert_snapshot!("keep_last", first(&report(TrialStatus::Valid, 100, &keep_last)).1);
    let unknown = [("reliability", "reliable")];
    insta::assert_snapshot!("history_unknown", first(&report(TrialStatus::Valid, 100, &unknown)).1);
}

#[test]
fn a_loss_without_a_promise_breaks_none() {
    let best_effort = [("reliability", "best-effort"), ("history", "keep-last"), ("history.depth", "4")];
    let report = report(TrialStatus::Valid, 100, &best_effort);
    assert!(report.findings.iter().all(|f| f.code != "reliable_lost"), "{:?}", report.findings);
    let replaced = report.findings.iter().find(|f| f.code == "keep_last").unwrap();
    insta::assert_snapshot!("best_effort", replaced.text);
    let latency = report.findings.iter().find(|f| f.code == "latency").unwrap();
    assert!(latency.text.contains("5 lost (1 in 100). Of the lost messages, the pong answered 5."), "{}", latency.text);
}

/// Tests that messages which the middleware delivered, and answers which it refused to take, break no promise.
#[test]
fn losses_between_threads_are_not_losses_of_the_qos() {
    let told = |dropped: u64, refused: u64| {
        let mut report = report_with(TrialStatus::Valid, 50, |manifest| {
            let ends = &mut manifest.trials[0].ends;
            ends.values_mut().for_each(|end| end.qos = qos(&[("reliability", "reliable"), ("history", "keep-all")]));
            ends.get_mut("ping").unwrap().hand_off_dropped = dropped;
            ends.get_mut("pong").unwrap().answers_refused = refused;
        });
        assert_eq!(report.trials[0].status, TrialStatus::Valid);
        report.findings.retain(|f| f.level == FindingLevel::Failed);
        report.findings.into_iter().map(|f| f.text).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("dropped_between_threads", told(10, 0));
    insta::assert_snapshot!("dropped_and_lost", told(4, 5));
    assert_eq!(told(0, 10), "");
}

#[test]
fn only_losses_of_the_system_under_test_break_a_promise() {
    let keep_all = [("reliability", "reliable"), ("history", "keep-all")];
    let one_sided = [("reliability", "writer reliable, reader best-effort"), ("history", "keep-all")];
    for report in [
        report(TrialStatus::Valid, 1_000, &keep_all),
        report(TrialStatus::Invalid, 100, &keep_all),
        report(TrialStatus::Valid, 100, &one_sided),
        report(TrialStatus::Valid, 100, &[]),
    ] {
        assert!(report.findings.iter().all(|f| f.code != "reliable_lost" && f.code != "keep_last"));
    }
}
