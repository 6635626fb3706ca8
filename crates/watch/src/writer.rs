//! What is seen of one writer.

use crate::again::{Found, Numbers};
use crate::lateness::Lateness;
use crate::reader::Reader;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use tailbound_document::WatchedProtocol;
use tailbound_rtps::{AckNack, EntityId, Gap, Guid, Heartbeat, Sample, SequenceSet, VendorId};
use tailbound_stats::Histogram;

/// Largest number of samples whose fragments are waited for, per writer.
const MOST_UNFINISHED: usize = 256;

/// Largest number of fragments of a sample that are told apart: 130 MB in fragments of Cyclone DDS.
const MOST_FRAGMENTS: u32 = 100_000;
/// Largest number of destinations whose samples are told apart, per writer.
const MOST_DESTINATIONS: usize = 1_000;
/// Longest time between the transmissions of one sample to all destinations, ns.
const ONE_AFTER_THE_OTHER_NS: i64 = 10_000_000;

/// To whom a message goes: an address, and a reader there, or all readers.
type Destination = (SocketAddr, EntityId);

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
    pub first_ns: i64,
    pub last_ns: i64,
    pub interval: Histogram,
    /// The smallest and the largest length of data, without the header of the encoding.
    pub bytes: Option<(u32, u32)>,
    pub lateness: Lateness,
    pub without_time: u64,
    pub protocol: WatchedProtocol,
    numbers: Numbers,
    destinations: HashMap<Destination, Sent>,
    unfinished: HashMap<(Destination, i64), Parts>,
    readers: BTreeMap<Guid, Reader>,
}

/// What was sent to one destination.
struct Sent {
    numbers: Numbers,
    /// The largest sample that other destinations had when this one was first seen.
    joined_at: i64,
}

/// The fragments of a sample that were seen on the way to one destination.
struct Parts {
    seen: Vec<bool>,
    left: usize,
    source_ns: Option<i64>,
    counts: bool,
}

/// A sample of which everything was sent to one destination, for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    pub number: i64,
    pub source_ns: Option<i64>,
}

