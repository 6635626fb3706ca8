//! Tests that the report computes the expected figures from given rows of samples.

use crate::support::{Given, GivenTrial, Random, lose, skip, slot};
#[allow(dead_code)]
use proptest::prelude::*;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

const PERIOD: i64 = 1_000_000;

fn given(rate: Rate, trials: Vec<GivenTrial>) -> Given {
    Given { driver: "udp", payload: 64, rate, trials }
}

pub(crate) fn open_loop(trials: Vec<GivenTrial>) -> Given {
    given(Rate::Period(Nanos(PERIOD)), trials)
}

/// Makes a valid trial whose messages have the given legs: `out` and `back` in ns; `None` is a lost message.
pub(crate) fn trial(status: TrialStatus, legs: &[Option<[i64; 3]>]) -> GivenTrial {
    let (mut slots, mut echoes) = (Vec::new(), Vec::new());
    for (seq, legs) in legs.iter().enumerate() {
        let (mut row, echo) = slot(seq as u64, PERIOD, 1_000, legs.unwrap_or([1, 1, 1]));
        if legs.is_none() {
            lose(&mut row);
        } else {
            echoes.push(echo);
        }
        slots.push(row);
    }
    GivenTrial { status, slots, echoes, finding: None }
}

fn analysed(conditions: &[Given]) -> Report {
    analysed_with(conditions, |_| ())
}

fn analysed_with(conditions: &[Given], change: impl FnOnce(&mut Manifest)) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let record = crate::support::write(&folder.path().join("record"), conditions, change);
    analyse(&record).unwrap()
}

/// Makes a trial with round trips of 30, 31, 32 ... us.
pub(crate) fn rising(n: i64) -> Vec<Option<[i64; 3]>> {
    (0..n).map(|k| Some([10_000, 5_000, 15_000 + 1_000 * k])).collect()
}

#[test]
fn known_rows_become_known_figures() {
    let mut first = trial(TrialStatus::Valid, &rising(500));
    first.slots[0].warm_up = true;
    first.slots[7].duplicates = 2;
    first.slots[8].out_of_order = true;
    first.slots[9].outcome = Outcome::AfterTimeout;
    lose(&mut first.slots[10]);
    skip(&mut first.slots[11]);
    let report = analysed(&[open_loop(vec![first])]);
    let condition = &report.conditions[0];
    assert_eq!(
        condition.counts,
        Counts {
            scheduled: 499,
            answered: 496,
            after_timeout: 1,
            lost: 1,
            not_sent: 1,
            duplicate: 2,
            out_of_order: 1,
            warm_up: 1
        }
    );
    let round_trip = condition.round_trip.as_ref().unwrap();
    assert_eq!((round_trip.n, round_trip.scheduled), (497, 499));
    assert_eq!((round_trip.min_ns, round_trip.max_ns), (Some(31_000), Some(529_000)));
    // Rank 250 of 499: two values below this rank are missing, so its value is the 252nd of 31, 32, 33 ...
    assert_eq!(round_trip.quantile(0.5).unwrap().value_ns(), Some(282_000));
    assert_eq!(condition.half_round_trip.as_ref().unwrap().quantiles[0].value_ns(), Some(141_000));
    assert_eq!(round_trip.quantile(0.999), Some(&QuantileReport::Needs { q: 0.999, needs: 3_688 }));
    let out = condition.out.as_ref().unwrap();
    assert_eq!(
        (out.min_ns, out.max_ns, out.mean_ns, out.stddev_ns),
        (Some(10_000), Some(10_000), Some(10_000.0), Some(0.0))
    );
    let lateness = condition.send_lateness.as_ref().unwrap();
    assert_eq!((lateness.n, lateness.scheduled), (498, 499), "only what was not sent is beyond");
    let period = condition.wake_period.as_ref().unwrap();
    assert_eq!((period.n, period.scheduled), (497, 498), "the slot after the skipped one has no wake before");
    assert_eq!(period.quantile(0.5).unwrap().value_ns(), Some(PERIOD));
    let intended = condition.from_intended.as_ref().unwrap();
    assert_eq!(intended.max_ns, Some(530_000));
    assert_eq!(condition.worst.len(), 50);
    let worst = &condition.worst[0];
    assert_eq!(
        (worst.trial, worst.slot, worst.from_intended_ns, worst.back_ns),
        (0, 499, Some(530_000), Some(514_000))
    );
    assert_eq!(condition.median_message.as_ref().unwrap().round_trip_ns, Some(282_000));
    assert_eq!(condition.mtu_bytes, Some(1500));
}

