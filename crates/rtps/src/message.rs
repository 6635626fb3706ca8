//! The header of an RTPS message, and the sequence of its submessages.

use crate::content::{self, Content, Kind};
use crate::numbers::Numbers;
use crate::sample::{GuidPrefix, Sample, VendorId};

/// Length of the header of a message in bytes.
const HEADER: usize = 20;
/// Length of the header of a submessage in bytes.
const SUBMESSAGE_HEADER: usize = 4;

/// Kinds of submessages that matter here (DDSI-RTPS 9.4.5.1.1; DDS-Security 7.3.6.2 for the last ones).
const PAD: u8 = 0x01;
const ACK_NACK: u8 = 0x06;
const HEARTBEAT: u8 = 0x07;
const GAP: u8 = 0x08;
const INFO_TS: u8 = 0x09;
const INFO_SRC: u8 = 0x0c;
const INFO_DST: u8 = 0x0e;
const NACK_FRAG: u8 = 0x12;
const HEARTBEAT_FRAG: u8 = 0x13;
const DATA: u8 = 0x15;
const DATA_FRAG: u8 = 0x16;
const SEC_BODY: u8 = 0x30;
const SEC_PREFIX: u8 = 0x31;
const SEC_POSTFIX: u8 = 0x32;
const SRTPS_PREFIX: u8 = 0x33;
const SRTPS_POSTFIX: u8 = 0x34;

/// Flag of every submessage: its numbers are little endian.
const LITTLE_ENDIAN: u8 = 0x01;

/// An RTPS message, or its first bytes.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    source: GuidPrefix,
    vendor: VendorId,
    rest: &'a [u8],
    /// Number of bytes of the datagram behind `rest` that were not copied.
    not_copied: usize,
}

/// A submessage of an RTPS message.
#[derive(Debug, Clone, Copy)]
pub struct Submessage<'a> {
    kind: u8,
    flags: u8,
    /// Participant that sent the submessage.
    pub source: GuidPrefix,
    body: &'a [u8],
    /// Length of the body in the datagram.
    declared: usize,
}

impl<'a> Message<'a> {
    /// Reads the header of a message; `None` if these bytes are not the begin of an RTPS message of version 2.
    pub fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        Self::read_cut(bytes, bytes.len())
    }

    /// The same for the first bytes of a datagram that is `length` bytes long.
    pub fn read_cut(bytes: &'a [u8], length: usize) -> Option<Message<'a>> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let source = GuidPrefix(header.get(8..HEADER)?.try_into().ok()?);
        let message = Message {
            source,
            vendor: VendorId([header[6], header[7]]),
            rest,
            not_copied: length.saturating_sub(bytes.len()),
        };
        (header.starts_with(b"RTPS") && header[4] == 2).then_some(message)
    }

    /// Participant that sent the message.
    pub fn source(&self) -> GuidPrefix {
        self.source
    }

    /// Vendor of the implementation that sent the message.
    pub fn vendor(&self) -> VendorId {
        self.vendor
    }

    /// Number of bytes behind the last submessage that was read: after all submessages, those that were not copied.
    pub fn unread(&self) -> usize {
        self.rest.len() + self.not_copied
    }

    /// The first sample of a writer of an application in the message; discovery writes samples too, which are left out.
    pub fn sample(self) -> Option<Sample<'a>> {
        self.filter_map(|submessage| submessage.sample()).find(|sample| sample.writer.is_of_application())
    }

    /// Whether the message, or a submessage of it, is encrypted or signed, so that samples cannot be found.
    pub fn is_protected(mut self) -> bool {
        self.any(|submessage| submessage.content() == Content::Protected)
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
        let declared = if is_last { rest.len() + self.not_copied } else { length };
        self.not_copied = self.not_copied.saturating_sub(declared.saturating_sub(rest.len()));
        let (body, rest) = rest.split_at(declared.min(rest.len()));
        self.rest = rest;
        if kind == INFO_SRC
            && let Some(source) = body.get(8..20).and_then(|prefix| prefix.try_into().ok())
        {
            self.source = GuidPrefix(source);
        }
        Some(Submessage { kind, flags, source: self.source, body, declared })
    }
}

impl<'a> Submessage<'a> {
    /// The sample of a DATA or DATA_FRAG submessage; `None` for other kinds, and if its first bytes are missing.
    pub fn sample(&self) -> Option<Sample<'a>> {
        match self.content() {
            Content::Sample(sample) if sample.has_data => Some(sample),
            _ => None,
        }
    }

    /// What the submessage says.
    pub fn content(&self) -> Content<'a> {
        let numbers = Numbers { bytes: self.body, little_endian: self.flags & LITTLE_ENDIAN != 0 };
        let known =
            |kind: Kind| content::or_unread(content::read(kind, numbers, self.flags), self.body.len(), self.declared);
        let sample = |read| content::or_unread(Result::map(read, Content::Sample), self.body.len(), self.declared);
        match self.kind {
            DATA => sample(Sample::of_data(self.source, numbers, self.flags, self.declared)),
            DATA_FRAG => sample(Sample::of_fragment(self.source, numbers, self.flags, self.declared)),
            INFO_TS => known(Kind::InfoTimestamp),
            INFO_DST => known(Kind::InfoDestination),
            HEARTBEAT => known(Kind::Heartbeat),
            ACK_NACK => known(Kind::AckNack),
            GAP => known(Kind::Gap),
            HEARTBEAT_FRAG => known(Kind::HeartbeatFragments),
            NACK_FRAG => known(Kind::NackFragments),
            SEC_BODY | SEC_PREFIX | SEC_POSTFIX | SRTPS_PREFIX | SRTPS_POSTFIX => Content::Protected,
            _ => Content::Other,
        }
    }
}
