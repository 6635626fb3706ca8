//! What is seen of one writer.

use crate::again::{Found, Numbers};
use crate::incidents::Latest;
use crate::lateness::Lateness;
use crate::parts::{Part, Parts};
use crate::reader::Reader;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use tailbound_document::WatchedProtocol;
use tailbound_rtps::{AckNack, EntityId, Gap, Guid, Heartbeat, Sample, VendorId};
use tailbound_stats::Histogram;

/// Largest number of samples whose fragments are waited for, per writer.
const MOST_UNFINISHED: usize = 32;
/// Largest number of destinations whose samples are told apart, per writer.
const MOST_DESTINATIONS: usize = 1_000;
/// Largest number of readers whose requests are remembered, per writer.
const MOST_READERS: usize = 256;
/// Longest time between the transmissions of one sample to all destinations, ns.
const ONE_AFTER_THE_OTHER_NS: i64 = 10_000_000;

/// The way of a message: the address from which and to which it goes, and a reader there, or all readers. A sample that is sent
/// from each interface of a host has several ways.
type Way = (IpAddr, SocketAddr, EntityId);

/// A message with a sample: its addresses, the time that its writer gave, and when it was captured.
#[derive(Debug, Clone, Copy)]
pub struct Carried {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub source_ns: Option<i64>,
    pub stamp_ns: i64,
}

/// Where the samples of a writer come from.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    pub vendor: VendorId,
    pub address: SocketAddr,
    /// Whether its packets were sent here, and not received from elsewhere.
    pub is_here: bool,
}

/// A writer, and all that was seen of it.
pub struct Writer {
    /// `None` until a sample is seen: readers may be heard before.
    pub origin: Option<Origin>,
    pub samples: u64,
    /// Submessages with samples since the traffic was looked at last.
    pub since_look: u64,
    pub first_ns: i64,
    pub last_ns: i64,
    pub interval: Histogram,
    /// The smallest and the largest length of data, without the header of the encoding.
    pub bytes: Option<(u32, u32)>,
    pub lateness: Lateness,
    pub latest: Latest,
    pub without_time: u64,
    pub protocol: WatchedProtocol,
    /// The largest sample that the writer had before the first one was seen: up to it, samples are history.
    history_to: i64,
    numbers: Numbers,
    ways: HashMap<Way, Sent>,
    unfinished: HashMap<(Way, i64), Parts>,
    readers: BTreeMap<Guid, Reader>,
}

/// What was sent on one way.
struct Sent {
    numbers: Numbers,
    /// The largest sample that other ways had when this one was first seen.
    joined_at: i64,
}

/// A sample of which everything was sent to one destination, for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    pub number: i64,
    pub source_ns: Option<i64>,
    /// The time at the begin of its data, which is the one of a header if its type begins with one.
    pub first_stamp_ns: Option<i64>,
}

impl Writer {
    /// A writer of which nothing was seen yet.
    pub fn new() -> Writer {
        Writer {
            origin: None,
            samples: 0,
            since_look: 0,
            first_ns: 0,
            last_ns: 0,
            interval: Histogram::new(),
            bytes: None,
            lateness: Lateness::new(false),
            latest: Latest::default(),
            without_time: 0,
            protocol: WatchedProtocol::default(),
            history_to: 0,
            numbers: Numbers::default(),
            ways: HashMap::new(),
            unfinished: HashMap::new(),
            readers: BTreeMap::new(),
        }
    }

    /// Where the samples of the writer come from, as the first one shows.
    pub fn comes_from(&mut self, origin: Origin) {
        if self.origin.is_none() {
            self.origin = Some(origin);
            self.lateness = Lateness::new(!origin.is_here);
        }
    }

