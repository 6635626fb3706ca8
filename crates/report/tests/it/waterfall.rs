//! Tests of the picture of an incident: the course of its latest message is known, because the stall was planted.

use crate::stalls::{HOG, KERNEL, SLOTS, Stall, everything, record, report, stalls};
use tailbound_record::Record;
use tailbound_report::*;

const STALL: Stall = Stall { slot: 150, ns: 5_000_000, by: HOG };

fn worst(report: &Report) -> &WaterfallReport {
    report.conditions[0].incidents[0].waterfall.as_ref().unwrap()
}

/// Tests that the time spans cover the whole message in the order of time, and that the planted wait is one of them, at
/// the right place, with the right length.
#[test]
fn the_course_of_a_message_shows_the_planted_wait() {
    let report = report(&[STALL], &everything(), 0);
    let worst = worst(&report);
    let ends: Vec<(i64, i64)> = worst.spans.iter().map(|s| (s.from_ns, s.to_ns)).collect();
    assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ends:?}");
    let latest = report.conditions[0].incidents[0].worst_ns;
    assert_eq!((ends.first().unwrap().0, Some(ends.last().unwrap().1)), (0, latest));
    assert!(worst.spans.windows(2).all(|pair| pair[0].hop <= pair[1].hop), "{worst:?}");
    let waits: Vec<&HopSpan> = worst.spans.iter().filter(|s| s.cause == Some(CauseWord::WaitedForCpu)).collect();
    let [wait] = waits[..] else { panic!("{worst:?}") };
    assert_eq!((wait.hop, wait.to_ns - wait.from_ns, wait.cpu), (Hop::PingReceiver, 5_000_000, Some(0)));
    assert_eq!((wait.thread.as_deref(), wait.by.as_ref().unwrap().name.as_str()), (Some("recv"), "stress-ng"));
    let back = worst.legs.iter().find(|l| l.leg == "back").unwrap();
    assert!(back.usual_ns.is_some_and(|ns| (60_000..80_000).contains(&ns)), "{back:?}");
}

/// Tests that without events the picture shows the legs alone, without a cause.
#[test]
fn without_events_the_course_has_no_causes() {
    let report = report(&[STALL], &[], 0);
    let worst = worst(&report);
    assert!(worst.spans.len() >= 4 && worst.spans.iter().all(|s| s.cause.is_none()), "{worst:?}");
    assert!(!render_terminal(&report, 80, false).contains("in the worst incident"));
}

/// Tests that only the incidents that are described have a picture.
#[test]
fn ten_incidents_have_a_picture() {
    let report = report(&stalls(), &everything(), 0);
    let with: Vec<bool> = report.conditions[0].incidents.iter().map(|i| i.waterfall.is_some()).collect();
    assert_eq!((with.len(), with.iter().filter(|w| **w).count()), (20, 10));
    assert!(with[..10].iter().all(|w| *w), "{with:?}");
}

/// Tests the picture on the page, in which every time span has its cause in words, and on a terminal of 80 columns.
#[test]
fn the_picture_has_its_causes_in_words() {
    let report = report(&[STALL], &everything(), 0);
    let page = render_html(&report).replace('\u{202f}', " ");
    assert_eq!(page.matches("<div class=\"waterfall\">").count(), 1);
    for words in ["5 ms waited for CPU 0 (stress-ng)", "receiving ping", "back usually", "</span>waited for a CPU"] {
        assert!(page.contains(words), "{words}");
    }
    let terminal = render_terminal(&report, 80, false);
    let drawn: Vec<&str> = terminal.lines().skip_while(|l| !l.contains("in the worst incident")).collect();
    let end = drawn.iter().position(|l| l.trim_start().starts_with("0 ")).unwrap();
    let drawn = &drawn[..=end];
    assert!(drawn.len() <= 10 && drawn.iter().all(|l| l.chars().count() <= 80), "{drawn:#?}");
    insta::assert_snapshot!("terminal", drawn.join("\n"));
}

/// Tests the line about the late messages of one trial, which a run prints when the trial has ended.
#[test]
fn a_trial_has_its_causes_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("recorded");
    record(&dir, 2, &[STALL], &everything(), 0);
    let line = trial_causes(&dir, 1).unwrap().unwrap().replace('\u{202f}', " ");
    insta::assert_snapshot!("trial", line);
    let dir = folder.path().join("without-events");
    record(&dir, 1, &[STALL], &[], 0);
    assert_eq!(trial_causes(&dir, 0).unwrap(), None);
}

/// 100 stalls of a trial.
fn hundred() -> Vec<Stall> {
    (0..100).map(|n| Stall { slot: 20 + n * 39, ns: 3_000_000, by: KERNEL }).collect()
}

/// Tests that the report of a single condition lists more than 100 incidents, each with its ledger.
#[test]
fn three_hundred_incidents_of_one_condition_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let report = analyse(&record(&folder.path().join("r"), 3, &hundred(), &everything(), 0)).unwrap();
    let incidents = &report.conditions[0].incidents;
    let with_cause = incidents.iter().filter(|i| i.ledger.as_ref().is_some_and(|ledger| !ledger.is_empty())).count();
    assert_eq!((incidents.len(), with_cause), (300, 300));
}

/// Prints what 1,000 incidents add to the time of a report.
#[test]
#[ignore = "prints a time and judges nothing"]
fn what_a_thousand_incidents_cost() {
    let folder = tempfile::tempdir().unwrap();
    let many = hundred();
    assert!(many.last().unwrap().slot < SLOTS);
    let calm = record(&folder.path().join("calm"), 10, &[], &everything(), 0);
    let disturbed = record(&folder.path().join("disturbed"), 10, &many, &everything(), 0);
    let seconds = |record: &Record| {
        let begin = std::time::Instant::now();
        let report = analyse(record).unwrap();
        let analysed = begin.elapsed().as_secs_f64();
        let (incidents, bytes) = (report.conditions[0].incident_totals.unwrap().incidents, render_html(&report).len());
        (incidents, analysed, begin.elapsed().as_secs_f64(), bytes)
    };
    for round in 0..3 {
        println!("round {round}: incidents, s to the document, s to the page, bytes of the page");
        println!("  without {:?}\n  with    {:?}", seconds(&calm), seconds(&disturbed));
    }
}
