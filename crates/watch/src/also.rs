//! Joins captures at two hosts: how long samples took from one to the other, and which did not arrive.

use crate::lateness::Lateness;
use std::collections::{BTreeMap, HashMap};
use tailbound_document::{AlsoWriter, WatchReport, WatchedAlso, WatchedRange, WatchedTopic, WatchedWriter};

/// Largest rate by which two clocks of Linux drift against each other while they are not set, in millionths: each may be slewed by 500
/// (adjtimex(2)).
const DRIFT_PPM: i64 = 1_000;
/// Number of exchanges before and after a sample that bound the offset of the clocks at its time.
const NEAR: usize = 20;

/// One reading of the clock of the other host (CLOCK_REALTIME): it was made between two times of this host, ns since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockExchange {
    /// When the question was sent, in the clock of this host.
    pub sent_ns: i64,
    /// The clock of the other host.
    pub other_ns: i64,
    /// When the answer was there, in the clock of this host.
    pub received_ns: i64,
}

/// A sample whose first transmission was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedRow {
    /// Identity of its writer, as the document has it.
    pub guid: String,
    /// The number that the writer gave it.
    pub number: i64,
    /// When it was written, in the clock of its writer; `None` = the writer gave no time.
    pub source_ns: Option<i64>,
    /// When it was captured, in the clock of the host that captured it.
    pub stamp_ns: i64,
}

/// A capture with its samples.
#[derive(Debug, Clone, Copy)]
pub struct CapturedAt<'a> {
    /// What was seen.
    pub report: &'a WatchReport,
    /// Each sample.
    pub rows: &'a [CapturedRow],
}

/// Joins a capture of this host with one of another host at the same time. `exchanges` are in the order of time.
pub fn join(here: CapturedAt<'_>, other: CapturedAt<'_>, host: &str, exchanges: &[ClockExchange]) -> WatchedAlso {
    let offsets = Offsets(exchanges);
    let (of_here, of_other) = (by_writer(here.rows), by_writer(other.rows));
    let mut writers = Vec::new();
    let mut without_offset = 0;
    for (topic, writer) in here.report.topics.iter().flat_map(with_writers) {
        let Some(there) = writer_of(other.report, &writer.guid) else { continue };
        let (Some(seen_here), Some(seen_there)) = (of_here.get(&*writer.guid), of_other.get(&*writer.guid)) else {
            continue;
        };
        // Both hosts see packets that neither of them sent: a third one did.
        let from_here = match (writer.is_here, there.is_here) {
            (true, false) => true,
            (false, true) => false,
            _ => continue,
        };
        let (sent, arrived) = if from_here { (seen_here, seen_there) } else { (seen_there, seen_here) };
        let mut times = Times::default();
        let mut not_arrived = 0;
        // What was sent before the first sample and after the last one that both saw may be on its way.
        let both: Vec<i64> = sent.keys().filter(|number| arrived.contains_key(number)).copied().collect();
        let (Some(first), Some(last)) = (both.first(), both.last()) else { continue };
        for (number, row) in sent.range(first..=last) {
            let Some(at_receiver) = arrived.get(number) else {
                not_arrived += 1;
                continue;
            };
            let (at_here, at_other) = if from_here { (row, at_receiver) } else { (at_receiver, row) };
            match offsets.at(at_here.stamp_ns) {
                None => without_offset += 1,
                Some(offset) => times.add(row, at_here.stamp_ns, at_other.stamp_ns, offset, from_here),
            }
        }
        let shown = topic.shown().map(str::to_owned);
        // Each host knows what was announced where it captures.
        let qos = writer.qos.as_ref().or(there.qos.as_ref());
        writers.push(AlsoWriter {
            topic: shown.or_else(|| topic_of(other.report, &writer.guid)),
            guid: writer.guid.clone(),
            from_here,
            sent: both.len() as u64 + not_arrived,
            not_arrived,
            is_best_effort: qos.map(|qos| qos.reliability == "best-effort"),
            network: times.network.ranges(),
            lateness: times.lateness.ranges(),
        });
    }
    let middle = exchanges.get(exchanges.len() / 2).and_then(|exchange| offsets.at(exchange.sent_ns));
    WatchedAlso {
        host: host.to_owned(),
        exchanges: exchanges.len() as u64,
        offset_ns: middle,
        writers,
        without_offset,
        not_copied: other.report.not_copied,
        warnings: other.report.warnings.clone(),
    }
}