    /// A submessage with a sample or with fragments of one; `is_old`: it was written before the capture began. Returns the sample if
    /// its first transmission ends with it, and if it was not sent on another way before.
    pub fn sample(&mut self, sample: &Sample<'_>, by: &Carried, is_old: bool) -> Option<Finished> {
        let (way, number) = ((by.from.ip(), by.to, sample.reader), sample.sequence);
        let begins = u64::from(sample.fragment.is_none_or(|first| first == 1));
        self.since_look += 1;
        let highest = self.numbers.highest();
        if self.ways.len() >= MOST_DESTINATIONS && !self.ways.contains_key(&way) {
            return None;
        }
        let sent = self.ways.entry(way);
        let sent = sent.or_insert_with(|| Sent { numbers: Numbers::default(), joined_at: highest });
        let is_part = self.unfinished.contains_key(&(way, number));
        let is_asked_for = self.readers.values().any(|reader| reader.waits_for(number));
        if is_asked_for && !is_part {
            // Repeated samples may go another way than the first time.
            sent.numbers.see(number);
            match self.numbers.see(number) {
                Found::Again => self.protocol.again += u64::from(sample.fragments),
                Found::Newest | Found::Late => self.protocol.first_not_seen += 1,
            }
            return None;
        }
        if is_old || number <= self.history_to {
            self.protocol.replayed += begins;
            return None;
        }
        if number <= sent.joined_at {
            // The newest sample goes one way after the other, each of which is new once.
            let is_newest = number == highest && by.stamp_ns - self.last_ns < ONE_AFTER_THE_OTHER_NS;
            self.protocol.replayed += if is_newest { 0 } else { begins };
            return None;
        }
        if !is_part && sent.numbers.see(number) == Found::Again {
            self.protocol.again += u64::from(sample.fragments);
            return None;
        }
        if !is_part && self.samples > 0 && number < self.numbers.first() {
            // What was sent before the first sample that was seen.
            self.numbers.see(number);
            self.protocol.first_not_seen += begins;
            return None;
        }
        let is_new = is_part || self.numbers.see(number) != Found::Again;
        if is_new && !is_part {
            self.begins(sample, by.stamp_ns);
        }
        match sample.fragment {
            None => {
                let first_stamp_ns = sample.first_stamp_ns();
                is_new.then_some(Finished { number, source_ns: by.source_ns, first_stamp_ns })
            }
            Some(first) => self.fragments(sample, first, (way, number), by.source_ns, (is_new, is_asked_for)),
        }
    }

    /// Counts a sample whose first transmission begins.
    fn begins(&mut self, sample: &Sample<'_>, stamp_ns: i64) {
        if self.samples > 0 {
            self.interval.record(stamp_ns - self.last_ns);
        } else {
            self.first_ns = stamp_ns;
        }
        self.samples += 1;
        self.last_ns = stamp_ns;
        if sample.has_data {
            let bytes = sample.bytes.saturating_sub(4);
            let (least, most) = self.bytes.unwrap_or((bytes, bytes));
            self.bytes = Some((least.min(bytes), most.max(bytes)));
        }
    }

    /// Fragments of a sample, from number `first` on. `is_new`: the sample was not sent on another way before; `is_asked_for`: a reader
    /// misses some of it, so that this transmission is no longer the first one.
    fn fragments(
        &mut self,
        sample: &Sample<'_>,
        first: u32,
        key: (Way, i64),
        source_ns: Option<i64>,
        (is_new, is_asked_for): (bool, bool),
    ) -> Option<Finished> {
        if self.unfinished.len() >= MOST_UNFINISHED && !self.unfinished.contains_key(&key) {
            let oldest = self.unfinished.iter().min_by_key(|((_, number), _)| *number).map(|(oldest, _)| *oldest);
            let removed = oldest.and_then(|oldest| self.unfinished.remove(&oldest));
            self.protocol.unfinished += u64::from(removed.is_some_and(|parts| parts.is_new));
        }
        if !self.unfinished.contains_key(&key) {
            let Some(parts) = Parts::new(sample.of_fragments, is_new) else {
                self.protocol.unfinished += u64::from(first == 1);
                return None;
            };
            self.unfinished.insert(key, parts);
        }
        let parts = self.unfinished.get_mut(&key)?;
        parts.is_repeated |= is_asked_for;
        parts.source_ns = parts.source_ns.or(source_ns);
        parts.first_stamp_ns = parts.first_stamp_ns.or_else(|| sample.first_stamp_ns());
        for index in first - 1..first - 1 + u32::from(sample.fragments) {
            match parts.see(index) {
                Part::New => self.protocol.fragments += u64::from(parts.is_new),
                Part::Again => self.protocol.again += 1,
            }
        }
        if !parts.are_all() {
            return None;
        }
        let parts = self.unfinished.remove(&key)?;
        self.protocol.first_not_seen += u64::from(parts.is_new && parts.is_repeated);
        let Parts { source_ns, first_stamp_ns, .. } = parts;
        (parts.is_new && !parts.is_repeated).then_some(Finished { number: sample.sequence, source_ns, first_stamp_ns })
    }

