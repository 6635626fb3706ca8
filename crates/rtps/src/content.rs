//! What a submessage says.

use crate::numbers::{Fault, Numbers};
use crate::sample::{EntityId, GuidPrefix, Sample};

/// Largest number of bits in a set of sequence numbers (9.4.2.6).
const MOST_BITS: u32 = 256;

/// The content of a submessage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// When the samples that follow in the message were written; `None` = their writer gives no time.
    Timestamp(Option<Time>),
    /// The participant for which the submessages that follow are meant.
    Destination(GuidPrefix),
    /// A sample, a part of one, or the end of an instance.
    Sample(Sample<'a>),
    /// A writer says which samples it has.
    Heartbeat(Heartbeat),
    /// A reader says which samples it has, and which it misses.
    AckNack(AckNack),
    /// A writer says which samples will not come.
    Gap(Gap),
    /// A writer says which fragments of a sample it has.
    HeartbeatOfFragments,
    /// A reader misses fragments of the sample with this number.
    NackOfFragments {
        /// The reader within the participant that sent the submessage.
        reader: EntityId,
        /// The writer within the participant for which the submessage is meant.
        writer: EntityId,
        /// The sample of which fragments are missing.
        sequence: i64,
    },
    /// Encrypted or signed, so that it cannot be read.
    Protected,
    /// Padding, addresses, or a submessage of a vendor.
    Other,
    /// The members of the submessage are behind the copied bytes.
    Cut,
    /// The members of the submessage are longer than the submessage, or have impossible values.
    Malformed,
}

/// A time of RTPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970, UTC.
    pub seconds: u32,
    /// Parts of a second, in units of 2^-32 s.
    pub fraction: u32,
}

impl Time {
    /// The value that means that there is no time.
    const INVALID: Time = Time { seconds: u32::MAX, fraction: u32::MAX };

    pub(crate) fn read(numbers: Numbers<'_>, at: usize) -> Option<Time> {
        Some(Time { seconds: numbers.word(at)?, fraction: numbers.word(at + 4)? })
    }

    /// Nanoseconds since 1970, UTC, rounded down; the true time is less than 1 ns later.
    pub fn unix_ns(self) -> i64 {
        i64::from(self.seconds) * 1_000_000_000 + ((u64::from(self.fraction) * 1_000_000_000) >> 32) as i64
    }

    fn valid(self) -> Option<Time> {
        (self != Time::INVALID).then_some(self)
    }
}

/// The submessage HEARTBEAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// The reader for which it is meant; zero = all readers.
    pub reader: EntityId,
    /// The writer within the participant that sent the submessage.
    pub writer: EntityId,
    /// The smallest sequence number that the writer has.
    pub first: i64,
    /// The largest sequence number that the writer has; first - 1 = none.
    pub last: i64,
    /// Number of this heartbeat.
    pub count: u32,
}

/// The submessage ACKNACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckNack {
    /// The reader within the participant that sent the submessage.
    pub reader: EntityId,
    /// The writer within the participant for which the submessage is meant.
    pub writer: EntityId,
    /// Missing samples; the reader has all samples before the first number of the set.
    pub missing: SequenceSet,
    /// Number of this ACKNACK.
    pub count: u32,
}

/// The submessage GAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The reader for which it is meant; zero = all readers.
    pub reader: EntityId,
    /// The writer within the participant that sent the submessage.
    pub writer: EntityId,
    /// The first sample that will not come; all from it to the first number of the set will not come.
    pub start: i64,
    /// More samples that will not come.
    pub more: SequenceSet,
}

/// A set of sequence numbers: a first number and up to 256 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceSet {
    /// The number of the first bit.
    pub base: i64,
    bits: u32,
    words: [u32; 8],
}

impl SequenceSet {
    /// The numbers in the set, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        let is_set = |bit: &u32| self.words[*bit as usize / 32] & (1 << (31 - bit % 32)) != 0;
        (0..self.bits).filter(is_set).map(|bit| self.base.saturating_add(i64::from(bit)))
    }

    /// Reads a set, and returns it with the place behind it.
    fn read(numbers: Numbers<'_>, at: usize) -> Result<(SequenceSet, usize), Fault> {
        let (base, bits) = (numbers.sequence(at).ok_or(Fault::Short)?, numbers.word(at + 8).ok_or(Fault::Short)?);
        if bits > MOST_BITS {
            return Err(Fault::Impossible);
        }
        let mut set = SequenceSet { base, bits, words: [0; 8] };
        let used = bits.div_ceil(32) as usize;
        for (index, word) in set.words.iter_mut().take(used).enumerate() {
            *word = numbers.word(at + 12 + 4 * index).ok_or(Fault::Short)?;
        }
        Ok((set, at + 12 + 4 * used))
    }
}

/// What was read of a submessage that has `declared` bytes in the datagram, of which `copied` are there.
pub(crate) fn or_unread(read: Result<Content<'_>, Fault>, copied: usize, declared: usize) -> Content<'_> {
    match read {
        Ok(content) => content,
        Err(Fault::Short) if copied < declared => Content::Cut,
        Err(_) => Content::Malformed,
    }
}

/// The kinds of submessages that are read here.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    InfoTimestamp,
    InfoDestination,
    Heartbeat,
    AckNack,
    Gap,
    HeartbeatFragments,
    NackFragments,
}

/// Flag of INFO_TS: there is no time.
const NO_TIME: u8 = 0x02;

/// Reads the members of a submessage.
pub(crate) fn read<'a>(kind: Kind, numbers: Numbers<'_>, flags: u8) -> Result<Content<'a>, Fault> {
    let entity = |at: usize| {
        let bytes = numbers.bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(EntityId).ok_or(Fault::Short)
    };
    let sequence = |at: usize| numbers.sequence(at).ok_or(Fault::Short);
    let word = |at: usize| numbers.word(at).ok_or(Fault::Short);
    Ok(match kind {
        Kind::InfoTimestamp if flags & NO_TIME != 0 => Content::Timestamp(None),
        Kind::InfoTimestamp => Content::Timestamp(Time::read(numbers, 0).ok_or(Fault::Short)?.valid()),
        Kind::InfoDestination => {
            let prefix = numbers.bytes.get(..12).and_then(|bytes| bytes.try_into().ok());
            Content::Destination(GuidPrefix(prefix.ok_or(Fault::Short)?))
        }
        Kind::Heartbeat => {
            let (first, last) = (sequence(8)?, sequence(16)?);
            if first < 1 || last < first - 1 {
                return Err(Fault::Impossible);
            }
            Content::Heartbeat(Heartbeat { reader: entity(0)?, writer: entity(4)?, first, last, count: word(24)? })
        }
        Kind::AckNack => {
            let (missing, end) = SequenceSet::read(numbers, 8)?;
            Content::AckNack(AckNack { reader: entity(0)?, writer: entity(4)?, missing, count: word(end)? })
        }
        Kind::Gap => {
            let (more, _) = SequenceSet::read(numbers, 16)?;
            Content::Gap(Gap { reader: entity(0)?, writer: entity(4)?, start: sequence(8)?, more })
        }
        Kind::HeartbeatFragments => {
            entity(4)?;
            Content::HeartbeatOfFragments
        }
        Kind::NackFragments => {
            let sequence = sequence(8)?;
            if sequence < 1 {
                return Err(Fault::Impossible);
            }
            Content::NackOfFragments { reader: entity(0)?, writer: entity(4)?, sequence }
        }
    })
}
