//! Two captures side by side: known changes are found, and what is alike is not called different.

use super::wire::{PING, PONG, data, info_ts, writer_announced};
use super::{BEGIN, Loopback, MS, US};
use std::collections::BTreeMap;
use tailbound_document::VerdictWord;
use tailbound_watch::{CaptureRecord, compare, guid_words};

/// A capture of 2,000 samples of a topic, `period_ns` apart, whose lateness is `late` of the number of a sample.
pub fn capture(topic: &str, period_ns: i64, late: impl Fn(i64) -> i64) -> CaptureRecord {
    let mut all = Loopback::new();
    all.watch.keep_samples();
    all.send(0, PING, PONG, &[writer_announced(PING, topic, "T")]);
    for n in 1..=2000 {
        all.send(n * period_ns, PING, PONG, &[info_ts(BEGIN + n * period_ns - late(n)), data(n, 100)]);
    }
    let mut late_ns: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for sample in all.watch.take_samples() {
        late_ns.entry(guid_words(sample.writer)).or_default().push(sample.stamp_ns - sample.source_ns.unwrap());
    }
    CaptureRecord { report: all.report(), late_ns }
}

/// Between 50 and 60 us, and 1 ms in every fiftieth sample.
fn usual(n: i64) -> i64 {
    if n % 50 == 0 { MS } else { 50 * US + n * 7_919 % (10 * US) }
}

#[test]
fn a_known_change_of_lateness_and_rate_is_found() {
    let before = capture("rt/scan", MS, usual);
    let after = capture("rt/scan", 2 * MS, |n| 3 * usual(n));
    let comparison = compare(&[before], &[after], None);
    let topic = &comparison.topics[0];
    assert_eq!((topic.topic.as_str(), topic.samples), ("/scan", (2000, 2000)));
    let rates = [topic.rate_hz.0.unwrap(), topic.rate_hz.1.unwrap()];
    assert!((rates[0] - 1000.0).abs() < 0.1 && (rates[1] - 500.0).abs() < 0.1, "{rates:?}");
    let [p50, p99] = &topic.lateness[..] else { panic!("{topic:?}") };
    assert_eq!((p50.statistic.as_str(), p99.statistic.as_str()), ("p50", "p99"));
    assert_eq!(p99.value_ns, (MS, 3 * MS));
    for late in [p50, p99] {
        let ((low, high), ratio) = (late.within.unwrap(), late.ratio.unwrap());
        assert!((ratio - 3.0).abs() < 0.01 && low <= 3.05 && high >= 2.95 && low > 2.0, "{late:?}");
    }
}

#[test]
fn alike_captures_have_intervals_that_contain_one() {
    let comparison = compare(&[capture("rt/scan", MS, usual)], &[capture("rt/scan", MS, |n| usual(n + 17))], None);
    let p50 = &comparison.topics[0].lateness[0];
    let (low, high) = p50.within.unwrap();
    assert!(low < 1.0 && 1.0 < high && high < 1.1, "{p50:?}");
}

#[test]
fn topics_of_one_capture_alone_are_named_and_few_samples_have_no_interval() {
    let (a, mut b) = (capture("rt/a", MS, usual), capture("rt/b", MS, usual));
    let comparison = compare(std::slice::from_ref(&a), std::slice::from_ref(&b), None);
    assert_eq!((comparison.only_a.join(""), comparison.only_b.join("")), ("/a".into(), "/b".into()));
    assert!(comparison.topics.is_empty());
    b = a.clone();
    b.late_ns.values_mut().for_each(|late| late.truncate(200));
    let lateness = &compare(std::slice::from_ref(&a), std::slice::from_ref(&b), None).topics[0].lateness;
    assert_eq!((lateness.len(), lateness[0].within), (1, None), "{lateness:?}");
}

/// Captures that differ among each other by up to 10 %, times a factor.
fn several(factor: i64) -> Vec<CaptureRecord> {
    (0..5).map(|of| capture("rt/scan", MS, move |n| usual(n) * factor * (100 + of * 7 % 11) / 100)).collect()
}

#[test]
fn several_captures_of_each_side_have_verdicts() {
    let comparison = compare(&several(1), &several(2), None);
    assert_eq!(comparison.captures, (5, 5));
    for late in &comparison.topics[0].lateness {
        let ((low, high), ratio) = (late.between.unwrap(), late.ratio.unwrap());
        assert_eq!((late.verdict, late.within), (Some(VerdictWord::Slower), None), "{late:?}");
        assert!((ratio - 2.0).abs() < 0.01 && low < 2.0 && 2.0 < high && high < 2.3, "{late:?}");
    }
    let comparison = compare(&several(1), &several(1)[..3], None);
    for late in &comparison.topics[0].lateness {
        assert_eq!(late.verdict, Some(VerdictWord::NotEnoughData), "{late:?}");
        assert!(late.more_captures.unwrap() >= 1 && late.between.is_none(), "{late:?}");
    }
    let comparison = compare(&several(1), &several(1), Some(0.5));
    assert!(comparison.topics[0].lateness.iter().all(|late| late.verdict == Some(VerdictWord::Equal)));
}

#[test]
fn topics_that_one_capture_lacks_are_not_compared() {
    let mut b = several(1);
    b[2] = capture("rt/other", MS, usual);
    let comparison = compare(&several(1), &b, None);
    assert!(comparison.topics.is_empty());
    assert_eq!((comparison.not_in_all.join(""), comparison.only_b.join("")), ("/scan".into(), "/other".into()));
}
