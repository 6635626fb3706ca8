//! Packets of UDP with RTPS messages, as programs send them.

use std::net::Ipv4Addr;

/// The writer and the reader of these messages.
const WRITER: [u8; 4] = [0, 0, 1, 3];
const READER: [u8; 4] = [0, 0, 1, 4];

/// A participant at an address of the loopback network, or, from 100 on, of another one.
#[derive(Clone, Copy)]
pub struct Peer {
    pub host: u8,
    pub port: u16,
    pub prefix: u8,
}

pub const PING: Peer = Peer { host: 1, port: 7411, prefix: 1 };
/// On another host.
pub const FAR: Peer = Peer { host: 101, port: 7411, prefix: 3 };
pub const PONG: Peer = Peer { host: 2, port: 7411, prefix: 2 };

impl Peer {
    fn header(self, to: Peer, length: usize, id: u16, place: u16) -> Vec<u8> {
        let mut ip = vec![0x45, 0];
        ip.extend((length as u16 + 20).to_be_bytes());
        ip.extend(id.to_be_bytes());
        ip.extend(place.to_be_bytes());
        ip.extend([64, 17, 0, 0]);
        ip.extend(
            [self, to]
                .map(|peer| Ipv4Addr::new(if peer.host < 100 { 127 } else { 10 }, 0, 0, peer.host).octets())
                .concat(),
        );
        ip
    }

    /// A packet with a payload.
    pub fn datagram(self, to: Peer, payload: &[u8]) -> Vec<u8> {
        [self.header(to, payload.len() + 8, 0, 0x4000), self.udp(to, payload)].concat()
    }

    fn udp(self, to: Peer, payload: &[u8]) -> Vec<u8> {
        let numbers = [self.port, to.port, payload.len() as u16 + 8, 0];
        numbers.iter().flat_map(|number| number.to_be_bytes()).chain(payload.iter().copied()).collect()
    }

    /// The same in fragments of IP of 1,480 bytes.
    pub fn ip_fragments(self, to: Peer, payload: &[u8]) -> Vec<Vec<u8>> {
        let whole = self.udp(to, payload);
        let parts: Vec<&[u8]> = whole.chunks(1480).collect();
        let id = payload.len() as u16 ^ u16::from(payload[payload.len() / 2]) ^ u16::from(payload[60]) << 8;
        let packet = |(index, part): (usize, &&[u8])| {
            let goes_on = if index + 1 < parts.len() { 0x2000 } else { 0 };
            [self.header(to, part.len(), id, goes_on | (index * 185) as u16), part.to_vec()].concat()
        };
        parts.iter().enumerate().map(packet).collect()
    }

    fn prefix(self) -> [u8; 12] {
        [self.prefix; 12]
    }
}

/// An RTPS message of Cyclone DDS.
pub fn message(from: Peer, submessages: &[Vec<u8>]) -> Vec<u8> {
    [b"RTPS\x02\x05\x01\x10".to_vec(), from.prefix().to_vec(), submessages.concat()].concat()
}

fn submessage(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let length = if body.len() > 0xffff { 0 } else { body.len() as u16 };
    [&[kind, flags | 1][..], &length.to_le_bytes(), body].concat()
}

fn sequence(number: i64) -> Vec<u8> {
    [((number >> 32) as u32).to_le_bytes(), (number as u32).to_le_bytes()].concat()
}

/// The source timestamp of the samples that follow.
pub fn info_ts(ns: i64) -> Vec<u8> {
    let fraction = (((ns % 1_000_000_000) as u128) << 32).div_ceil(1_000_000_000) as u32;
    submessage(0x09, 0, &[((ns / 1_000_000_000) as u32).to_le_bytes(), fraction.to_le_bytes()].concat())
}

/// The submessages that follow are meant for one participant.
pub fn info_dst(to: Peer) -> Vec<u8> {
    submessage(0x0e, 0, &to.prefix())
}

/// A sample for all readers, with `bytes` bytes of data behind the header of the encoding.
pub fn data(number: i64, bytes: usize) -> Vec<u8> {
    sample(number, bytes, [0; 4])
}

/// A sample for one reader.
pub fn data_of(number: i64, bytes: usize, _: Peer) -> Vec<u8> {
    sample(number, bytes, READER)
}

fn sample(number: i64, bytes: usize, reader: [u8; 4]) -> Vec<u8> {
    let members = [vec![0, 0, 16, 0], reader.to_vec(), WRITER.to_vec(), sequence(number)].concat();
    submessage(0x15, 4, &[members, vec![0, 1, 0, 0], vec![number as u8; bytes]].concat())
}