fn with_writers(topic: &WatchedTopic) -> impl Iterator<Item = (&WatchedTopic, &WatchedWriter)> {
    topic.writers.iter().map(move |writer| (topic, writer))
}

fn writer_of<'a>(report: &'a WatchReport, guid: &str) -> Option<&'a WatchedWriter> {
    report.topics.iter().flat_map(|topic| &topic.writers).find(|writer| writer.guid == guid)
}

fn topic_of(report: &WatchReport, guid: &str) -> Option<String> {
    let has = |topic: &&WatchedTopic| topic.writers.iter().any(|writer| writer.guid == guid);
    report.topics.iter().find(has).and_then(|topic| topic.shown().map(str::to_owned))
}

/// The samples of each writer by their numbers.
fn by_writer(rows: &[CapturedRow]) -> HashMap<&str, BTreeMap<i64, &CapturedRow>> {
    let mut all: HashMap<&str, BTreeMap<i64, &CapturedRow>> = HashMap::new();
    for row in rows {
        all.entry(&row.guid).or_default().insert(row.number, row);
    }
    all
}

/// Bounds of times between two hosts.
#[derive(Default)]
struct Times {
    network: Bounds,
    lateness: Bounds,
}

impl Times {
    /// A sample that the sender captured as `sent`. The offset is the clock of the other host minus the clock of this host, at least and at most.
    fn add(&mut self, sent: &CapturedRow, here_ns: i64, other_ns: i64, (low, high): (i64, i64), from_here: bool) {
        let apart = other_ns - here_ns;
        let network = if from_here { (apart - high, apart - low) } else { (low - apart, high - apart) };
        self.network.add(network);
        if let Some(source_ns) = sent.source_ns {
            let until_sent = sent.stamp_ns - source_ns;
            self.lateness.add((until_sent + network.0, until_sent + network.1));
        }
    }
}

/// The distributions of the least and of the largest possible values.
#[derive(Default)]
struct Bounds(Option<(Lateness, Lateness)>);

impl Bounds {
    fn add(&mut self, (least, most): (i64, i64)) {
        let (low, high) = self.0.get_or_insert_with(|| (Lateness::new(false), Lateness::new(false)));
        low.record(least);
        high.record(most);
    }

    fn ranges(&self) -> Option<(WatchedRange, WatchedRange)> {
        let (low, high) = self.0.as_ref()?;
        Some((low.range(false)?, high.range(false)?))
    }
}

/// Bounds of the offset between two clocks.
struct Offsets<'a>(&'a [ClockExchange]);

impl Offsets<'_> {
    /// The clock of the other host minus the one of this host at this time of it, at least and at most. `None` = no exchange, or
    /// exchanges that contradict each other: a clock was set between them.
    fn at(&self, here_ns: i64) -> Option<(i64, i64)> {
        let next = self.0.partition_point(|exchange| exchange.sent_ns <= here_ns);
        let near = &self.0[next.saturating_sub(NEAR)..(next + NEAR).min(self.0.len())];
        let bound = |exchange: &ClockExchange| {
            let ClockExchange { sent_ns, other_ns, received_ns } = *exchange;
            // The reading was between the two times.
            let away_ns = (here_ns - sent_ns).abs().max((here_ns - received_ns).abs());
            let drift_ns = away_ns / 1_000_000 * DRIFT_PPM + DRIFT_PPM;
            (other_ns - received_ns - drift_ns, other_ns - sent_ns + drift_ns)
        };
        let narrower = |a: (i64, i64), b: (i64, i64)| (a.0.max(b.0), a.1.min(b.1));
        near.iter().map(bound).reduce(narrower).filter(|(low, high)| low <= high)
    }
}