impl Writer {
    /// A writer of which nothing was seen yet.
    pub fn new() -> Writer {
        Writer {
            origin: None,
            samples: 0,
            first_ns: 0,
            last_ns: 0,
            interval: Histogram::new(),
            bytes: None,
            lateness: Lateness::new(false),
            without_time: 0,
            protocol: WatchedProtocol::default(),
            numbers: Numbers::default(),
            destinations: HashMap::new(),
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

    /// A submessage with a sample or with fragments of one. Returns the sample if its first transmission ends with it, and if no
    /// other destination had it before.
    pub fn sample(
        &mut self,
        sample: &Sample<'_>,
        to: SocketAddr,
        source_ns: Option<i64>,
        stamp_ns: i64,
    ) -> Option<Finished> {
        let (destination, number) = ((to, sample.reader), sample.sequence);
        let is_part = self.unfinished.contains_key(&(destination, number));
        let is_asked_for = self.readers.values().any(|reader| reader.waits_for(number));
        if is_asked_for && !is_part {
            // Repeated samples may go to another address than the first time.
            match self.numbers.see(number) {
                Found::Again => self.protocol.again += u64::from(sample.fragments),
                Found::Newest | Found::Late => self.protocol.first_not_seen += 1,
            }
            return None;
        }
        let highest = self.numbers.highest();
        if self.destinations.len() >= MOST_DESTINATIONS && !self.destinations.contains_key(&destination) {
            return None;
        }
        let sent = self.destinations.entry(destination);
        let sent = sent.or_insert_with(|| Sent { numbers: Numbers::default(), joined_at: highest });
        if number <= sent.joined_at {
            // The newest sample goes to one destination after the other, each of which is new once.
            let is_newest = number == highest && stamp_ns - self.last_ns < ONE_AFTER_THE_OTHER_NS;
            let begins = sample.fragment.is_none_or(|first| first == 1);
            self.protocol.replayed += u64::from(begins && !is_newest);
            return None;
        }
        if !is_part && sent.numbers.see(number) == Found::Again {
            self.protocol.again += u64::from(sample.fragments);
            return None;
        }
        let counts = if is_part { !is_asked_for } else { self.numbers.see(number) != Found::Again };
        if counts && !is_part {
            self.begins(sample, stamp_ns);
        }
        match sample.fragment {
            None => counts.then_some(Finished { number, source_ns }),
            Some(first) => self.fragments(sample, first, destination, source_ns, counts),
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

    fn fragments(
        &mut self,
        sample: &Sample<'_>,
        first: u32,
        destination: Destination,
        source_ns: Option<i64>,
        counts: bool,
    ) -> Option<Finished> {
        let key = (destination, sample.sequence);
        if sample.of_fragments > MOST_FRAGMENTS {
            self.protocol.unfinished += u64::from(first == 1);
            return None;
        }
        if self.unfinished.len() >= MOST_UNFINISHED && !self.unfinished.contains_key(&key) {
            let oldest = self.unfinished.keys().min_by_key(|(_, number)| *number).copied();
            oldest.and_then(|oldest| self.unfinished.remove(&oldest));
            self.protocol.unfinished += 1;
        }
        let size = sample.of_fragments as usize;
        let parts = self.unfinished.entry(key);
        let parts = parts.or_insert_with(|| Parts { seen: vec![false; size], left: size, source_ns, counts });
        parts.counts &= counts;
        parts.source_ns = parts.source_ns.or(source_ns);
        for index in (first as usize - 1)..(first as usize - 1 + usize::from(sample.fragments)) {
            match parts.seen.get_mut(index) {
                Some(seen) if !*seen => {
                    *seen = true;
                    parts.left -= 1;
                    self.protocol.fragments += 1;
                }
                _ => {
                    self.protocol.again += 1;
                    parts.counts = false;
                }
            }
        }
        if parts.left > 0 {
            return None;
        }
        let parts = self.unfinished.remove(&key)?;
        if !parts.counts {
            self.protocol.first_not_seen += 1;
            return None;
        }
        Some(Finished { number: sample.sequence, source_ns: parts.source_ns })
    }

    /// The end of the first transmission of a sample was captured.
    pub fn finished(&mut self, sample: Finished, stamp_ns: i64) {
        match sample.source_ns {
            None => self.without_time += 1,
            Some(source_ns) => self.lateness.record(stamp_ns - source_ns),
        }
    }

    /// The writer says which samples it has.
    pub fn heartbeat(&mut self, heartbeat: &Heartbeat) {
        self.protocol.heartbeats += 1;
        let given_up: u64 = self.readers.values_mut().map(|reader| reader.gives_up_before(heartbeat.first)).sum();
        self.protocol.given_up += given_up;
    }

    /// A reader says which samples it has, and which it misses.
    pub fn acknowledged(&mut self, by: Guid, acknowledgement: &AckNack, stamp_ns: i64) {
        self.protocol.acknowledgements += 1;
        // A reader that acknowledges samples which were seen here has been there all the time.
        let is_old = acknowledgement.missing.base > self.numbers.first();
        let joined_at = if is_old { 0 } else { self.numbers.highest() };
        let reader = self.readers.entry(by).or_insert_with(|| Reader::new(joined_at));
        self.protocol.requested += reader.hears(&acknowledgement.missing, stamp_ns);
    }

    /// A reader misses fragments of a sample.
    pub fn misses_fragments(&mut self, by: Guid, number: i64, stamp_ns: i64) {
        let highest = self.numbers.highest().min(number - 1);
        self.readers.entry(by).or_insert_with(|| Reader::new(highest)).asks(number, stamp_ns);
    }

    /// The writer says which samples will not come.
    pub fn gap(&mut self, gap: &Gap) {
        let SequenceSet { base, .. } = gap.more;
        for reader in self.readers.values_mut() {
            // At most as many as the reader asked for.
            let before: Vec<i64> = reader.asked().filter(|number| (gap.start..base).contains(number)).collect();
            let more = gap.more.iter();
            self.protocol.given_up +=
                before.into_iter().chain(more).filter(|number| reader.gives_up(*number)).count() as u64;
        }
    }

    /// The figures of the protocol at the end of the capture.
    pub fn protocol(&self, end_ns: i64) -> WatchedProtocol {
        WatchedProtocol {
            unfinished: self.protocol.unfinished + self.unfinished.len() as u64,
            numbers_not_seen: self.numbers.not_seen(),
            lost: self.readers.values().map(|reader| reader.lost(end_ns)).sum(),
            ..self.protocol
        }
    }
}
