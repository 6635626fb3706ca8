//! Captures in files, as tcpdump, dumpcap and Wireshark write them: pcap and pcapng.

use crate::watch::Seen;
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::collections::VecDeque;
use std::io::Read;
use thiserror::Error;

/// Room for a block of a file in bytes; a packet has at most 256 KiB.
const ROOM: usize = 1 << 20;
/// Units of pcapng without another statement, and of pcap, per second.
const MICROSECONDS: u64 = 1_000_000;
const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;
/// Headers of `tcpdump -i any`, in two versions.
const LINUX_SLL: i32 = 113;
const LINUX_SLL2: i32 = 276;
/// The latest time that a packet can have: ns since 1970.
const LATEST_NS: i128 = i64::MAX as i128 / 2;
/// linux/if_packet.h: this host sent the packet.
const OUTGOING: u16 = 4;

/// Why a file cannot be read as a capture.
#[derive(Debug, Error)]
pub enum CaptureFileError {
    /// The begin of the file is not the one of a capture.
    #[error("this is no capture in the form pcap or pcapng")]
    NoCapture,
    /// No packet of the file has a kind of link whose headers are known.
    #[error("the packets have a kind of link that is not known here ({0})")]
    UnknownLink(i32),
    /// The file has no packets.
    #[error("the capture has no packets")]
    Empty,
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(String),
}

/// What was in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureFile {
    /// Packets that were given to the function.
    pub packets: u64,
    /// When the first and the last of them were captured: ns since 1970.
    pub span_ns: (i64, i64),
    /// Packets that were left out because the headers of their link are not known.
    pub of_unknown_links: u64,
    /// Packets without a time of their own (simple packet blocks of pcapng), which were left out.
    pub without_time: u64,
    /// Packets of which the file does not say at which interface they passed, although it has those of all (LINUX_SLL).
    pub of_any_interface: u64,
    /// Whether the file ends within a packet, or has an impossible block: what follows was not read.
    pub is_cut: bool,
}

/// The interface of a packet, as the file describes it.
#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    units_per_s: u64,
    offset_s: i64,
}

