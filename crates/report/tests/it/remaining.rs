//! Tests of the tail that would remain without a cause: stalls of known length are planted into a record whose tail
//! without them is known.

use crate::stalls::{HOG, KERNEL, PERIOD, SLOTS, Stall, due, everything, report, stalls};
use tailbound_report::*;

fn without(report: &Report, cause: CauseWord) -> &WithoutCause {
    let all = &report.conditions[0].without_cause;
    all.iter().find(|w| w.cause == cause).unwrap_or_else(|| panic!("{all:?}"))
}

/// Measured value and estimate of a quantile, ns.
fn quantile(of: &WithoutCause, q: f64) -> (Option<i64>, Option<i64>) {
    let one = of.quantiles.iter().find(|r| r.q == q).unwrap();
    (one.value_ns, one.without_ns)
}

fn sentences(report: &Report) -> String {
    let findings = report.findings.iter().filter(|f| f.code == "causes").map(|f| f.text.as_str());
    findings.collect::<Vec<_>>().join("\n").replace('\u{202f}', " ")
}

/// Tests that without the only cause the tail is the tail of the same trial without stalls.
#[test]
fn without_its_only_cause_the_tail_is_the_undisturbed_one() {
    let hogs: Vec<Stall> = stalls().iter().map(|s| Stall { by: HOG, ..*s }).collect();
    let (disturbed, calm) = (report(&hogs, &everything(), 0), report(&[], &everything(), 0));
    let of = without(&disturbed, CauseWord::WaitedForCpu);
    let calm = calm.conditions[0].from_intended.as_ref().unwrap();
    for q in [0.99, 0.999] {
        let (measured, estimate) = quantile(of, q);
        let truth = calm.quantile(q).unwrap().value_ns().unwrap();
        assert_eq!(measured, disturbed.conditions[0].from_intended.as_ref().unwrap().quantile(q).unwrap().value_ns());
        assert!(measured.unwrap() > 20 * truth, "{of:?}");
        assert!((estimate.unwrap() - truth).abs() * 50 <= truth, "{estimate:?} instead of {truth}");
    }
    // Messages that waited together are taken one after another, which takes some us of work.
    assert!(of.max_ns > 5_000_000 && of.max_without_ns < calm.max_ns.unwrap() * 6 / 5, "{of:?}");
    assert_eq!((of.covered_late, of.metric.as_str()), (of.late, "from_intended"));
    insta::assert_snapshot!("without_the_only_cause", sentences(&disturbed));
}

/// Tests that the time of other causes stays.
#[test]
fn without_one_of_two_causes_the_other_remains() {
    let both = report(&stalls(), &everything(), 0);
    let (hog, kernel) = (without(&both, CauseWord::WaitedForCpu), without(&both, CauseWord::KernelThread));
    // The truth is the same trial with the stalls of the other cause only.
    let only = |by| report(&stalls().into_iter().filter(|s| s.by == by).collect::<Vec<_>>(), &everything(), 0);
    for (of, rest) in [(hog, only(KERNEL)), (kernel, only(HOG))] {
        let near = |value: i64, truth: i64| (value - truth).abs() * 50 <= truth;
        let truth = rest.conditions[0].from_intended.as_ref().unwrap();
        assert!(near(of.max_without_ns, truth.max_ns.unwrap()), "{of:?}");
        for q in [0.99, 0.999] {
            let exact = truth.quantile(q).unwrap().value_ns().unwrap();
            assert!(near(quantile(of, q).1.unwrap(), exact), "{of:?}: {exact}");
        }
    }
    assert_eq!(kernel.max_without_ns, kernel.max_ns);
    // Ordinary messages are as they were.
    assert!(hog.shortened < 100 && kernel.shortened < 100, "{hog:?}\n{kernel:?}");
}

/// Tests that messages of incidents without events keep their time, and that the report says so.
#[test]
fn without_events_a_message_keeps_its_time() {
    let all = stalls();
    let first = due(all[0].slot) - PERIOD;
    let windows = [(0, first), (first + 10 * PERIOD, due(SLOTS) + PERIOD)];
    let report = report(&all, &windows, 0);
    let of = without(&report, CauseWord::WaitedForCpu);
    assert_eq!(of.max_without_ns, of.max_ns, "{of:?}");
    let uncovered = of.late - of.covered_late;
    assert!((4..=6).contains(&uncovered), "{of:?}");
    let said =
        format!("; {uncovered} of {} late messages keep their time, because their causes are not known", of.late);
    assert!(sentences(&report).contains(&said), "{}", sentences(&report));
}

/// Tests that a lost message stays lost: a quantile among the lost messages has no estimate.
#[test]
fn what_is_lost_stays_lost() {
    let report = report(&stalls(), &everything(), 5);
    let of = without(&report, CauseWord::WaitedForCpu);
    assert_eq!(quantile(of, 0.999), (None, None), "{of:?}");
    assert!(quantile(of, 0.99).1.is_some());
}
