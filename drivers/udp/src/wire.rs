//! What is on the wire: data, before matching the question for a topic and its answer, and the end of a reader.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Octets before the payload: the sequence number, little endian.
pub const HEADER: usize = 8;
/// Largest payload of a UDP datagram over IPv4, less the header.
pub const MAX_PAYLOAD: u64 = 65_507 - HEADER as u64;
/// Octets of a control datagram.
pub const CONTROL: usize = 32;
/// In the place of the sequence number; `send` refuses it as one.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tb-hello");

/// First port; the range ends below the ports that Linux hands out by itself (32768 and above).
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = 12_768;
/// Candidates that every writer asks.
pub const FEWEST_CANDIDATES: u32 = 4;
/// Candidates that a reader tries to bind.
pub const MOST_CANDIDATES: u32 = 68;

/// A datagram that is not data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A writer asks for readers of a topic.
    Hello {
        /// [`topic_key`].
        topic: u64,
        /// The writer.
        writer: u64,
    },
    /// A reader of the topic answers.
    Ack {
        /// [`topic_key`].
        topic: u64,
        /// The reader.
        reader: u64,
    },
    /// A reader of the topic ends.
    Bye {
        /// [`topic_key`].
        topic: u64,
        /// The reader.
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

    /// `None`: it is data.
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

/// The i-th little-endian word; 0 beyond the end.
#[inline]
pub fn word(bytes: &[u8], i: usize) -> u64 {
    bytes.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Identifies topic and domain (FNV-1a, 64 bits).
pub fn topic_key(domain: u32, topic: &str) -> u64 {
    let bytes = domain.to_le_bytes().into_iter().chain(topic.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The i-th port on which a reader of the topic may be.
pub fn candidate_port(topic: u64, i: u32) -> u16 {
    // The upper half is mixed in: the lower bits of FNV depend on the last characters most.
    let base = (topic ^ (topic >> 32)) % PORTS;
    FIRST_PORT + ((base + u64::from(i)) % PORTS) as u16
}

/// Group and port of a topic's samples: within 239.255.0.0/16, which stays inside a site, away from DDS at 239.255.0.1.
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
