//! A sample in a DATA submessage, or a part of a sample in a DATA_FRAG submessage.

use crate::numbers::{Fault, Numbers};
use crate::parameters::Parameters;

/// Flag of DATA and DATA_FRAG: parameters come before the data.
const INLINE_QOS: u8 = 0x02;
/// Flag of DATA: it has data.
const HAS_DATA: u8 = 0x04;
/// Length in bytes of the members of DATA before its parameters or its data.
const DATA_MEMBERS: usize = 20;

/// Identity of a participant: the first 12 bytes of the identities of its writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuidPrefix(pub [u8; 12]);

/// Identity of a writer or reader within its participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub [u8; 4]);

/// Identity of a writer or reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid {
    /// The participant.
    pub prefix: GuidPrefix,
    /// The writer or reader within the participant.
    pub entity: EntityId,
}

impl Guid {
    /// The identity in the first 16 bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Guid> {
        let (prefix, rest) = bytes.split_first_chunk()?;
        Some(Guid { prefix: GuidPrefix(*prefix), entity: EntityId(*rest.first_chunk()?) })
    }
}

/// Number of the vendor of an implementation, as OMG gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VendorId(pub [u8; 2]);

impl EntityId {
    /// No entity: a submessage for all readers.
    pub const UNKNOWN: EntityId = EntityId([0; 4]);

    /// Whether the writer or reader belongs to an application: discovery and vendors have their own (9.3.1.2).
    pub fn is_of_application(self) -> bool {
        self.0[3] & 0xc0 == 0
    }
}

/// A sample of a writer, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Participant of the writer.
    pub participant: GuidPrefix,
    /// Writer within the participant.
    pub writer: EntityId,
    /// Reader for which the submessage is meant; [`EntityId::UNKNOWN`] = all readers.
    pub reader: EntityId,
    /// Sequence number that the writer gave the sample, from 1.
    pub sequence: i64,
    /// Number of the first fragment in the submessage, from 1; `None` if the sample is not divided.
    pub fragment: Option<u32>,
    /// Number of fragments in the submessage; 1 if the sample is not divided.
    pub fragments: u16,
    /// Number of fragments of the whole sample; 1 if the sample is not divided.
    pub of_fragments: u32,
    /// Whether the whole sample is in this submessage, and not only some of its fragments.
    pub is_whole: bool,
    /// Whether there are data: the end of an instance has none.
    pub has_data: bool,
    /// Length of the data of the whole sample in bytes, with the encapsulation header of 4 bytes.
    pub bytes: u32,
    /// The data as far as they are there, from their encapsulation header on.
    pub data: &'a [u8],
}