    /// The end of the first transmission of a sample was captured.
    pub fn finished(&mut self, sample: Finished, stamp_ns: i64) {
        match sample.source_ns {
            None => self.without_time += 1,
            Some(source_ns) => {
                self.lateness.record(stamp_ns - source_ns);
                self.latest.add(stamp_ns - source_ns, stamp_ns);
            }
        }
    }

    /// The writer says which samples it has: to one reader, or to all (`None`).
    pub fn heartbeat(&mut self, heartbeat: &Heartbeat, to: Option<Guid>) {
        self.protocol.heartbeats += 1;
        if self.samples == 0 {
            self.history_to = self.history_to.max(heartbeat.last);
        }
        let given_up: u64 = self.addressed(to).map(|reader| reader.gives_up_before(heartbeat.first)).sum();
        self.protocol.given_up += given_up;
    }

    /// A reader says which samples it has, and which it misses.
    pub fn acknowledged(&mut self, by: Guid, acknowledgement: &AckNack, stamp_ns: i64) {
        self.protocol.acknowledgements += 1;
        // A reader that acknowledges samples which were seen here has been there all the time.
        let is_old = self.samples == 0 || acknowledgement.missing.base > self.numbers.first();
        let joined_at = if is_old { 0 } else { self.numbers.highest() };
        let history_to = self.history_to;
        if let Some(reader) = self.reader(by, joined_at) {
            let asked = reader.hears(&acknowledgement.missing, history_to, stamp_ns);
            self.protocol.requested += asked;
        }
    }

    /// A reader misses fragments of a sample.
    pub fn misses_fragments(&mut self, by: Guid, number: i64, stamp_ns: i64) {
        let highest = self.numbers.highest().min(number.saturating_sub(1));
        let history_to = self.history_to;
        if let Some(reader) = self.reader(by, highest) {
            let asked = reader.asks(number, history_to, stamp_ns);
            self.protocol.requested += u64::from(asked);
        }
    }

    /// The writer says which samples will not come: to one reader, or to all (`None`).
    pub fn gap(&mut self, gap: &Gap, to: Option<Guid>) {
        let mut given_up = 0;
        for reader in self.addressed(to) {
            // At most as many as the reader asked for.
            let before: Vec<i64> =
                reader.asked().filter(|number| (gap.start..gap.more.base).contains(number)).collect();
            given_up +=
                before.into_iter().chain(gap.more.iter()).filter(|number| reader.gives_up(*number)).count() as u64;
        }
        self.protocol.given_up += given_up;
    }

    fn reader(&mut self, by: Guid, joined_at: i64) -> Option<&mut Reader> {
        if self.readers.len() >= MOST_READERS && !self.readers.contains_key(&by) {
            return None;
        }
        Some(self.readers.entry(by).or_insert_with(|| Reader::new(joined_at)))
    }

    /// The readers for which a submessage is meant.
    fn addressed(&mut self, to: Option<Guid>) -> impl Iterator<Item = &mut Reader> {
        self.readers.iter_mut().filter(move |(guid, _)| to.is_none_or(|to| to == **guid)).map(|(_, reader)| reader)
    }

    /// The figures of the protocol at the end of the capture.
    pub fn protocol(&self, end_ns: i64) -> WatchedProtocol {
        WatchedProtocol {
            unfinished: self.protocol.unfinished + self.unfinished.values().filter(|parts| parts.is_new).count() as u64,
            numbers_not_seen: self.numbers.not_seen(),
            lost: self.readers.values().map(|reader| reader.lost(end_ns)).sum(),
            open: self.readers.values().map(|reader| reader.open(end_ns)).sum(),
            ..self.protocol
        }
    }
}