#[test]
fn the_loop_is_followed_slot_by_slot() {
    let mut first = trial(TrialStatus::Valid, &rising(500));
    first.slots[0].warm_up = true;
    first.slots[20].wake_ns -= 300;
    first.slots[21].send_end_ns += 7_000_000;
    lose(&mut first.slots[30]);
    let report = analysed(&[open_loop(vec![first, trial(TrialStatus::Valid, &rising(3))])]);
    let woken = report.conditions[0].wake_to_sent.as_ref().unwrap();
    assert_eq!((woken.n, woken.min_ns, woken.max_ns), (502, Some(4_700), Some(7_004_700)));
    assert_eq!(woken.quantile(0.5).unwrap().value_ns(), Some(4_700));
    let course = report.trials[0].course.as_ref().unwrap();
    assert_eq!((course.slots, course.slots_per_column), (499, 2), "the warm-up is in no figure");
    assert_eq!(course.scheduled_ns, Some(499 * PERIOD));
    // From slot 1's due time to the answer of slot 499, which was sent 1 us late and took 30 + 499 us.
    assert_eq!(course.run_time_ns, Some(498 * PERIOD + 1_000 + 529_000));
    assert_eq!(course.wake_to_sent[9], Some((4_700, 5_000)), "slots 19 and 20");
    assert_eq!(course.wake_to_sent[10], Some((4_700, 7_004_700)), "slots 21 and 22");
    assert_eq!((course.unanswered[14], course.round_trip[14]), (1, Some((59_000, 59_000))), "slot 30 is lost");
    assert_eq!(course.unanswered.iter().sum::<u64>(), 1);
    assert_eq!(course.round_trip.last(), Some(&Some((529_000, 529_000))));
    let short = report.trials[1].course.as_ref().unwrap();
    assert_eq!((short.slots, short.slots_per_column, short.run_time_ns), (3, 1, Some(2 * PERIOD + 33_000)));
}

