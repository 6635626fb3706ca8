//! The topics of a recorded capture, with the lateness of their samples.

use std::collections::BTreeMap;
use tailbound_document::{WatchReport, WatchedTopic, WatchedWriter};

/// A capture that was recorded.
#[derive(Debug, Clone)]
pub struct CaptureRecord {
    /// What was seen.
    pub report: WatchReport,
    /// Capture stamp minus source timestamp of each sample, in the order of the capture, by the identity of its writer, ns.
    pub late_ns: BTreeMap<String, Vec<i64>>,
}

/// A topic of one capture: its writers, and the lateness of their samples.
pub(crate) struct Topic<'a> {
    pub writers: Vec<&'a WatchedWriter>,
    /// Its name on the wire.
    pub on_wire: Option<&'a String>,
    /// Writer by writer, in the order of the capture.
    pub late_ns: Vec<i64>,
    /// Where the samples of each writer end in `late_ns`.
    pub ends: Vec<usize>,
    /// Whether the lateness of a writer is above its fastest sample, because it has another clock.
    pub is_above_fastest: bool,
}

impl Topic<'_> {
    /// Samples per second of all writers together, while they sent; `None` if it is not known.
    pub fn rate_hz(&self) -> Option<f64> {
        self.writers.iter().filter(|writer| writer.samples > 0).map(|writer| writer.rate_hz).sum()
    }

    /// The sum of a number of each writer.
    pub fn sum(&self, of: impl Fn(&WatchedWriter) -> u64) -> u64 {
        self.writers.iter().map(|writer| of(writer)).fold(0, u64::saturating_add)
    }
}

/// Number of samples of a writer that are known to exist and have no lateness.
pub(crate) fn without_lateness(writer: &WatchedWriter) -> u64 {
    let of = &writer.protocol;
    let all = [writer.without_time, of.first_not_seen, of.replayed, of.unfinished, of.numbers_not_seen];
    all.into_iter().fold(0, u64::saturating_add)
}

/// The topics with a known name and samples. Writers change their identity when their program starts again, topics keep their name.
pub(crate) fn topics(record: &CaptureRecord) -> BTreeMap<String, Topic<'_>> {
    let mut all: BTreeMap<String, Topic<'_>> = BTreeMap::new();
    let named = |topic: &WatchedTopic| topic.shown().map(str::to_owned);
    for (name, topic) in record.report.topics.iter().filter_map(|topic| Some((named(topic)?, topic))) {
        for writer in topic.writers.iter().filter(|writer| writer.samples > 0 || without_lateness(writer) > 0) {
            let entry = all.entry(name.clone()).or_insert_with(|| Topic {
                writers: Vec::new(),
                on_wire: topic.topic.as_ref(),
                late_ns: Vec::new(),
                ends: Vec::new(),
                is_above_fastest: false,
            });
            entry.writers.push(writer);
            let late = record.late_ns.get(&writer.guid).map(Vec::as_slice).unwrap_or_default();
            let is_above = writer.lateness.as_ref().is_some_and(|late| late.is_above_fastest);
            let zero_ns = if is_above { late.iter().copied().min().unwrap_or(0) } else { 0 };
            entry.late_ns.extend(late.iter().map(|ns| ns.saturating_sub(zero_ns)));
            entry.ends.push(entry.late_ns.len());
            entry.is_above_fastest |= is_above;
        }
    }
    all
}