/// Gives each packet of a capture to `each`, in the order of the file.
///
/// # Errors
/// The file is no capture, has no packets that can be read, or cannot be read.
pub fn read_capture(file: impl Read + Send, mut each: impl FnMut(Seen<'_>)) -> Result<CaptureFile, CaptureFileError> {
    let mut reader = create_reader(ROOM, file).map_err(|_| CaptureFileError::NoCapture)?;
    let mut found = Found::default();
    loop {
        match reader.next() {
            Ok((length, block)) => {
                found.block(&block, &mut each);
                reader.consume(length);
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => {
                // A file that ends within a block gives no more bytes.
                if reader.reader_exhausted() {
                    found.is_cut = true;
                    break;
                }
                reader.refill().map_err(|e| CaptureFileError::Read(format!("{e:?}")))?;
            }
            Err(PcapError::ReadError) => return Err(CaptureFileError::Read("a read failed".into())),
            Err(_) => {
                found.is_cut = true;
                break;
            }
        }
    }
    found.end()
}

#[derive(Default)]
struct Found {
    interfaces: VecDeque<Interface>,
    packets: u64,
    span_ns: Option<(i64, i64)>,
    of_unknown_links: u64,
    unknown_link: Option<i32>,
    without_time: u64,
    of_any_interface: u64,
    is_cut: bool,
}

impl Found {
    fn block(&mut self, block: &PcapBlockOwned<'_>, each: &mut impl FnMut(Seen<'_>)) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let units_per_s = if header.is_nanosecond_precision() { 1_000_000_000 } else { MICROSECONDS };
                self.interfaces = VecDeque::from([Interface { link: header.network, units_per_s, offset_s: 0 }]);
            }
            PcapBlockOwned::Legacy(packet) => {
                let Some(interface) = self.interfaces.front().copied() else { return };
                let units = i128::from(packet.ts_sec) * i128::from(interface.units_per_s) + i128::from(packet.ts_usec);
                self.packet(interface, (0, units, None), packet.data, each);
            }
            // The interfaces of a section are numbered from zero.
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => self.interfaces.push_back(Interface {
                link: interface.linktype,
                units_per_s: interface.ts_resolution().unwrap_or(MICROSECONDS).max(1),
                offset_s: interface.ts_offset(),
            }),
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let Some(interface) = self.interfaces.get(packet.if_id as usize).copied() else { return };
                let units = i128::from(packet.ts_high) << 32 | i128::from(packet.ts_low);
                self.packet(interface, (packet.if_id, units, direction(packet)), packet.packet_data(), each);
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => self.without_time += 1,
            PcapBlockOwned::NG(_) => {}
        }
    }

    /// A packet of an interface with a number, with its time in the units of the interface, and whether this host sent it.
    fn packet(
        &mut self,
        interface: Interface,
        (number, units, is_sent): (u32, i128, Option<bool>),
        data: &[u8],
        each: &mut impl FnMut(Seen<'_>),
    ) {
        let Some((bytes, sent_by_link)) = without_link(interface.link, data) else {
            self.of_unknown_links += 1;
            self.unknown_link.get_or_insert(interface.link.0);
            return;
        };
        let ns = units * NANOSECONDS_PER_SECOND / i128::from(interface.units_per_s)
            + i128::from(interface.offset_s) * NANOSECONDS_PER_SECOND;
        // Impossible times stay in a range whose differences are numbers.
        let stamp_ns = i64::try_from(ns.clamp(0, LATEST_NS)).unwrap_or(0);
        let (first, last) = self.span_ns.unwrap_or((stamp_ns, stamp_ns));
        self.span_ns = Some((first.min(stamp_ns), last.max(stamp_ns)));
        self.packets += 1;
        let is_sent = is_sent.or(sent_by_link).unwrap_or(false);
        self.of_any_interface += u64::from(interface.link.0 == LINUX_SLL);
        // The second version of the header has the index of the interface.
        let index = data.get(4..8).and_then(|bytes| Some(u32::from_be_bytes(*bytes.first_chunk()?)));
        let number = index.filter(|_| interface.link.0 == LINUX_SLL2).unwrap_or(number);
        each(Seen { stamp_ns, interface: i32::try_from(number).unwrap_or(i32::MAX), is_sent, bytes });
    }

    fn end(self) -> Result<CaptureFile, CaptureFileError> {
        match (self.span_ns, self.unknown_link) {
            (Some(span_ns), _) => Ok(CaptureFile {
                packets: self.packets,
                span_ns,
                of_unknown_links: self.of_unknown_links,
                without_time: self.without_time,
                of_any_interface: self.of_any_interface,
                is_cut: self.is_cut,
            }),
            (None, Some(link)) => Err(CaptureFileError::UnknownLink(link)),
            (None, None) if self.interfaces.is_empty() => Err(CaptureFileError::NoCapture),
            (None, None) => Err(CaptureFileError::Empty),
        }
    }
}

/// Whether this host sent a packet of pcapng, if its flags say so (option `epb_flags`, bits 0 and 1: 1 inbound, 2 outbound).
fn direction(packet: &pcap_parser::EnhancedPacketBlock<'_>) -> Option<bool> {
    let flags = packet.options.iter().find(|option| option.code.0 == 2)?;
    let last = if packet.big_endian() { flags.value.get(3) } else { flags.value.first() };
    match last? & 3 {
        1 => Some(false),
        2 => Some(true),
        _ => None,
    }
}

/// The packet from the header of IP on, and whether this host sent it, if the header of the link says so. `None` = another kind of
/// link. A packet that is none of IP is empty.
fn without_link(link: Linktype, data: &[u8]) -> Option<(&[u8], Option<bool>)> {
    let half = |at: usize| Some(u16::from_be_bytes(*data.get(at..)?.first_chunk()?));
    let rest = |at: usize| data.get(at..).unwrap_or_default();
    let of_type = |kind: Option<u16>, at: usize| match kind {
        Some(0x0800 | 0x86dd) => rest(at),
        _ => &[][..],
    };
    let sent = |kind: Option<u16>| kind.map(|kind| kind == OUTGOING);
    Some(match link.0 {
        // Ethernet, with tags of VLANs.
        1 => {
            let mut at = 12;
            while matches!(half(at), Some(0x8100 | 0x88a8)) {
                at += 4;
            }
            (of_type(half(at), at + 2), None)
        }
        // The loopback interface of BSD: a number of 4 bytes for the kind of the packet.
        0 | 108 => (rest(4), None),
        // IP without a header in front of it.
        12 | 14 | 101 | 228 | 229 => (rest(0), None),
        LINUX_SLL => (of_type(half(14), 16), sent(half(0))),
        LINUX_SLL2 => (of_type(half(0), 20), sent(data.get(10).map(|kind| u16::from(*kind)))),
        _ => return None,
    })
}