#[test]
fn bins_of_equal_width_are_shown_next_to_published_ones() {
    // 30 to 529 us in steps of 1 us, one of them lost.
    let mut legs = rising(500);
    legs[7] = None;
    let table = |metric| HistogramSpec { metric, bin: Nanos(100_000), bins: 4 };
    let elsewhere = Published { name: "theirs".into(), histogram: vec![1, 2, 3, 40_000, 5], ..Published::default() };
    let given = || [open_loop(vec![trial(TrialStatus::Valid, &legs)])];
    let report = analysed_with(&given(), |m| {
        m.plan.report.histogram = Some(table(Metric::RoundTrip));
        m.plan.report.published = vec![elsewhere];
    });
    let bins = report.conditions[0].bins.as_ref().unwrap();
    assert_eq!((bins.counts.as_slice(), bins.without), ([69, 100, 100, 100, 130].as_slice(), 1));
    let text = render_terminal(&report, 100, false);
    let at = text.find("round trip in bins").unwrap();
    insta::assert_snapshot!("bins", text[at..].lines().take(4).collect::<Vec<_>>().join("\n"));
    assert!(render_html(&report).contains("theirs<span class=\"interval\">published, other hardware</span>"));
    let half = analysed_with(&given(), |m| m.plan.report.histogram = Some(table(Metric::HalfRoundTrip)));
    assert_eq!(half.conditions[0].bins.as_ref().unwrap().counts, [169, 200, 130, 0, 0]);
    let sender = analysed_with(&given(), |m| m.plan.report.histogram = Some(table(Metric::WakeToSent)));
    assert_eq!(sender.conditions[0].bins.as_ref().unwrap().counts, [500, 0, 0, 0, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Tests that the columns of a trial over time contain the worst value of each metric and count every slot once,
    /// whatever number of slots a column contains.
    #[test]
    fn no_column_drops_a_maximum(slots in 1..5_000_i64, late in 0..5_000_i64, lost in 0..5_000_i64) {
        let mut legs: Vec<_> = (0..slots).map(|k| Some([10_000, 5_000, 15_000 + k % 7])).collect();
        legs[(late % slots) as usize] = Some([10_000, 5_000, 9_000_000]);
        legs[(lost % slots) as usize] = None;
        let report = analysed(&[open_loop(vec![trial(TrialStatus::Valid, &legs)])]);
        let course = report.trials[0].course.as_ref().unwrap();
        let most = |columns: &[Range]| columns.iter().flatten().map(|r| r.1).max();
        let condition = &report.conditions[0];
        for metric in [Metric::RoundTrip, Metric::WakeToSent, Metric::WakePeriod] {
            prop_assert_eq!(most(course.columns(metric)), condition.metric(metric).and_then(|m| m.max_ns));
        }
        prop_assert_eq!(course.unanswered.iter().sum::<u64>(), 1);
        prop_assert_eq!(course.slots.div_ceil(course.slots_per_column), course.unanswered.len() as u64);
        prop_assert!(course.unanswered.len() <= 480);
        let over_time = report.trials[0].over_time.as_ref().unwrap();
        for (metric, columns) in
            [(Metric::RoundTrip, &over_time.round_trip), (Metric::FromIntended, over_time.from_intended.as_ref().unwrap())]
        {
            let known = condition.metric(metric).unwrap();
            prop_assert_eq!(columns.max_ns.iter().flatten().max().copied(), known.max_ns);
            prop_assert_eq!(columns.min_ns.iter().flatten().min().copied(), known.min_ns);
            prop_assert_eq!(columns.median_ns.len() as u64, over_time.slots.div_ceil(over_time.slots_per_column));
        }
        prop_assert_eq!(over_time.unanswered.iter().map(|u| u.1).sum::<u64>(), 1);
    }
}

#[test]
fn a_quantile_among_lost_messages_has_no_value() {
    let mut legs = rising(1_000);
    legs.iter_mut().step_by(10).for_each(|l| *l = None);
    let report = analysed(&[open_loop(vec![trial(TrialStatus::Valid, &legs)])]);
    let figures = serde_json::to_value(&report.conditions[0].round_trip).unwrap();
    assert_eq!(figures["quantiles"][2], serde_json::json!({"q": 0.99, "value_ns": null, "beyond": "lost"}));
    assert!(figures.get("rule_of_three").is_none());
    let p90 = &figures["quantiles"][1];
    assert_eq!((&p90["high_ns"], &p90["high_beyond"]), (&serde_json::Value::Null, &"lost".into()));
    let lost: Vec<_> = report.findings.iter().filter(|f| f.level == FindingLevel::Failed).collect();
    assert!(lost[0].text.contains("100 of 1,000 messages were lost"), "{}", lost[0].text);
}

/// Tests a late sender with `on_overrun: skip`: no message is lost, and no warning reports a loss.
#[test]
fn what_was_not_sent_is_not_lost() {
    let mut rows = trial(TrialStatus::Valid, &rising(5_000));
    rows.slots.iter_mut().skip(5).step_by(10).take(499).for_each(skip);
    let report = analysed(&[open_loop(vec![rows.clone()])]);
    let condition = serde_json::to_value(&report.conditions[0]).unwrap();
    assert_eq!((&condition["counts"]["lost"], &condition["counts"]["not_sent"]), (&0.into(), &499.into()));
    for metric in ["round_trip", "from_intended", "out"] {
        let p99_9 = &condition[metric]["quantiles"][3];
        assert_eq!(*p99_9, serde_json::json!({"q": 0.999, "value_ns": null, "beyond": "not_sent"}), "{metric}");
    }
    let text = &report.findings.iter().find(|f| f.code == "latency").unwrap().text;
    assert!(text.contains("; 1 in 10 is not sent;"), "{text}");
    assert!(text.contains("None lost, 499 not sent (1 in 10)."), "{text}");
    insta::assert_snapshot!("not_sent", render_terminal(&report, 100, false));
    assert!(render_markdown(&report).contains("| lost | not sent |"));
    assert!(render_csv(&report).contains(",not_sent,4501,0,0,499,1"));

    rows.slots.iter_mut().step_by(10).take(300).for_each(lose);
    let both = analysed(&[open_loop(vec![rows])]);
    let failed = &both.findings.iter().find(|f| f.level == FindingLevel::Failed).unwrap().text;
    assert!(failed.contains("of 5,000 messages, 300 were lost and 499 were not sent."), "{failed}");
    let text = &both.findings.iter().find(|f| f.code == "latency").unwrap().text;
    assert!(text.contains("; 1 in 6.3 is lost or not sent;"), "{text}");
    assert!(text.contains("300 lost (1 in 17), 499 not sent (1 in 10)."), "{text}");
}

#[test]
fn a_fine_quantile_reports_the_number_of_messages_it_needs() {
    let ask = |m: &mut Manifest| m.plan.report.quantiles = vec!["0.99".into(), "0.9999999999".into()];
    let report = analysed_with(&[open_loop(vec![trial(TrialStatus::Valid, &scattered(400))])], ask);
    assert_eq!(report.view.quantiles, [0.5, 0.99, 0.9999999999]);
    let fine = report.conditions[0].round_trip.as_ref().unwrap().quantile(0.9999999999);
    assert_eq!(fine, Some(&QuantileReport::Needs { q: 0.9999999999, needs: 36_888_794_540 }));
    let hint = &report.findings.iter().find(|f| f.code == "needs_more").unwrap().text;
    assert!(hint.starts_with("p99.99999999 needs 36,888,794,540 messages"), "{hint}");
}

#[test]
fn nothing_answered_is_a_finding_with_its_reason() {
    let mut nothing = trial(TrialStatus::Valid, &vec![None; 400]);
    nothing.finding = Some("the pong was seen, but its policy `reliability` is incompatible.".into());
    let report = analysed(&[open_loop(vec![nothing])]);
    let condition = &report.conditions[0];
    assert_eq!((condition.status, condition.counts.lost), (ConditionStatus::Valid, 400));
    assert_eq!(condition.round_trip.as_ref().unwrap().n, 0);
    assert_eq!(condition.out, None);
    let text = &report.findings[0].text;
    assert!(text.contains("none of 400 messages was answered (the pong was seen, but its policy"), "{text}");
}

#[test]
fn stop_and_wait_has_no_intended_time() {
    let mut rows = trial(TrialStatus::Valid, &rising(400));
    rows.slots.iter_mut().for_each(|s| s.intended_ns = NO_TIME);
    let report = analysed(&[given(Rate::Max, vec![rows])]);
    let condition = serde_json::to_value(&report.conditions[0]).unwrap();
    for absent in ["from_intended", "send_lateness", "wake_period", "period_ns"] {
        assert!(condition.get(absent).is_none(), "{absent}");
    }
    assert_eq!(condition["worst"][0]["round_trip_ns"], 429_000);
    assert!(report.conditions[0].name.ends_with("stop-and-wait"));
}

#[test]
fn an_invalid_trial_is_named_and_left_out() {
    let slow: Vec<_> = (0..400).map(|_| Some([1, 1, 900_000_000])).collect();
    let trials = vec![trial(TrialStatus::Valid, &rising(400)), trial(TrialStatus::Invalid, &slow)];
    let warn = |m: &mut Manifest| {
        m.warnings.push(Warning::new("agent_lost", Severity::Invalid, "the agent was lost", "").at_trial(1));
    };
    let report = analysed_with(&[open_loop(trials)], warn);
    let condition = &report.conditions[0];
    assert_eq!((condition.status, condition.trials), (ConditionStatus::Valid, 2));
    assert_eq!((&condition.trial_ids, &condition.used_trial_ids), (&vec![0, 1], &vec![0]));
    assert_eq!(condition.counts.scheduled, 400);
    let text = &report.findings[0].text;
    assert!(text.starts_with("Not to be trusted: trial 1 ") && text.contains("the agent was lost"), "{text}");

    let alone = analysed(&[open_loop(vec![trial(TrialStatus::Invalid, &slow)])]);
    assert_eq!(alone.conditions[0].status, ConditionStatus::Invalid);
    assert_eq!(alone.conditions[0].counts.answered, 400, "figures are shown, marked");
}

#[test]
fn a_trial_that_was_cut_off_counts() {
    let trials = vec![trial(TrialStatus::Running, &rising(400)), trial(TrialStatus::Pending, &[])];
    let report = analysed(&[open_loop(trials)]);
    assert_eq!((report.status, report.conditions[0].status), (ReportStatus::Incomplete, ConditionStatus::Incomplete));
    assert_eq!(report.conditions[0].used_trial_ids, vec![0]);
    assert_eq!(report.conditions[0].counts.answered, 400);
}

#[test]
fn trials_are_no_neighbours() {
    // In each trial, late messages never follow each other; across the border between two trials they would.
    let legs: Vec<_> = (0..200).map(|k| Some([10_000, 5_000, if k % 2 == 0 { 90_000 } else { 15_000 }])).collect();
    let trials = vec![trial(TrialStatus::Valid, &legs), trial(TrialStatus::Valid, &legs)];
    let report = analysed(&[open_loop(trials)]);
    let round_trip = report.conditions[0].round_trip.as_ref().unwrap();
    let Some(QuantileReport::Value { autocorrelation: Some(r), too_narrow, .. }) = round_trip.quantile(0.5) else {
        panic!("{round_trip:?}")
    };
    assert!(*r < -0.99 && !too_narrow, "{r}");
}

/// Makes a trial with the values of [`rising`] in an order without correlation between neighbours.
fn scattered(n: usize) -> Vec<Option<[i64; 3]>> {
    let mut legs = rising(n as i64);
    let mut random = Random(5);
    (1..n).rev().for_each(|k| legs.swap(k, random.next() as usize % (k + 1)));
    legs
}

#[test]
fn dependent_messages_are_worth_fewer_and_their_intervals_wider() {
    let scattered = analysed(&[open_loop(vec![trial(TrialStatus::Valid, &scattered(4_000))])]);
    let rising = analysed(&[open_loop(vec![trial(TrialStatus::Valid, &rising(4_000))])]);
    let median = |report: &Report| report.conditions[0].round_trip.as_ref().unwrap().quantile(0.5).unwrap().clone();
    let QuantileReport::Value {
        value_ns, low_ns, high_ns: Some(high_ns), effective_n: 4_000, too_narrow: false, ..
    } = median(&scattered)
    else {
        panic!("{:?}", median(&scattered))
    };
    let QuantileReport::Value {
        value_ns: same,
        low_ns: low,
        high_ns: Some(high),
        effective_n: ..100,
        too_narrow: true,
        ..
    } = median(&rising)
    else {
        panic!("{:?}", median(&rising))
    };
    assert_eq!(same, value_ns);
    assert!(low < low_ns && high > high_ns);
    let told = |report: &Report, code: &str| report.findings.iter().find(|f| f.code == code).map(|f| f.text.clone());
    assert_eq!((told(&scattered, "clustered"), told(&scattered, "too_narrow")), (None, None));
    let text = told(&rising, "clustered").unwrap();
    assert!(
        text.starts_with(
            "Late messages come in clusters, and this makes the intervals wider: for p50, the 4,000 messages of udp"
        ),
        "{text}"
    );
    assert!(told(&rising, "too_narrow").unwrap().contains("such as that of p50 for udp over veth, 64 B, 1 kHz,"));
    // The effective number of slots is too small for p99: its interval is the widest possible, and marked.
    let p99 = rising.conditions[0].round_trip.as_ref().unwrap().quantile(0.99).unwrap();
    let QuantileReport::Value { high_ns: Some(high), effective_n: ..368, too_narrow: true, .. } = p99 else {
        panic!("{p99:?}")
    };
    assert!(*high >= rising.conditions[0].round_trip.as_ref().unwrap().max_ns.unwrap());
    // A maximum of dependent messages says less about all messages, or nothing if the dependence does not end.
    let rule = |report: &Report| {
        let figures = report.conditions[0].round_trip.as_ref().unwrap();
        (figures.independent_n, figures.rule_of_three)
    };
    assert_eq!(rule(&scattered), (Some(4_000), Some(3.0 / 4_000.0)));
    assert_eq!(rule(&rising), (None, None));
    let (independent, share) = rule(&analysed(&[open_loop(vec![trial(TrialStatus::Valid, &stalls(4_000))])]));
    let independent = independent.unwrap();
    assert!((100..1_500).contains(&independent), "{independent}");
    assert_eq!(share, Some(3.0 / independent as f64));
}

/// Makes a trial in which every stall delays ten consecutive messages; stalls come at random.
fn stalls(n: usize) -> Vec<Option<[i64; 3]>> {
    let mut random = Random(7);
    let mut left = 0;
    let mut leg = || {
        left = if random.next().is_multiple_of(50) { 10 } else { (left - 1).max(0) };
        Some([10_000, 5_000, 15_000 + (random.next() % 1_000) as i64 + if left > 0 { 200_000 } else { 0 }])
    };
    (0..n).map(|_| leg()).collect()
}

#[test]
fn a_warm_up_is_reported_and_stays_in_the_figures() {
    let legs = |seed, warm: usize| -> Vec<Option<[i64; 3]>> {
        let mut random = Random(seed);
        let leg = |k| 15_000 + if k < warm { 40_000 } else { 0 } + (random.next() % 10_000) as i64;
        (0..4_000).map(leg).map(|back| Some([10_000, 5_000, back])).collect()
    };
    let slow = |warm: [usize; 3]| {
        let mut trials: Vec<_> =
            warm.iter().zip(1..).map(|(w, seed)| trial(TrialStatus::Valid, &legs(seed, *w))).collect();
        trials.iter_mut().flat_map(|t| &mut t.slots[..10]).for_each(|s| s.warm_up = true);
        analysed(&[open_loop(trials)])
    };
    let report = slow([400, 400, 0]);
    let condition = &report.conditions[0];
    let Some(WarmUpReport { slots, of: 3_990, before_ns, after_ns, trials: 2 }) = condition.warm_up else {
        panic!("{:?}", condition.warm_up)
    };
    assert!((380..=400).contains(&slots) && before_ns > 70_000 && after_ns < 40_000, "{slots} {before_ns} {after_ns}");
    assert_eq!(condition.counts.scheduled, 3 * 3_990, "nothing is left out");
    let text = &report.findings.iter().find(|f| f.code == "warm_up").unwrap().text;
    let begin = format!(
        "udp over veth, 64 B, 1 kHz: the first {slots} of 3,990 messages of a trial are slower than the rest (median 7"
    );
    assert!(text.starts_with(&begin), "{text}");
    assert!(text.ends_with("`--set measure.warm_up=410` leaves them out."), "{text}");
    // A warm-up in only one of three trials may be due to chance or to a stall.
    assert_eq!(slow([400, 0, 0]).conditions[0].warm_up, None);
}

/// Makes a trial whose latencies are 30 us plus an exponentially distributed time.
fn exponential(n: usize) -> Vec<Option<[i64; 3]>> {
    let mut random = Random(11);
    (0..n).map(|_| Some([10_000, 5_000, 15_000 + (-20_000.0 * (1.0 - random.unit()).ln()) as i64])).collect()
}

#[test]
fn the_tail_is_estimated_beyond_what_was_measured() {
    let legs = exponential(6_000);
    let trials = || vec![trial(TrialStatus::Valid, &legs[..3_000]), trial(TrialStatus::Valid, &legs[3_000..])];
    let report = analysed(&[open_loop(trials())]);
    let round_trip = report.conditions[0].round_trip.as_ref().unwrap();
    let Some(TailReport::Estimate { one_in: 100_000, level_ns, low_ns, high_ns, clusters, .. }) = round_trip.tail
    else {
        panic!("{:?}", round_trip.tail)
    };
    let truth = 30_000 + (20_000.0 * 1e5f64.ln()) as i64;
    assert!(low_ns < truth && truth < high_ns && low_ns < level_ns && level_ns < high_ns, "{low_ns} to {high_ns}");
    let text = &report.findings.iter().find(|f| f.code == "tail_estimate").unwrap().text;
    assert!(
        text.starts_with("Tail estimate, not a bound: one message in 100,000 of udp over veth, 64 B, 1 kHz "),
        "{text}"
    );
    assert!(text.ends_with(&format!("estimated from {clusters} clusters of late messages.")), "{text}");
    assert!(report.conditions[0].from_intended.as_ref().unwrap().tail.is_some());
    assert_eq!(report.conditions[0].half_round_trip.as_ref().unwrap().tail, None);

    // A level that needs more messages has a reason instead of a value. A lost message counts as later than every level.
    let reason = |given: Given, one_in: u64| {
        let report = analysed_with(&[given], |m| m.plan.report.tail = Some(TailSpec { one_in }));
        let round_trip = report.conditions[0].round_trip.as_ref().unwrap().tail.clone();
        assert!(matches!(round_trip, Some(TailReport::NotApplicable { .. })), "{round_trip:?}");
        report.findings.iter().find(|f| f.code == "no_tail_estimate").unwrap().text.clone()
    };
    assert_eq!(
        reason(open_loop(trials()), 1_000_000),
        "No tail estimate of 1 in 1,000,000 for udp over veth, 64 B, 1 kHz: the messages are too few for this rarity: \
         they allow at most 1 in 600000, which is 100 times their number."
    );
    let mut lossy = trials();
    lose(&mut lossy[1].slots[70]);
    let text = reason(open_loop(lossy), 100_000);
    assert!(text.ends_with(": unanswered messages (1) are later than any time that an estimate could give."), "{text}");
}

#[test]
fn advice_names_slots_and_time() {
    let report = analysed(&[open_loop(vec![trial(TrialStatus::Valid, &scattered(1_000))])]);
    let hint = report.findings.iter().find(|f| f.code == "needs_more").unwrap();
    assert_eq!(
        hint.text,
        "p99.9 needs 3,688 messages; udp over veth, 64 B, 1 kHz has 1,000. \
         `--set measure.slots=4000` would give it (4\u{202f}s a trial)."
    );
}

#[test]
fn the_document_comes_back_from_its_text() {
    let mut legs = rising(400);
    legs[3] = None;
    let report = analysed(&[open_loop(vec![trial(TrialStatus::Valid, &legs)])]);
    let text = render_json(&report);
    assert!(serde_json::from_str::<Report>(&text).unwrap() == report);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn quantiles_are_those_of_a_sort(
        trials in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.97, 1i64..5_000_000), 150..400), 1..4),
    ) {
        let legs = |v: &Option<i64>| v.map(|back| [10_000, 5_000, back]);
        let made = trials.iter().map(|t| trial(TrialStatus::Valid, &t.iter().map(legs).collect::<Vec<_>>()));
        let report = analysed(&[open_loop(made.collect())]);
        let mut sorted: Vec<i64> = trials.iter().flatten().map(|v| v.map_or(i64::MAX, |b| b + 15_000)).collect();
        sorted.sort_unstable();
        let round_trip = report.conditions[0].round_trip.as_ref().unwrap();
        prop_assert_eq!(round_trip.scheduled, sorted.len() as u64);
        for (q, per_mille) in [(0.5, 500u64), (0.9, 900), (0.99, 990)] {
            let exact = sorted[(per_mille * sorted.len() as u64).div_ceil(1_000) as usize - 1];
            match round_trip.quantile(q).unwrap() {
                QuantileReport::Value { value_ns, low_ns, high_ns, .. } => {
                    prop_assert_eq!(*value_ns, exact);
                    prop_assert!(low_ns <= value_ns && high_ns.is_none_or(|h| h >= *value_ns));
                }
                QuantileReport::Beyond { .. } => prop_assert_eq!(exact, i64::MAX),
                QuantileReport::Needs { needs, .. } => prop_assert!(*needs > sorted.len() as u64),
            }
        }
    }
}

