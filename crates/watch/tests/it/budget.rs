//! Budgets of captures: known lateness, losses and rates, and what decides nothing.

use super::compare::capture;
use super::{MS, US};
use std::collections::BTreeMap;
use tailbound_document::{BudgetOutcome, WatchedQos};
use tailbound_model::{AtMost, Budget, Limit, LimitSet, Metric, Nanos, WireLimit};
use tailbound_stats::SplitMix64;
use tailbound_watch::{BudgetMisfit, CaptureRecord, judge};

/// Between 50 and 60 us, and 1 ms in one of fifty samples. All samples are independent.
fn usual(n: i64) -> i64 {
    let random = SplitMix64(n as u64).bits();
    if random.is_multiple_of(50) { MS } else { 50 * US + (random >> 32) as i64 % (10 * US) }
}

fn scan() -> CaptureRecord {
    let mut record = capture("rt/scan", MS, usual);
    record.report.duration_ns = 2000 * MS;
    // The writer is of this host, so that its lateness is absolute.
    let writer = &mut record.report.topics[0].writers[0];
    if let Some(late) = &mut writer.lateness {
        late.is_above_fastest = false;
    }
    let qos = WatchedQos { reliability: "reliable".into(), durability: "volatile".into(), deadline_ns: None };
    (writer.qos, writer.protocol.acknowledgements) = (Some(qos), 20);
    record
}

fn budget(topic: Option<&str>, on_wire: Vec<WireLimit>) -> Budget {
    let levels: BTreeMap<String, String> =
        topic.map(|topic| ("topic".to_owned(), topic.to_owned())).into_iter().collect();
    let set = LimitSet { levels, limits: Vec::new(), throughput: Vec::new(), misses: None, on_wire };
    Budget { name: "b".into(), limits: vec![set], baseline: None }
}

fn at_most(label: &str, ns: i64) -> WireLimit {
    WireLimit::AtMost(AtMost::Quantile(label.into(), Nanos(ns)))
}

/// The outcome of one limit.
fn outcome(record: &CaptureRecord, limit: WireLimit) -> (BudgetOutcome, String) {
    let report = judge(record, &budget(None, vec![limit]), "dir").unwrap();
    let [check] = &report.checks[..] else { panic!("{report:?}") };
    (check.outcome, format!("{}: {} - {}", check.what, check.found, check.why))
}

#[track_caller]
fn expect(record: &CaptureRecord, limit: WireLimit, wanted: BudgetOutcome) {
    let (found, text) = outcome(record, limit);
    assert_eq!(found, wanted, "{text}");
}

use BudgetOutcome::*;

#[test]
fn limits_of_known_lateness_are_decided() {
    let scan = scan();
    expect(&scan, at_most("p50", 61 * US), Holds);
    expect(&scan, at_most("p50", 50 * US), Broken);
    // 2 % of the samples take 1 ms.
    expect(&scan, at_most("p99", 900 * US), Broken);
    expect(&scan, at_most("p99", MS), Holds);
    expect(&scan, at_most("p98", 500 * US), Undecided);
    expect(&scan, at_most("p99.9", 2 * MS), Undecided);
    expect(&scan, WireLimit::AtMost(AtMost::Max(Nanos(MS))), Holds);
    expect(&scan, WireLimit::AtMost(AtMost::Max(Nanos(MS - 1))), Broken);
    expect(&scan, WireLimit::SamplesPerSecond(999.0), Holds);
    expect(&scan, WireLimit::SamplesPerSecond(1000.4), Undecided);
    expect(&scan, WireLimit::SamplesPerSecond(1001.0), Broken);
}

/// Test: samples that depend on each other are worth fewer independent ones, so that a limit near the quantile is not decided.
#[test]
fn dependent_samples_are_worth_less() {
    let phases = |n: i64| if n / 500 % 2 == 0 { 50 * US } else { 100 * US };
    let mut record = capture("rt/scan", MS, phases);
    record.report.topics[0].writers[0].lateness.as_mut().unwrap().is_above_fastest = false;
    expect(&record, at_most("p50", 90 * US), Undecided);
}

/// Test: samples without a lateness are not left out: they can be later than any limit.
#[test]
fn samples_without_lateness_decide_nothing_in_favour() {
    let mut scan = scan();
    scan.report.topics[0].writers[0].protocol.first_not_seen = 40;
    expect(&scan, at_most("p50", 61 * US), Holds);
    expect(&scan, at_most("p99", 2 * MS), Undecided);
    // One of fifty is later, even if the others were the earliest samples.
    expect(&scan, at_most("p99", 900 * US), Broken);
    expect(&scan, WireLimit::AtMost(AtMost::Max(Nanos(2 * MS))), Undecided);
    // With as many that can have been early as were seen, fewer than one of a hundred need be late.
    scan.report.topics[0].writers[0].protocol.first_not_seen = 2000;
    expect(&scan, at_most("p99", 900 * US), Undecided);
    expect(&scan, at_most("p50", 50 * US), Undecided);
}

#[test]
fn times_above_the_fastest_sample_decide_nothing() {
    let mut scan = scan();
    scan.report.topics[0].writers[0].lateness.as_mut().unwrap().is_above_fastest = true;
    expect(&scan, at_most("p99", 2 * MS), Undecided);
    // Two clocks drift, so that even these can be punctual.
    expect(&scan, at_most("p99", 800 * US), Undecided);
    expect(&scan, WireLimit::AtMost(AtMost::Max(Nanos(2 * MS))), Undecided);
}

