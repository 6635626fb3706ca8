//! Tests of the figures of a list of records.

use crate::analyse::{open_loop, rising, trial};
use crate::support::lose;
use tailbound_model::*;
use tailbound_report::*;

/// Test: a list of records has the same figures as the report, with lost messages, warm-up, an invalid trial and several conditions.
#[test]
fn a_list_has_the_figures_of_the_report() {
    let with = |change: fn(usize, &mut SenderRow)| {
        let mut one = trial(TrialStatus::Valid, &rising(800));
        one.slots.iter_mut().enumerate().for_each(|(at, row)| change(at, row));
        one
    };
    let short = open_loop(vec![trial(TrialStatus::Valid, &rising(50))]);
    let lossy = with(|at, row| {
        if at % 300 == 7 {
            lose(row)
        }
    });
    let warm = with(|at, row| row.warm_up = at < 400);
    let invalid = trial(TrialStatus::Invalid, &rising(3_000));
    let folder = tempfile::tempdir().unwrap();
    let all = [open_loop(vec![lossy, warm, invalid]), short];
    let record = crate::support::write(&folder.path().join("record"), &all, |_| ());
    let report = analyse(&record).unwrap();
    let p99 = |c: &ConditionReport| c.round_trip.as_ref()?.quantile(0.99)?.value_ns();
    let expected = Brief {
        worst_p99_ns: report.conditions.iter().filter_map(p99).max(),
        lost: report.conditions.iter().map(|c| c.counts.lost).sum(),
    };
    assert!(expected.worst_p99_ns.is_some() && expected.lost == 3, "{expected:?}");
    assert_eq!(brief(&record).unwrap(), expected);
}
