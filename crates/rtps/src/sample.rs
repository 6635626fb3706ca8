//! A sample in a DATA submessage, or a part of a sample in a DATA_FRAG submessage.

/// Flag of DATA and DATA_FRAG: parameters come before the data.
const INLINE_QOS: u8 = 0x02;
/// Flag of DATA: it has data.
const HAS_DATA: u8 = 0x04;
/// Id of the parameter at the end of a list of parameters.
const SENTINEL: u16 = 1;

/// Identity of a participant: the first 12 bytes of the identities of its writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuidPrefix(pub [u8; 12]);

/// Identity of a writer within its participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub [u8; 4]);

impl EntityId {
    /// Whether the writer belongs to an application: discovery and vendors have writers of their own (9.3.1.2).
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
    /// Sequence number that the writer gave the sample, from 1.
    pub sequence: i64,
    /// Number of the first fragment in the submessage, from 1; `None` if the sample is not divided.
    pub fragment: Option<u32>,
    /// Whether the whole sample is in this submessage, and not only some of its fragments.
    pub is_whole: bool,
    /// The data as far as they are there, from their encapsulation header on.
    pub data: &'a [u8],
}

impl<'a> Sample<'a> {
    pub(crate) fn of_data(
        participant: GuidPrefix,
        body: &'a [u8],
        flags: u8,
        little_endian: bool,
    ) -> Option<Sample<'a>> {
        let numbers = Numbers { body, little_endian };
        (flags & HAS_DATA != 0).then_some(())?;
        let data = numbers.data(flags)?;
        let (writer, sequence) = (numbers.writer()?, numbers.sequence()?);
        Some(Sample { participant, writer, sequence, fragment: None, is_whole: true, data })
    }

    pub(crate) fn of_fragment(
        participant: GuidPrefix,
        body: &'a [u8],
        flags: u8,
        little_endian: bool,
    ) -> Option<Sample<'a>> {
        let numbers = Numbers { body, little_endian };
        let (data, first) = (numbers.data(flags)?, numbers.word(20)?);
        let (count, bytes, of) = (numbers.half(24)?, numbers.half(26)?, numbers.word(28)?);
        let is_whole = first == 1 && u32::from(count) * u32::from(bytes) >= of;
        let (writer, sequence) = (numbers.writer()?, numbers.sequence()?);
        Some(Sample { participant, writer, sequence, fragment: Some(first), is_whole, data })
    }

    /// The first member of the sample's type, if this is an unsigned number of 8 bytes; `None` if the first bytes of the
    /// sample are not there, or have another representation than plain CDR.
    pub fn first_u64(&self) -> Option<u64> {
        if self.fragment.is_some_and(|first| first != 1) {
            return None;
        }
        let number: [u8; 8] = self.data.get(4..12)?.try_into().ok()?;
        // Representation identifiers of plain CDR and plain CDR version 2 (DDS-XTypes 7.6.2.1.2).
        match self.data.get(..2)? {
            [0, 0 | 6] => Some(u64::from_be_bytes(number)),
            [0, 1 | 7] => Some(u64::from_le_bytes(number)),
            _ => None,
        }
    }
}

/// The body of a DATA or DATA_FRAG submessage.
struct Numbers<'a> {
    body: &'a [u8],
    little_endian: bool,
}

impl<'a> Numbers<'a> {
    fn half(&self, at: usize) -> Option<u16> {
        let bytes = self.body.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if self.little_endian { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.body.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.little_endian { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn writer(&self) -> Option<EntityId> {
        Some(EntityId(self.body.get(8..12)?.try_into().ok()?))
    }

    fn sequence(&self) -> Option<i64> {
        Some(i64::from(self.word(12)? as i32) << 32 | i64::from(self.word(16)?))
    }

    /// The data after the members of the submessage and its parameters, as far as they are there.
    fn data(&self, flags: u8) -> Option<&'a [u8]> {
        // The distance to the parameters, or to the data, is counted from its own end.
        let mut at = usize::from(self.half(2)?) + 4;
        if flags & INLINE_QOS == 0 {
            return Some(self.body.get(at..).unwrap_or_default());
        }
        loop {
            let Some((id, length)) = self.half(at).zip(self.half(at + 2)) else { return Some(&[]) };
            at += 4;
            if id == SENTINEL {
                break;
            }
            at += usize::from(length);
        }
        Some(self.body.get(at..).unwrap_or_default())
    }
}
