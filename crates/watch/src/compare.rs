//! Compares captures of a system, topic by topic.

use crate::topics::{CaptureRecord, Topic, topics};
use std::collections::{BTreeMap, BTreeSet};
use tailbound_document::{
    ComparedCapture, ComparedLateness, ComparedTopic, VerdictWord, WatchComparison, WatchReport, WatchedWriter,
};
use tailbound_stats::Quantile;
use tailbound_stats::compare::{Cell, Chunks, Group, Statistic, Verdict, judge, within_runs};

/// The compared quantiles, and how many samples each needs, as in reports.
const QUANTILES: [(&str, f64, usize); 2] = [("p50", 0.5, 1), ("p99", 0.99, 368)];

/// Compares earlier captures of a system with later ones, at least one of each. Each capture is a trial: with several of each side, there
/// are verdicts by the variation between them. `margin`: the largest difference of equal sides, such as 0.05.
pub fn compare(a: &[CaptureRecord], b: &[CaptureRecord], margin: Option<f64>) -> WatchComparison {
    let sides = [a, b].map(|side| side.iter().map(topics).collect::<Vec<_>>());
    let names = |side: &[BTreeMap<String, Topic<'_>>]| -> BTreeSet<String> {
        side.iter().flat_map(|capture| capture.keys().cloned()).collect()
    };
    let [in_a, in_b] = [names(&sides[0]), names(&sides[1])];
    let is_in_all = |name: &String| sides.iter().flatten().all(|capture| capture.contains_key(name));
    let (common, not_in_all): (Vec<&String>, Vec<&String>) = in_a.intersection(&in_b).partition(|name| is_in_all(name));
    let of =
        |name: &str, side: usize| -> Vec<&Topic<'_>> { sides[side].iter().map(|capture| &capture[name]).collect() };
    let mut topics: Vec<ComparedTopic> =
        common.iter().map(|name| compared(name, [&of(name, 0), &of(name, 1)])).collect();
    if a.len().max(b.len()) > 1 {
        judged(&mut topics, |name| [of(name, 0), of(name, 1)], margin);
    }
    let growth = |topic: &ComparedTopic| topic.lateness.last().and_then(|late| late.ratio).unwrap_or(0.0);
    topics.sort_by(|a, b| growth(b).total_cmp(&growth(a)));
    let first = |side: &[CaptureRecord]| side.first().map(|record| capture(&record.report)).unwrap_or_default();
    let all_unknown = |side: &[CaptureRecord]| side.iter().map(|record| unknown(&record.report)).sum();
    WatchComparison {
        a: first(a),
        b: first(b),
        captures: (a.len() as u64, b.len() as u64),
        topics,
        only_a: in_a.difference(&in_b).cloned().collect(),
        only_b: in_b.difference(&in_a).cloned().collect(),
        not_in_all: not_in_all.into_iter().cloned().collect(),
        unknown: (all_unknown(a), all_unknown(b)),
    }
}

