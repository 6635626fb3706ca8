//! Numbers in the byte order of a submessage.

/// Why the members of a submessage cannot be read.
pub(crate) enum Fault {
    /// Members are missing: the submessage is too short, or was not copied to its end.
    Short,
    /// Members have values that they cannot have.
    Impossible,
}

/// Bytes with numbers of one byte order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'a> {
    pub bytes: &'a [u8],
    pub little_endian: bool,
}

impl Numbers<'_> {
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    pub fn half(&self, at: usize) -> Option<u16> {
        let bytes = self.array(at)?;
        Some(if self.little_endian { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    pub fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.array(at)?;
        Some(if self.little_endian { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    /// A sequence number: its high half comes first, whatever the byte order (9.4.2.5).
    pub fn sequence(&self, at: usize) -> Option<i64> {
        Some(i64::from(self.word(at)? as i32) << 32 | i64::from(self.word(at.checked_add(4)?)?))
    }
}