/// Tests that given timestamps of the kernel give exact legs. A message without a kernel timestamp still has a row of
/// samples of the pong end.
#[test]
fn legs_to_the_kernels_stamp_are_exact_and_only_of_messages_that_have_one() {
    let stamped = |every: u64| {
        let mut all = trial(TrialStatus::Valid, &rising(1_000));
        for (row, echo) in all.slots.iter_mut().zip(&mut all.echoes).filter(|(row, _)| row.seq % every == 0) {
            echo.kernel_rx_ns = echo.in_ns - 4_000;
            row.kernel_rx_ns = row.receive_ns - 7_000;
        }
        analysed(&[open_loop(vec![all])])
    };
    let report = stamped(1);
    let condition = &report.conditions[0];
    for (network, user, less) in [(Metric::OutNetwork, Metric::Out, 4_000), (Metric::BackNetwork, Metric::Back, 7_000)]
    {
        let [network, user] = [network, user].map(|m| condition.metric(m).expect("figures"));
        assert_eq!((network.n, network.max_ns), (1_000, user.max_ns.map(|ns| ns - less)));
        for q in [0.5, 0.9, 0.99] {
            let [network, user] = [network, user].map(|m| m.quantile(q).and_then(QuantileReport::value_ns).unwrap());
            assert_eq!(network, user - less, "{q}");
        }
        assert!(network.tail.is_none(), "an estimate is of round trips");
    }
    let worst = &condition.worst[0];
    assert_eq!(worst.out_network_ns.zip(worst.out_ns).map(|(network, user)| user - network), Some(4_000));
    assert_eq!(worst.back_network_ns.zip(worst.back_ns).map(|(network, user)| user - network), Some(7_000));

    let some = stamped(10);
    let condition = &some.conditions[0];
    assert_eq!(condition.out_network.as_ref().map(|m| (m.n, m.scheduled)), Some((100, 100)));
    assert_eq!(condition.out.as_ref().map(|m| m.n), Some(1_000));
    assert!(some.warnings.iter().all(|w| w.problem.code != "pong_rows_missing"), "{:?}", some.warnings);
    assert_eq!(render_json(&some).matches("out_network\"").count(), 1);

    // Without stamps the report has no field for them.
    let none = analysed(&[open_loop(vec![trial(TrialStatus::Valid, &rising(1_000))])]);
    assert!(!render_json(&none).contains("_network"));
    let mut same = report.conditions[0].clone();
    (same.out_network, same.back_network) = (None, None);
    same.worst.iter_mut().for_each(|m| (m.out_network_ns, m.back_network_ns) = (None, None));
    assert_eq!(same, none.conditions[0], "stamps change no other figure");
}

