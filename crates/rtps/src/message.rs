//! The header of an RTPS message, and the sequence of its submessages.

use crate::sample::{GuidPrefix, Sample};

/// Length of the header of a message in bytes.
const HEADER: usize = 20;
/// Length of the header of a submessage in bytes.
const SUBMESSAGE_HEADER: usize = 4;

/// Kinds of submessages that matter here (DDSI-RTPS 9.4.5.1.1; DDS-Security 7.3.6.2 for the last three).
const PAD: u8 = 0x01;
const INFO_TS: u8 = 0x09;
const INFO_SRC: u8 = 0x0c;
const DATA: u8 = 0x15;
const DATA_FRAG: u8 = 0x16;
const SEC_BODY: u8 = 0x30;
const SEC_PREFIX: u8 = 0x31;
const SRTPS_PREFIX: u8 = 0x33;

/// Flag of every submessage: its numbers are little endian.
const LITTLE_ENDIAN: u8 = 0x01;

/// An RTPS message, or its first bytes.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    source: GuidPrefix,
    rest: &'a [u8],
}

/// A submessage of an RTPS message.
#[derive(Debug, Clone, Copy)]
pub struct Submessage<'a> {
    kind: u8,
    flags: u8,
    /// Participant that sent the submessage.
    source: GuidPrefix,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads the header of a message; `None` if these bytes are not the begin of an RTPS message of version 2.
    pub fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let source = GuidPrefix(header.get(8..HEADER)?.try_into().ok()?);
        (header.starts_with(b"RTPS") && header[4] == 2).then_some(Message { source, rest })
    }

    /// The first sample of a writer of an application in the message; discovery writes samples too, which are left out.
    pub fn sample(self) -> Option<Sample<'a>> {
        self.filter_map(|submessage| submessage.sample()).find(|sample| sample.writer.is_of_application())
    }

    /// Whether the message, or a submessage of it, is encrypted or signed, so that samples cannot be found.
    pub fn is_protected(mut self) -> bool {
        self.any(|submessage| matches!(submessage.kind, SEC_BODY | SEC_PREFIX | SRTPS_PREFIX))
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Submessage<'a>;

    fn next(&mut self) -> Option<Submessage<'a>> {
        let (header, rest) = self.rest.split_at_checked(SUBMESSAGE_HEADER)?;
        let (kind, flags) = (header[0], header[1]);
        let length = [header[2], header[3]];
        let length = usize::from(match flags & LITTLE_ENDIAN {
            0 => u16::from_be_bytes(length),
            _ => u16::from_le_bytes(length),
        });
        // Length 0 is the last submessage, which ends with the message; of these two kinds, it is an empty submessage.
        let is_last = length == 0 && !matches!(kind, PAD | INFO_TS);
        let length = if is_last { rest.len() } else { length.min(rest.len()) };
        let (body, rest) = rest.split_at(length);
        self.rest = rest;
        if kind == INFO_SRC
            && let Some(source) = body.get(8..20).and_then(|prefix| prefix.try_into().ok())
        {
            self.source = GuidPrefix(source);
        }
        Some(Submessage { kind, flags, source: self.source, body })
    }
}

impl<'a> Submessage<'a> {
    /// The sample of a DATA or DATA_FRAG submessage; `None` for other kinds, and if its first bytes are missing.
    pub fn sample(&self) -> Option<Sample<'a>> {
        let little_endian = self.flags & LITTLE_ENDIAN != 0;
        match self.kind {
            DATA => Sample::of_data(self.source, self.body, self.flags, little_endian),
            DATA_FRAG => Sample::of_fragment(self.source, self.body, self.flags, little_endian),
            _ => None,
        }
    }
}