/// One fragment of 1,000 bytes of a sample.
pub fn fragment(number: i64, index: u32, bytes: u32) -> Vec<u8> {
    let members = [vec![0, 0, 28, 0], vec![0; 4], WRITER.to_vec(), sequence(number)].concat();
    let sizes = [
        index.to_le_bytes().to_vec(),
        1u16.to_le_bytes().to_vec(),
        1000u16.to_le_bytes().to_vec(),
        bytes.to_le_bytes().to_vec(),
    ];
    submessage(0x16, 0, &[members, sizes.concat(), vec![0; 1000]].concat())
}

pub fn heartbeat(first: i64, last: i64, count: u32) -> Vec<u8> {
    let body = [vec![0; 4], WRITER.to_vec(), sequence(first), sequence(last), count.to_le_bytes().to_vec()];
    submessage(0x07, 0, &body.concat())
}

fn set(base: i64, numbers: &[i64]) -> Vec<u8> {
    let mut word = 0u32;
    numbers.iter().for_each(|number| word |= 1 << (31 - (number - base)));
    let bits = if numbers.is_empty() { vec![0; 4] } else { [32u32.to_le_bytes(), word.to_le_bytes()].concat() };
    [sequence(base), bits].concat()
}

/// The reader has all samples before `base`, and misses some.
pub fn nack(base: i64, missing: &[i64], count: u32) -> Vec<u8> {
    submessage(0x06, 0, &[READER.to_vec(), WRITER.to_vec(), set(base, missing), count.to_le_bytes().to_vec()].concat())
}

/// The reader misses fragments of a sample.
pub fn nack_fragments(number: i64) -> Vec<u8> {
    let numbers = [2u32.to_le_bytes(), 1u32.to_le_bytes(), (1u32 << 31).to_le_bytes(), 1u32.to_le_bytes()].concat();
    submessage(0x12, 0, &[READER.to_vec(), WRITER.to_vec(), sequence(number), numbers].concat())
}

/// The samples from `start` to before `end` will not come.
pub fn gap(start: i64, end: i64) -> Vec<u8> {
    submessage(0x08, 0, &[READER.to_vec(), WRITER.to_vec(), sequence(start), set(end, &[])].concat())
}

/// The number of a writer in its participant.
#[derive(Clone, Copy)]
pub struct Entity(pub u8);

impl Entity {
    fn bytes(self) -> [u8; 4] {
        [0, 0, self.0, 3]
    }
}

/// A sample of 40 bytes whose first member is a time, as in a header of ROS 2.
pub fn data_with(writer: Entity, number: i64, header_ns: i64) -> Vec<u8> {
    let members = [vec![0, 0, 16, 0], vec![0; 4], writer.bytes().to_vec(), sequence(number)].concat();
    let time = [((header_ns / 1_000_000_000) as u32).to_le_bytes(), ((header_ns % 1_000_000_000) as u32).to_le_bytes()];
    submessage(0x15, 4, &[members, vec![0, 1, 0, 0], time.concat(), vec![number as u8; 32]].concat())
}

/// The announcement of the writer, with a deadline of 200 ms.
pub fn writer_announced(of: Peer, topic: &str, type_name: &str) -> Vec<u8> {
    announced(of, WRITER, topic, type_name)
}

/// The same of another writer.
pub fn writer_announced_as(of: Peer, writer: Entity, topic: &str, type_name: &str) -> Vec<u8> {
    announced(of, writer.bytes(), topic, type_name)
}

fn announced(of: Peer, writer: [u8; 4], topic: &str, type_name: &str) -> Vec<u8> {
    let parameter = |id: u16, value: &[u8]| {
        let mut value = value.to_vec();
        value.resize(value.len().next_multiple_of(4), 0);
        [&id.to_le_bytes()[..], &(value.len() as u16).to_le_bytes(), &value].concat()
    };
    let text = |text: &str| [&(text.len() as u32 + 1).to_le_bytes()[..], text.as_bytes(), &[0]].concat();
    let fifth_of_second = [0u32.to_le_bytes(), (u32::MAX / 5 + 1).to_le_bytes()].concat();
    let list = [
        parameter(0x05, &text(topic)),
        parameter(0x07, &text(type_name)),
        parameter(0x5a, &[of.prefix().to_vec(), writer.to_vec()].concat()),
        parameter(0x1a, &[2u32.to_le_bytes(), 0u32.to_le_bytes(), 0u32.to_le_bytes()].concat()),
        parameter(0x1d, &1u32.to_le_bytes()),
        parameter(0x23, &fifth_of_second),
        vec![1, 0, 0, 0],
    ];
    let members = [vec![0, 0, 16, 0], vec![0; 4], vec![0, 0, 3, 0xc2], sequence(1)].concat();
    submessage(0x15, 4, &[members, vec![0, 3, 0, 0], list.concat()].concat())
}