/// Tests a trial of 1 s at 1 kHz whose first 300 ms are slow: the chosen range leaves the slow part out, and the
/// figures over the whole trial do not change.
#[test]
fn a_chosen_range_has_figures_in_addition_to_the_whole_trial() {
    let legs = |k: i64| Some([if k < 300 { 2_000_000 } else { 10_000 + 100 * k }, 5_000, 15_000]);
    let given = || [open_loop(vec![trial(TrialStatus::Valid, &(0..1_000).map(legs).collect::<Vec<_>>())])];
    let range = |from: i64, to: i64| RangeSpec { from: Nanos::from_millis(from), to: Nanos::from_millis(to) };
    let asked = |asked: Option<RangeSpec>| {
        analysed_with(&given(), |m| (m.plan.report.range, m.plan.report.above) = (asked, Some(Nanos(1_000_000))))
    };
    let (whole, report) = (asked(None), asked(Some(range(400, 800))));
    let condition = &report.conditions[0];
    let chosen = condition.range.as_ref().expect("a range");
    assert_eq!((chosen.from_ns, chosen.to_ns, chosen.messages, chosen.of), (400_000_000, 800_000_000, 400, 1_000));
    // The `out` leg of slots 400 to 799 is 10 us plus 0.1 us times the slot number.
    let out = &chosen.metrics["out"];
    assert_eq!((out.n, out.min_ns, out.max_ns), (400, Some(50_000), Some(89_900)));
    assert_eq!(out.mean_ns, Some(69_950.0));
    // The expected standard deviation is for 400 equal steps of 100 ns.
    assert!((out.stddev_ns.unwrap() - 100.0 * ((400.0f64 * 401.0) / 12.0).sqrt()).abs() < 0.01, "{:?}", out.stddev_ns);
    for (q, ns) in [(0.5, 69_900), (0.9, 85_900), (0.99, 89_500)] {
        assert_eq!(out.quantile(q).and_then(QuantileReport::value_ns), Some(ns), "{q}");
    }
    let counts = |of: &AboveReport| (of.metrics["out"].messages, of.metrics["out"].of, of.metrics["out"].share);
    assert_eq!(chosen.above.as_ref().map(counts), Some((0, 400, 0.0)));
    assert_eq!(condition.above.as_ref().map(counts), Some((300, 1_000, 0.3)));
    assert_eq!(ConditionReport { range: None, ..condition.clone() }, whole.conditions[0], "the whole stays as it is");

    let text = "chosen range: 400 ms to 800 ms of each trial, 400 of 1,000 messages";
    for form in [render_terminal(&report, 80, false), render_markdown(&report), render_html(&report)] {
        let plain = form.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(text) && plain.contains("300 (30 %)"), "{plain}");
    }
    for form in [render_terminal(&whole, 80, false), render_markdown(&whole), render_html(&whole)] {
        assert!(!form.contains("chosen range:") && form.contains("300 (30 %)"), "{form}");
    }

    // A range beyond the end of the trial gives a warning.
    let beyond = asked(Some(range(900, 1_500)));
    assert_eq!(beyond.conditions[0].range.as_ref().map(|c| c.messages), Some(100));
    let warning = beyond.warnings.iter().find(|w| w.problem.code == "range_beyond_end").expect("a warning");
    assert!(
        warning.problem.what.contains("1 of 1 trials end before the range ends, the first after 1 s"),
        "{}",
        warning.problem.what
    );
    assert!(report.warnings.iter().all(|w| w.problem.code != "range_beyond_end"), "{:?}", report.warnings);
    let after = asked(Some(range(2_000, 3_000)));
    assert_eq!(after.conditions[0].range.as_ref().map(|c| (c.messages, c.metrics.len())), Some((0, 0)));
    assert!(after.warnings.iter().any(|w| w.problem.code == "range_beyond_end"));
}
