//! Distinguishes copies of a packet, which passed several interfaces, from packets that were sent again.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

/// Longest time between two copies of a packet, ns.
const LONGEST_NS: i64 = 1_000_000_000;

/// Largest number of packets that are remembered.
const MOST: usize = 500_000;

/// The packets of the last second, and where each was seen.
#[derive(Default)]
pub struct Copies {
    seen: HashMap<u64, Passed>,
    order: VecDeque<(i64, u64)>,
}

/// An interface, and whether it sent the packet.
type Place = (i32, bool);

/// Where packets with the same bytes were seen.
struct Passed {
    /// When the first one was seen.
    first_ns: i64,
    /// Each place, and how many were seen there.
    places: Vec<(Place, u32)>,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A packet that was not seen before.
    New,
    /// A copy of a packet that was seen before. If that was sent by an interface and this is the next place which had it, the time between
    /// both, ns: the driver of the interface got it within this time.
    Copy { left_within_ns: Option<i64> },
}

impl Copies {
    /// Whether a packet is a copy of one that was seen before. The same bytes at the same place are another packet, which was sent
    /// again: of n packets with the same bytes, each place sees n.
    pub fn look(&mut self, stamp_ns: i64, place: Place, bytes: &[u8]) -> Found {
        let is_full = self.order.len() >= MOST;
        while let Some((_, old)) = self.order.front().filter(|(at, _)| is_full || (stamp_ns - at).abs() > LONGEST_NS) {
            self.seen.remove(old);
            self.order.pop_front();
            if is_full {
                break;
            }
        }
        let mut hasher = DefaultHasher::new();
        unchanging(bytes).for_each(|part| part.hash(&mut hasher));
        let key = hasher.finish();
        let Passed { first_ns, places } = match self.seen.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.order.push_back((stamp_ns, key));
                entry.insert(Passed { first_ns: stamp_ns, places: Vec::with_capacity(2) })
            }
        };
        let most = places.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let is_copy = match places.iter_mut().find(|(at, _)| *at == place) {
            Some((_, count)) => {
                *count += 1;
                *count <= most
            }
            None => {
                places.push((place, 1));
                most > 0
            }
        };
        if !is_copy {
            return Found::New;
        }
        // With several packets of the same bytes, it is not known which one was at the next place.
        let is_next = matches!(places[..], [((_, true), 1), (_, 1)]);
        Found::Copy { left_within_ns: is_next.then_some(stamp_ns - *first_ns).filter(|ns| *ns >= 0) }
    }
}

/// The bytes of a packet that are the same at all interfaces: without the hop limit and the checksum of IP, and without the checksum
/// of UDP, which a network card fills in.
fn unchanging(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let begins = |at: usize| bytes.get(at..at + 2).is_none_or(|place| place[0] & 0x1f == 0 && place[1] == 0);
    let cuts = match bytes.first() {
        Some(first) if first >> 4 == 6 => [(4, 7), (8, 46), (48, usize::MAX)],
        Some(0x45) if begins(6) => [(2, 8), (12, 26), (28, usize::MAX)],
        _ => [(2, 8), (12, 26), (26, usize::MAX)],
    };
    cuts.into_iter().map(|(from, to)| bytes.get(from.min(bytes.len())..to.min(bytes.len())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: [Place; 2] = [(1, true), (1, false)];

    #[test]
    fn each_place_sees_a_packet_once() {
        let mut copies = Copies::default();
        let mut copy = |at: i64, place: Place, bytes: &[u8]| copies.look(at, place, bytes) != Found::New;
        let mut packet = [0x45; 60];
        (packet[6], packet[7]) = (0x40, 0);
        assert_eq!(LOOPBACK.map(|place| copy(0, place, &packet)), [false, true]);
        // Sent again, with the same bytes.
        assert_eq!(LOOPBACK.map(|place| copy(10, place, &packet)), [false, true]);
        // Sent twice before it is received twice.
        let twice = [LOOPBACK[0], LOOPBACK[0], LOOPBACK[1], LOOPBACK[1]];
        assert_eq!(twice.map(|place| copy(20, place, &packet)), [false, false, true, true]);
        let mut routed = packet;
        (routed[8], routed[10], routed[26]) = (0x44, 1, 2);
        assert!(copy(30, (2, true), &routed), "a router changes the hop limit, and a network card the checksums");
        assert!(!copy(30, (1, true), &[0x46; 60]), "other bytes");
    }

    /// A packet leaves between its stamp at the interface that sends it, and the stamp at the next place.
    #[test]
    fn the_next_place_bounds_when_a_packet_left() {
        let mut copies = Copies::default();
        let mut look = |at: i64, place: Place, byte: u8| copies.look(at, place, &[byte; 60]);
        let within = |ns| Found::Copy { left_within_ns: ns };
        assert_eq!(
            [look(0, (1, true), 1), look(7, (1, false), 1), look(9, (2, false), 1)],
            [Found::New, within(Some(7)), within(None)]
        );
        assert_eq!(
            [look(0, (1, false), 2), look(5, (2, true), 2)],
            [Found::New, within(None)],
            "it was sent elsewhere"
        );
        assert_eq!(
            [look(0, (1, true), 3), look(1, (1, true), 3), look(2, (1, false), 3)],
            [Found::New, Found::New, within(None)]
        );
    }

    #[test]
    fn packets_are_forgotten() {
        let mut copies = Copies::default();
        assert!(copies.look(0, (1, true), &[0x45; 60]) == Found::New);
        assert!(copies.look(2 * LONGEST_NS, (2, true), &[0x45; 60]) == Found::New, "no copy after two seconds");
        assert_eq!((copies.seen.len(), copies.order.len()), (1, 1));
    }
}