/// Test: a source timestamp after the capture is one of another clock, whatever the address says.
#[test]
fn times_before_the_writing_decide_nothing() {
    let mut scan = scan();
    scan.late_ns.values_mut().for_each(|late| late[7] = -MS);
    expect(&scan, at_most("p50", 61 * US), Undecided);
    expect(&scan, WireLimit::AtMost(AtMost::Max(Nanos(MS))), Undecided);
}

/// Test: writers that are late for one reason are worth no more than one of them.
#[test]
fn writers_that_stall_together_are_worth_one() {
    let one = scan();
    let mut both = one.clone();
    let mut second = both.report.topics[0].writers[0].clone();
    second.guid = "other".into();
    both.report.topics[0].writers.push(second);
    both.late_ns.insert("other".into(), one.late_ns.values().next().unwrap().clone());
    let limit = || at_most("p98", 999 * US);
    assert_eq!(outcome(&one, limit()).0, outcome(&both, limit()).0);
    expect(&both, at_most("p99.9", 2 * MS), Undecided);
}

/// Test: the rate is that of the whole capture. A writer that ended counts for the time that it did not send, and one that started again
/// does not count twice.
#[test]
fn a_topic_that_stopped_has_a_lower_rate() {
    let mut scan = scan();
    scan.report.duration_ns *= 2;
    expect(&scan, WireLimit::SamplesPerSecond(999.0), Broken);
    expect(&scan, WireLimit::SamplesPerSecond(400.0), Holds);
}

#[test]
fn captures_that_do_not_have_everything_decide_nothing() {
    let p50 = || at_most("p50", 61 * US);
    let mut partial = scan();
    partial.report.is_partial = true;
    expect(&partial, p50(), Undecided);
    let mut file = scan();
    file.report.from_file = true;
    expect(&file, p50(), Undecided);
    // A second writer whose topic is not known can be of this topic.
    let mut unknown = scan();
    let mut other = unknown.report.topics[0].clone();
    (other.topic, other.ros_topic) = (None, None);
    unknown.report.topics.push(other);
    expect(&unknown, p50(), Undecided);
    expect(&unknown, at_most("p50", 50 * US), Broken);
    // All samples of a second writer were written before the capture began.
    let mut before = scan();
    let mut other = before.report.topics[0].writers[0].clone();
    (other.guid, other.samples, other.lateness, other.protocol.replayed) = ("other".into(), 0, None, 50);
    before.report.topics[0].writers.push(other);
    expect(&before, WireLimit::AtMost(AtMost::Max(Nanos(MS))), Undecided);
    expect(&before, at_most("p99", MS), Undecided);
}

#[test]
fn losses_are_judged_where_they_are_known() {
    let mut scan = scan();
    let lost = |share: Option<f64>| WireLimit::AtMost(AtMost::Lost(share));
    expect(&scan, lost(None), Holds);
    expect(&scan, lost(Some(0.01)), Holds);
    expect(&scan, lost(Some(0.0001)), Undecided);
    scan.report.topics[0].writers[0].protocol.open = 1;
    expect(&scan, lost(None), Undecided);
    scan.report.topics[0].writers[0].protocol.open = 0;
    scan.report.topics[0].writers[0].protocol.lost = 1;
    expect(&scan, lost(None), Broken);
    scan.report.topics[0].writers[0].protocol.lost = 400;
    expect(&scan, lost(Some(0.1)), Broken);
    scan.report.topics[0].writers[0].protocol.lost = 0;
    scan.report.topics[0].writers[0].qos.as_mut().unwrap().reliability = "best-effort".into();
    expect(&scan, lost(None), Undecided);
}

#[test]
fn a_capture_that_missed_packets_or_whose_clock_was_set_decides_nothing() {
    let mut missed = scan();
    missed.report.not_copied = 3;
    expect(&missed, at_most("p50", 61 * US), Undecided);
    let mut set = scan();
    set.report.clock_step_ns = Some(5 * MS);
    let (found, why) = outcome(&set, at_most("p50", 61 * US));
    assert!(found == Undecided && why.contains("the clock was set by up to 5"), "{why}");
}

#[test]
fn budgets_of_something_else_are_refused() {
    let refused = |budget: &Budget| judge(&scan(), budget, "dir").unwrap_err();
    let limit = || vec![at_most("p50", MS)];
    let known = vec!["/scan".to_owned()];
    assert_eq!(refused(&budget(Some("/scam"), limit())), BudgetMisfit::NoTopic { name: "/scam".into(), known });
    let mut other = budget(None, limit());
    other.limits[0].levels.insert("driver".into(), "udp".into());
    assert_eq!(refused(&other), BudgetMisfit::Level("driver".into()));
    let mut other = budget(None, Vec::new());
    other.limits[0].limits = vec![Limit { metric: Metric::RoundTrip, at_most: AtMost::Max(Nanos(MS)) }];
    assert_eq!(refused(&other), BudgetMisfit::OfStudies("round_trip".into()));
    assert!(judge(&scan(), &budget(Some("/scan"), limit()), "dir").is_ok());
    assert!(judge(&scan(), &budget(Some("rt/scan"), limit()), "dir").is_ok());
}
