//! Transmit stamps: when the kernel and the network card had a message on its way out.
//!
//! The kernel gives a stamp back with the frame that it is about, so that the sequence number in the frame says to which message
//! the stamp belongs, whatever was refused before it.

use std::collections::VecDeque;

use crate::wire::{MAGIC, word};

/// Stages of a message on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The message came to the queue discipline of the interface.
    Queued,
    /// The driver of the interface got the message.
    Sent,
    /// The network card sent the message.
    Wire,
}

impl Stage {
    /// Word for the stage in the answer to the query `stamps`.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Queued => "queued",
            Stage::Sent => "sent",
            Stage::Wire => "wire",
        }
    }
}

/// Stamp of one message at one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub seq: u64,
    pub stage: Stage,
    /// Time of CLOCK_REALTIME, or of the clock of the network card for [`Stage::Wire`], ns.
    pub at_ns: i64,
}

/// Stamps that were read and not asked for yet.
#[derive(Default)]
pub struct Collected {
    pub stamps: VecDeque<Stamp>,
    /// Number of stamps whose frame does not show the sequence number.
    pub unread: u64,
    /// Number of stamps that were left out because there were too many.
    pub left_out: u64,
}

/// Largest number of stamps that wait for a query: 100 MB.
const MOST: usize = 4 << 20;

impl Collected {
    /// Adds a stamp with the begin of its frame.
    pub fn add(&mut self, frame: &[u8], (stage, at_ns): (Stage, i64)) {
        match sequence(frame) {
            // A discovery question is no message.
            Some(MAGIC) => {}
            Some(seq) if self.stamps.len() < MOST => self.stamps.push_back(Stamp { seq, stage, at_ns }),
            Some(_) => self.left_out += 1,
            None => self.unread += 1,
        }
    }
}

/// Sequence number of the sample in a frame that begins with its Ethernet header, or, without one, with its IP header. `None` if
/// there is no first fragment of a UDP datagram.
fn sequence(frame: &[u8]) -> Option<u64> {
    let number = |datagram: &[u8]| Some(word(datagram.get(UDP_HEADER..UDP_HEADER + 8)?, 0));
    // An address of a packet without an Ethernet header can look like the type of a frame.
    of_ethernet(frame).and_then(udp).and_then(number).or_else(|| udp(frame).and_then(number))
}

/// The packet in an Ethernet frame that carries IPv4 or IPv6.
fn of_ethernet(frame: &[u8]) -> Option<&[u8]> {
    const VLAN_TAGS: [u16; 2] = [0x8100, 0x88A8];
    let mut at = 12;
    while VLAN_TAGS.contains(&big_endian(frame, at)?) {
        at += 4;
    }
    matches!(big_endian(frame, at)?, 0x0800 | 0x86DD).then(|| frame.get(at + 2..))?
}

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// The UDP header and what follows it, of a packet that begins with its IPv4 or IPv6 header; `None` if there is none in it.
fn udp(packet: &[u8]) -> Option<&[u8]> {
    const FRAGMENT_HEADER: u8 = 44;
    match packet.first()? >> 4 {
        4 => {
            // The offset of the fragment is in the lower 13 bits.
            let is_first = big_endian(packet, 6)? & 0x1FFF == 0;
            let header = usize::from(packet[0] & 15) * 4;
            (is_first && *packet.get(9)? == UDP).then(|| packet.get(header..))?
        }
        6 => match *packet.get(6)? {
            UDP => packet.get(40..),
            FRAGMENT_HEADER if *packet.get(40)? == UDP && big_endian(packet, 42)? >> 3 == 0 => packet.get(48..),
            _ => None,
        },
        _ => None,
    }
}

fn big_endian(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEQ: u64 = 0x0102_0304_0506_0708;

    /// An IPv4 packet with a UDP datagram; `fragment` is the field with the flags and the offset of the fragment.
    fn ipv4(fragment: u16) -> Vec<u8> {
        let mut packet = vec![0x46, 0, 0, 0, 0, 0];
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, UDP]);
        packet.resize(24 + UDP_HEADER, 0);
        packet.extend(SEQ.to_le_bytes());
        packet
    }

    fn ipv6(next: u8, between: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, next];
        packet.resize(40, 0);
        packet.extend(between);
        packet.resize(packet.len() + UDP_HEADER, 0);
        packet.extend(SEQ.to_le_bytes());
        packet
    }

    /// The packet with a source address that begins with these bytes.
    fn from(address: [u8; 2], mut packet: Vec<u8>) -> Vec<u8> {
        packet[12..14].copy_from_slice(&address);
        packet
    }

    fn framed(types: &[u8], packet: &[u8]) -> Vec<u8> {
        [&[0x45; 12], types, packet].concat()
    }

    #[test]
    fn the_sequence_number_is_found_behind_all_headers() {
        let frames = [
            framed(&[8, 0], &ipv4(0x4000)),
            framed(&[8, 0], &ipv4(0x2000)),
            framed(&[0x81, 0, 0xE0, 5, 8, 0], &ipv4(0)),
            framed(&[0x88, 0xA8, 0, 7, 0x81, 0, 0, 5, 0x86, 0xDD], &ipv6(UDP, &[])),
            framed(&[0x86, 0xDD], &ipv6(44, &[UDP, 0, 0, 1, 0, 0, 0, 9])),
            // Without an Ethernet header.
            ipv4(0),
            from([8, 0], ipv4(0)),
            from([0x81, 0], ipv4(0)),
            ipv6(UDP, &[]),
        ];
        for frame in &frames {
            assert_eq!(sequence(frame), Some(SEQ), "{frame:x?}");
            assert_eq!(sequence(&frame[..frame.len() - 1]), None);
        }
    }

    #[test]
    fn a_frame_without_the_begin_of_a_datagram_has_no_sequence_number() {
        let mut tcp = framed(&[8, 0], &ipv4(0));
        tcp[14 + 9] = 6;
        let later = framed(&[8, 0], &ipv4(0x2001));
        let later_v6 = framed(&[0x86, 0xDD], &ipv6(44, &[UDP, 0, 0, 8, 0, 0, 0, 9]));
        let mut collected = Collected::default();
        for frame in [tcp, later, later_v6, framed(&[8, 6], &[0; 60]), Vec::new()] {
            collected.add(&frame, (Stage::Sent, 5));
        }
        collected.add(&framed(&[8, 0], &ipv4(0)), (Stage::Queued, 7));
        assert_eq!((collected.unread, collected.left_out), (5, 0));
        assert_eq!(collected.stamps, [Stamp { seq: SEQ, stage: Stage::Queued, at_ns: 7 }]);
    }
}