impl<'a> Sample<'a> {
    /// Reads a DATA submessage; `declared` is its length in the datagram, of which `numbers` has what was copied.
    pub(crate) fn of_data(
        source: GuidPrefix,
        numbers: Numbers<'a>,
        flags: u8,
        declared: usize,
    ) -> Result<Sample<'a>, Fault> {
        let has_data = flags & HAS_DATA != 0;
        let members = (entity(numbers, 4), entity(numbers, 8), numbers.sequence(12), data_at(numbers, flags));
        let (Some(reader), Some(writer), Some(sequence), Some(at)) = members else {
            return Err(Fault::Short);
        };
        // The place of the data can be behind the copied bytes, and then is not known.
        let Some(bytes) = declared.checked_sub(at.unwrap_or(DATA_MEMBERS)) else { return Err(Fault::Impossible) };
        if sequence < 1 {
            return Err(Fault::Impossible);
        }
        let data = at.and_then(|at| numbers.bytes.get(at..)).unwrap_or_default();
        Ok(Sample {
            participant: source,
            writer,
            reader,
            sequence,
            fragment: None,
            fragments: 1,
            of_fragments: 1,
            is_whole: true,
            has_data,
            bytes: if has_data { u32::try_from(bytes).unwrap_or(u32::MAX) } else { 0 },
            data: if has_data { data } else { &[] },
        })
    }

    /// Reads a DATA_FRAG submessage, as [`of_data`](Self::of_data) reads DATA.
    pub(crate) fn of_fragment(
        source: GuidPrefix,
        numbers: Numbers<'a>,
        flags: u8,
        declared: usize,
    ) -> Result<Sample<'a>, Fault> {
        let members = (entity(numbers, 4), entity(numbers, 8), numbers.sequence(12), numbers.word(20));
        let sizes = (numbers.half(24), numbers.half(26), numbers.word(28), data_at(numbers, flags));
        let (
            (Some(reader), Some(writer), Some(sequence), Some(first)),
            (Some(count), Some(each), Some(bytes), Some(at)),
        ) = (members, sizes)
        else {
            return Err(Fault::Short);
        };
        if sequence < 1 || each == 0 || count == 0 || first == 0 || at.is_some_and(|at| at > declared) {
            return Err(Fault::Impossible);
        }
        let of_fragments = bytes.div_ceil(u32::from(each));
        if first.checked_add(u32::from(count) - 1).is_none_or(|last| last > of_fragments) {
            return Err(Fault::Impossible);
        }
        Ok(Sample {
            participant: source,
            writer,
            reader,
            sequence,
            fragment: Some(first),
            fragments: count,
            of_fragments,
            is_whole: u32::from(count) == of_fragments,
            has_data: true,
            bytes,
            data: at.and_then(|at| numbers.bytes.get(at..)).unwrap_or_default(),
        })
    }

    /// Identity of the writer.
    pub fn guid(&self) -> Guid {
        Guid { prefix: self.participant, entity: self.writer }
    }

    /// The first member of the sample's type, if this is an unsigned number of 8 bytes; `None` if the first bytes of the
    /// sample are not there, or have another representation than plain CDR.
    pub fn first_u64(&self) -> Option<u64> {
        let (number, little) = self.first_bytes()?;
        Some(if little { u64::from_le_bytes(number) } else { u64::from_be_bytes(number) })
    }

    /// The time at the begin of the sample's type, if this is a `std_msgs/msg/Header` of ROS 2 (seconds as `int32`, nanoseconds as
    /// `uint32`): ns since 1970. `None` as for [`first_u64`](Self::first_u64), or if the bytes are no such time.
    pub fn first_stamp_ns(&self) -> Option<i64> {
        let (bytes, little) = self.first_bytes()?;
        let (seconds, rest) = bytes.split_first_chunk::<4>()?;
        let rest: [u8; 4] = rest.try_into().ok()?;
        let (seconds, rest) = match little {
            true => (i32::from_le_bytes(*seconds), u32::from_le_bytes(rest)),
            false => (i32::from_be_bytes(*seconds), u32::from_be_bytes(rest)),
        };
        (rest < 1_000_000_000).then(|| i64::from(seconds) * 1_000_000_000 + i64::from(rest))
    }

    /// The first 8 bytes of the data behind the header of their encoding, and whether numbers are little-endian.
    fn first_bytes(&self) -> Option<([u8; 8], bool)> {
        if self.fragment.is_some_and(|first| first != 1) {
            return None;
        }
        let bytes: [u8; 8] = self.data.get(4..12)?.try_into().ok()?;
        // Representation identifiers of plain CDR and plain CDR version 2 (DDS-XTypes 7.6.2.1.2).
        match self.data.get(..2)? {
            [0, 0 | 6] => Some((bytes, false)),
            [0, 1 | 7] => Some((bytes, true)),
            _ => None,
        }
    }
}

fn entity(numbers: Numbers<'_>, at: usize) -> Option<EntityId> {
    Some(EntityId(numbers.bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The place of the data behind the members of the submessage and its parameters. `None`: the first members are not there;
/// `Some(None)`: the end of the parameters is not there.
fn data_at(numbers: Numbers<'_>, flags: u8) -> Option<Option<usize>> {
    // The distance to the parameters, or to the data, is counted from its own end.
    let at = usize::from(numbers.half(2)?) + 4;
    if flags & INLINE_QOS == 0 {
        return Some(Some(at));
    }
    let mut parameters = Parameters::new(numbers.bytes, numbers.little_endian, at);
    parameters.by_ref().for_each(drop);
    Some(parameters.end())
}
