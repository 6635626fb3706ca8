//! Compares two captures of a system, topic by topic.

use crate::topics::{CaptureRecord, Topic, topics};
use std::collections::BTreeMap;
use tailbound_document::{
    ComparedCapture, ComparedLateness, ComparedTopic, WatchComparison, WatchReport, WatchedWriter,
};
use tailbound_stats::Quantile;
use tailbound_stats::compare::{Chunks, Statistic, within_runs};

/// The compared quantiles, and how many samples each needs, as in reports.
const QUANTILES: [(&str, f64, usize); 2] = [("p50", 0.5, 1), ("p99", 0.99, 368)];

/// Compares an earlier capture with a later one.
pub fn compare(a: &CaptureRecord, b: &CaptureRecord) -> WatchComparison {
    let (in_a, in_b) = (topics(a), topics(b));
    let both = in_a.iter().filter_map(|(name, topic)| Some(compared(name, topic, in_b.get(name)?)));
    let mut topics: Vec<ComparedTopic> = both.collect();
    let growth = |topic: &ComparedTopic| topic.lateness.last().and_then(|late| late.ratio).unwrap_or(0.0);
    topics.sort_by(|a, b| growth(b).total_cmp(&growth(a)));
    let only = |of: &BTreeMap<String, Topic<'_>>, other: &BTreeMap<String, Topic<'_>>| {
        of.keys().filter(|name| !other.contains_key(*name)).cloned().collect()
    };
    WatchComparison {
        a: capture(&a.report),
        b: capture(&b.report),
        topics,
        only_a: only(&in_a, &in_b),
        only_b: only(&in_b, &in_a),
        unknown: (unknown(&a.report), unknown(&b.report)),
    }
}

/// Number of writers with samples whose topic is not known.
fn unknown(report: &WatchReport) -> u64 {
    let topics = report.topics.iter().filter(|topic| topic.shown().is_none());
    topics.flat_map(|topic| &topic.writers).filter(|writer| writer.samples > 0).count() as u64
}

fn capture(report: &WatchReport) -> ComparedCapture {
    ComparedCapture { place: report.place.clone(), begin_ns: report.begin_ns, duration_ns: report.duration_ns }
}

fn compared(name: &str, a: &Topic<'_>, b: &Topic<'_>) -> ComparedTopic {
    let sum = |of: &dyn Fn(&WatchedWriter) -> u64| {
        let side = |topic: &Topic<'_>| topic.writers.iter().map(|writer| of(writer)).sum();
        (side(a), side(b))
    };
    ComparedTopic {
        topic: name.to_owned(),
        samples: sum(&|writer| writer.samples),
        rate_hz: (a.rate_hz(), b.rate_hz()),
        again: sum(&|writer| writer.protocol.again),
        lost: sum(&|writer| writer.protocol.lost),
        lateness: lateness([a, b]),
    }
}

fn lateness([topic_a, topic_b]: [&Topic<'_>; 2]) -> Vec<ComparedLateness> {
    let (a, b) = (&topic_a.late_ns[..], &topic_b.late_ns[..]);
    let is_above_fastest = (topic_a.is_above_fastest, topic_b.is_above_fastest);
    let is_alike = is_above_fastest.0 == is_above_fastest.1;
    let sorted = |values: &[i64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted
    };
    let (in_a, in_b) = (sorted(a), sorted(b));
    let chunks = |values: &[i64]| {
        let mut chunks = Chunks::default();
        chunks.push_all(values, i64::MAX);
        [chunks]
    };
    let statistic = |(_, q, _): &(&str, f64, usize)| Quantile::from_f64(*q).ok().map(Statistic::Quantile);
    let statistics: Vec<Statistic> = QUANTILES.iter().filter_map(statistic).collect();
    let within = within_runs(&chunks(a), &chunks(b), &statistics);
    let one = |of: usize, within: Option<(f64, f64)>| {
        let (statistic, q, needs) = &QUANTILES[of];
        if in_a.len().min(in_b.len()) < *needs {
            return None;
        }
        let at = |values: &[i64]| values[((values.len() as f64 * q).ceil() as usize).clamp(1, values.len()) - 1];
        let value_ns = (at(&in_a), at(&in_b));
        let ratio = (value_ns.0 > 0 && is_alike).then(|| value_ns.1 as f64 / value_ns.0 as f64);
        let within = within.filter(|_| is_alike).map(|(low, high)| (low.exp(), high.exp()));
        Some(ComparedLateness { statistic: (*statistic).to_owned(), value_ns, is_above_fastest, ratio, within })
    };
    within.into_iter().enumerate().filter_map(|(of, within)| one(of, within)).collect()
}
