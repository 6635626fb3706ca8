//! Sums up how the events of a condition's trials were recorded.

use std::collections::BTreeMap;
use tailbound_document::{LevelCost, RecordingReport};
use tailbound_model::{Attribution, NotFollowed, RecordCounts, RecordedBy, Recorder, RecordingCost, Switches};
use tailbound_record::Record;

/// Names of the ends, level, and facility of a recording.
type Manner<'a> = (Vec<String>, &'a str, &'a str);

/// The ways in which agents recorded the events of trials without incidents, by end.
pub(crate) fn of_trials(record: &Record, trials: &[usize]) -> Vec<RecordingReport> {
    let seen: Vec<Switches> = trials.iter().flat_map(|id| record.switches(*id)).filter_map(Result::ok).collect();
    recordings(seen.iter())
}

/// The ways in which agents recorded these events, by end.
pub(crate) fn recordings<'a>(seen: impl Iterator<Item = &'a Switches>) -> Vec<RecordingReport> {
    let mut ways: BTreeMap<Manner, Vec<(&Recorder, &Switches)>> = BTreeMap::new();
    for seen in seen {
        if let Some(recorder) = &seen.recorder {
            let way = (seen.ends.clone(), level(recorder.level), by(recorder.by));
            ways.entry(way).or_default().push((recorder, seen));
        }
    }
    let report = |((ends, level, by), recorders): (Manner, Vec<(&Recorder, &Switches)>)| {
        let costs = || recorders.iter().filter_map(|(r, _)| r.cost);
        RecordingReport {
            ends,
            level: level.to_owned(),
            by: by.to_owned(),
            instead: recorders.first().and_then(|(r, _)| r.instead.clone()),
            per_message_ns: median(costs().map(|c| c.per_message_ns).collect()),
            unwatched_ns: median(costs().map(|c| c.unwatched_ns).collect()),
            others: others(recorders.iter().map(|(recorder, _)| *recorder)),
            not_followed: not_followed(recorders.iter().map(|(_, seen)| *seen)),
            records: sum(&recorders, |counts| counts.read),
            records_dropped: sum(&recorders, |counts| counts.dropped),
            trials: recorders.len() as u64,
        }
    };
    ways.into_iter().map(report).collect()
}

/// The sum of a number of records over trials; `None` if it is not known of one.
fn sum(recorders: &[(&Recorder, &Switches)], of: impl Fn(RecordCounts) -> u64) -> Option<u64> {
    recorders.iter().map(|(_, seen)| seen.records.map(&of)).sum()
}

/// Costs of the levels that were not recorded.
fn others<'a>(recorders: impl Iterator<Item = &'a Recorder>) -> Vec<LevelCost> {
    let mut levels: BTreeMap<&'static str, Vec<RecordingCost>> = BTreeMap::new();
    recorders.flat_map(|r| &r.others).for_each(|cost| levels.entry(level(cost.level)).or_default().push(*cost));
    let of = |(level, costs): (&str, Vec<RecordingCost>)| {
        let per_message_ns = median(costs.iter().map(|c| c.per_message_ns).collect())?;
        let unwatched_ns = median(costs.iter().map(|c| c.unwatched_ns).collect())?;
        Some(LevelCost { level: level.to_owned(), per_message_ns, unwatched_ns })
    };
    levels.into_iter().filter_map(of).collect()
}

/// Numbers of datagrams that were not followed, by the reason.
fn not_followed<'a>(seen: impl Iterator<Item = &'a Switches>) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, count) in seen.filter_map(|s| s.packets.as_ref()).flat_map(|p| &p.not_followed) {
        let word = match reason {
            NotFollowed::InPages => "in_pages",
            NotFollowed::Protected => "protected",
            NotFollowed::NoFirstFragment => "no_first_fragment",
            NotFollowed::Divided => "divided",
        };
        *sums.entry(word.to_owned()).or_default() += count;
    }
    sums
}

fn level(level: Attribution) -> &'static str {
    match level {
        Attribution::Machine => "machine",
        Attribution::Packets => "packets",
        _ => "threads",
    }
}

fn by(by: RecordedBy) -> &'static str {
    match by {
        RecordedBy::Bpf => "bpf",
        RecordedBy::Perf => "perf",
    }
}

fn median(mut all: Vec<i64>) -> Option<i64> {
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}
