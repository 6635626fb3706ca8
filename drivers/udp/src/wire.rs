//! The datagrams of the driver: samples, and control datagrams. Before matching, a writer asks for the readers of a
//! topic (discovery question), and a reader answers; a reader that ends says goodbye.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Number of bytes before the payload in a datagram: the sequence number, little endian.
pub const HEADER: usize = 8;
/// Largest payload of a sample in bytes: the largest UDP datagram over IPv4, without the header.
pub const MAX_PAYLOAD: u64 = 65_507 - HEADER as u64;
/// Length of a control datagram (discovery question, answer or goodbye) in bytes.
pub const CONTROL: usize = 32;
/// Value that marks a control datagram, in the place of the sequence number; `send` refuses this value as a sequence
/// number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tb-hello");

/// First port of the driver; the range of ports ends below the ports that Linux assigns automatically (32768 and
/// above).
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = 12_768;
/// Each topic has several ports at which its readers may receive (candidate ports). A writer sends its discovery question
/// to at least this many of them.
pub const FEWEST_CANDIDATES: u32 = 4;
/// Number of candidate ports that a reader tries to bind.
pub const MOST_CANDIDATES: u32 = 68;

/// A control datagram (discovery question, answer or goodbye), which contains no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Discovery question: a writer asks for the readers of a topic.
    Hello {
        /// Key of the topic for which the writer asks, see [`topic_key`].
        topic: u64,
        /// Identity of the writer that asks.
        writer: u64,
    },
    /// Answer: a reader of the topic answers the discovery question of a writer.
    Ack {
        /// Key of the topic of the answering reader, see [`topic_key`].
        topic: u64,
        /// Identity of the answering reader.
        reader: u64,
    },
    /// Goodbye: a reader of the topic ends.
    Bye {
        /// Key of the topic of the ending reader, see [`topic_key`].
        topic: u64,
        /// Identity of the ending reader.
        reader: u64,
    },
}

impl Control {
    pub fn encode(self) -> [u8; CONTROL] {
        let (kind, topic, id) = match self {
            Control::Hello { topic, writer } => (1u64, topic, writer),
            Control::Ack { topic, reader } => (2, topic, reader),
            Control::Bye { topic, reader } => (3, topic, reader),
        };
        let mut out = [0; CONTROL];
        for (at, word) in out.chunks_exact_mut(8).zip([MAGIC, kind, topic, id]) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// Decodes a control datagram; `None` if the datagram contains data.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Option<Control> {
        if datagram.len() != CONTROL || word(datagram, 0) != MAGIC {
            return None;
        }
        let (topic, id) = (word(datagram, 2), word(datagram, 3));
        match word(datagram, 1) {
            1 => Some(Control::Hello { topic, writer: id }),
            2 => Some(Control::Ack { topic, reader: id }),
            3 => Some(Control::Bye { topic, reader: id }),
            _ => None,
        }
    }
}

/// Reads the i-th little-endian word of 64 bits; 0 after the end of the bytes.
#[inline]
pub fn word(bytes: &[u8], i: usize) -> u64 {
    bytes.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Computes a number that identifies a topic and its domain (FNV-1a, 64 bits).
pub fn topic_key(domain: u32, topic: &str) -> u64 {
    let bytes = domain.to_le_bytes().into_iter().chain(topic.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Returns the i-th port that a reader of the topic may have.
pub fn candidate_port(topic: u64, i: u32) -> u16 {
    // The upper half is mixed in, because the lower bits of FNV depend mostly on the last characters.
    let base = (topic ^ (topic >> 32)) % PORTS;
    FIRST_PORT + ((base + u64::from(i)) % PORTS) as u16
}

/// Returns the multicast group and port for the samples of a topic. The group is in 239.255.0.0/16, which stays inside
/// a site, and is not 239.255.0.1, which DDS uses.
pub fn group(topic: u64) -> SocketAddr {
    let [low, high, ..] = (topic ^ (topic >> 32)).to_be_bytes();
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(239, 255, low | 0x80, high), candidate_port(topic, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_datagrams_are_told_from_data() {
        let hello = Control::Hello { topic: 7, writer: u64::MAX };
        assert_eq!(Control::decode(&hello.encode()), Some(hello));
        let ack = Control::Ack { topic: 7, reader: 0 };
        assert_eq!(Control::decode(&ack.encode()), Some(ack));
        let bye = Control::Bye { topic: 7, reader: 1 };
        assert_eq!(Control::decode(&bye.encode()), Some(bye));
        assert_eq!(Control::decode(&[0; CONTROL]), None);
        assert_eq!(Control::decode(&hello.encode()[..31]), None);
    }

    #[test]
    fn candidates_stay_below_the_ports_that_linux_hands_out() {
        for n in 0..1000 {
            let key = topic_key(n, "tailbound_ping");
            for i in 0..MOST_CANDIDATES {
                assert!((20_000..32_768).contains(&candidate_port(key, i)));
            }
        }
    }
}