/// Adds the verdicts by the variation between captures.
fn judged<'a>(topics: &mut [ComparedTopic], of: impl Fn(&str) -> [Vec<&'a Topic<'a>>; 2], margin: Option<f64>) {
    let logarithms = |side: &[&Topic<'_>], q: f64| -> Vec<f64> {
        side.iter().map(|topic| (quantile(&sorted(&topic.late_ns), q) as f64).ln()).collect()
    };
    let group = |topic: &ComparedTopic| {
        let [a, b] = of(&topic.topic);
        // What has no ratio is not judged: times of different kinds, or not above zero.
        let with_ratio = topic.lateness.iter().filter(|late| late.ratio.is_some());
        let q =
            |late: &ComparedLateness| QUANTILES.iter().find(|(name, ..)| *name == late.statistic).map(|(_, q, _)| *q);
        Group { cells: with_ratio.filter_map(q).map(|q| Cell { a: logarithms(&a, q), b: logarithms(&b, q) }).collect() }
    };
    let groups: Vec<Group> = topics.iter().map(group).collect();
    for (topic, judged) in topics.iter_mut().zip(judge(&groups, margin)) {
        let with_ratio = topic.lateness.iter_mut().filter(|late| late.ratio.is_some());
        for (late, judged) in with_ratio.zip(judged) {
            late.between = judged.interval.map(|(low, high)| (low.exp(), high.exp()));
            late.verdict = Some(match judged.verdict {
                Verdict::Lower => VerdictWord::Faster,
                Verdict::Higher => VerdictWord::Slower,
                Verdict::Equal => VerdictWord::Equal,
                Verdict::NoDifference { .. } => VerdictWord::NoDifferenceFound,
                Verdict::NotEnough { more_trials } => {
                    late.more_captures = Some(more_trials as u64);
                    VerdictWord::NotEnoughData
                }
            });
        }
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

fn compared(name: &str, sides: [&[&Topic<'_>]; 2]) -> ComparedTopic {
    let sum = |of: &dyn Fn(&WatchedWriter) -> u64| {
        let side = |side: &[&Topic<'_>]| side.iter().flat_map(|topic| &topic.writers).map(|writer| of(writer)).sum();
        (side(sides[0]), side(sides[1]))
    };
    // The mean of the captures.
    let rate_hz = |side: &[&Topic<'_>]| {
        let all: Option<f64> = side.iter().map(|topic| topic.rate_hz()).sum();
        all.map(|all| all / side.len() as f64)
    };
    ComparedTopic {
        topic: name.to_owned(),
        samples: sum(&|writer| writer.samples),
        rate_hz: (rate_hz(sides[0]), rate_hz(sides[1])),
        again: sum(&|writer| writer.protocol.again),
        lost: sum(&|writer| writer.protocol.lost),
        lateness: lateness(sides),
    }
}

fn sorted(values: &[i64]) -> Vec<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted
}

/// A quantile of values in their order; 0 without values.
fn quantile(sorted: &[i64], q: f64) -> i64 {
    let rank = ((sorted.len() as f64 * q).ceil() as usize).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

fn lateness(sides: [&[&Topic<'_>]; 2]) -> Vec<ComparedLateness> {
    let is_above = |side: &[&Topic<'_>]| side.iter().any(|topic| topic.is_above_fastest);
    let is_above_fastest = (is_above(sides[0]), is_above(sides[1]));
    let all = || sides.into_iter().flatten();
    let is_alike = all().all(|topic| topic.is_above_fastest == is_above_fastest.0);
    let statistic = |(_, q, _): &(&str, f64, usize)| Quantile::from_f64(*q).ok().map(Statistic::Quantile);
    let statistics: Vec<Statistic> = QUANTILES.iter().filter_map(statistic).collect();
    // With several captures, their variation counts, and not the one within each of them.
    let within = match sides {
        [[a], [b]] => within_runs(&chunks(&a.late_ns), &chunks(&b.late_ns), &statistics),
        _ => vec![None; statistics.len()],
    };
    let sorted = sides.map(|side| side.iter().map(|topic| sorted(&topic.late_ns)).collect::<Vec<_>>());
    let least = sorted.iter().flatten().map(Vec::len).min().unwrap_or(0);
    let one = |of: usize, within: Option<(f64, f64)>| {
        let (statistic, q, needs) = &QUANTILES[of];
        if least < *needs {
            return None;
        }
        let [a, b] = sorted.each_ref().map(|side| mean(side.iter().map(|values| quantile(values, *q))));
        let ratio = a.zip(b).filter(|_| is_alike).map(|(a, b)| b / a);
        // Values that are not above zero have no geometric mean.
        let [first_a, first_b] = sorted.each_ref().map(|side| side.first().map_or(0, |values| quantile(values, *q)));
        Some(ComparedLateness {
            statistic: (*statistic).to_owned(),
            value_ns: (a.map_or(first_a, |a| a.round() as i64), b.map_or(first_b, |b| b.round() as i64)),
            is_above_fastest,
            ratio,
            verdict: None,
            between: None,
            more_captures: None,
            within: within.filter(|_| is_alike).map(|(low, high)| (low.exp(), high.exp())),
        })
    };
    within.into_iter().enumerate().filter_map(|(of, within)| one(of, within)).collect()
}

fn chunks(values: &[i64]) -> [Chunks; 1] {
    let mut chunks = Chunks::default();
    chunks.push_all(values, i64::MAX);
    [chunks]
}

/// The geometric mean; `None` = a value is not above zero.
fn mean(values: impl ExactSizeIterator<Item = i64>) -> Option<f64> {
    let count = values.len() as f64;
    let sum: Option<f64> = values.map(|value| (value > 0).then(|| (value as f64).ln())).sum();
    sum.filter(|_| count > 0.0).map(|sum| (sum / count).exp())
}
