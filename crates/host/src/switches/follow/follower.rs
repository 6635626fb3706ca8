//! Joins the records of packets with the messages of one process.

use super::identity::{Content, Divided, content};
use super::ports::Sockets;
use super::recent::Recent;
use crate::switches::kept::{Kept, Spared, Timed};
use crate::switches::tracefs::Tracefs;
use crate::switches::windows::affordable;
use std::collections::{BTreeMap, BTreeSet};
use tailbound_abi::*;
use tailbound_model::{
    COUNTER_BITS, HopPlace, IN_PAGES, NotFollowed, PROTECTED, PacketDevice, PacketHop, Packets, SocketRead, is_unread,
};

/// Maximum number of hops in a result, so that the result fits into a frame of the agent's protocol.
const MOST_REPORTED: usize = 32_000;
/// Maximum number of reads of sockets in a result.
const MOST_READS: usize = 20_000;
/// Maximum number of hops kept in memory; a hop has 48 bytes.
const MOST_HOPS: usize = 2 << 20;
/// Maximum number of reads of sockets kept in memory.
const READS_KEPT: usize = 1 << 20;
/// Maximum number of drops in a result.
const MOST_DROPS: usize = 10_000;
/// Maximum number of devices with a name.
const MOST_DEVICES: usize = 1024;

impl Timed for PacketHop {
    fn at_ns(&self) -> i64 {
        self.at_ns
    }
}

impl Timed for SocketRead {
    fn at_ns(&self) -> i64 {
        self.at_ns
    }
}

/// Source, destination and identification of the fragments of a datagram.
type Fragmented = ([u32; 4], [u32; 4], u32);

/// The message that a datagram belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OfMessage {
    /// Sequence number of the message.
    seq: u64,
    /// Number of the first part of the message in the datagram; 0 = the datagram contains the whole message.
    part: u32,
}

/// Addresses, ports and identification of a datagram.
type Route = ([u32; 4], [u32; 4], u16, u16, u32);

/// A datagram that cannot be read.
#[derive(Debug, Clone, Copy)]
struct Unread {
    of: OfMessage,
    route: Route,
    /// Name of the first device that queued it.
    device: [u8; 16],
}

/// Follows the messages that one process sends.
#[derive(Debug)]
pub(in crate::switches) struct Follower {
    pub sockets: Sockets,
    /// Addresses and ports from which the process has sent.
    sources: BTreeSet<([u32; 4], u16)>,
    devices: Vec<PacketDevice>,
    hops: Kept<PacketHop>,
    reads: Kept<SocketRead>,
    drops: Vec<PacketHop>,
    /// Fragmented datagrams of which later fragments are expected.
    fragmented: Recent<Fragmented, OfMessage>,
    /// Sequence numbers of messages that the middleware divided among several datagrams.
    divided: Recent<Divided, u64>,
    /// Datagrams that cannot be read, by the packet buffer in which the process sent them; `None` = the buffer has another one.
    unread: Recent<u64, Option<Unread>>,
    /// Number of datagrams that the process sent and that cannot be read.
    unread_sent: u64,
    /// For each CPU: packet buffer that it received last, and the message in it.
    receiving: BTreeMap<u32, (u64, OfMessage)>,
    not_followed: BTreeMap<NotFollowed, u64>,
    gaps: Vec<(i64, i64)>,
}

impl Follower {
    /// Follows the messages that are sent from these sockets.
    pub fn new(sockets: Sockets) -> Follower {
        Follower {
            sockets,
            sources: BTreeSet::new(),
            devices: Vec::new(),
            hops: Kept::newest(MOST_HOPS),
            reads: Kept::newest(READS_KEPT),
            drops: Vec::new(),
            fragmented: Recent::default(),
            divided: Recent::default(),
            unread: Recent::default(),
            unread_sent: 0,
            receiving: BTreeMap::new(),
            not_followed: BTreeMap::new(),
            gaps: Vec::new(),
        }
    }

    /// Keeps what was recorded in this time span from now on, unless some of it was discarded already.
    pub fn spare(&mut self, spared: Spared) {
        self.hops.spare(spared);
        self.reads.spare(spared);
    }

    /// Whether a quarter of the room for hops or for reads of sockets is used.
    pub fn is_quarter_full(&self) -> bool {
        self.hops.is_quarter_full() || self.reads.is_quarter_full()
    }

    /// Adds a time span in which records were lost (begin and end, monotonic ns).
    pub fn miss(&mut self, gap: (i64, i64)) {
        self.gaps.push(gap);
    }

    /// Adds a record. Records of other processes that use the same ports in another network namespace are left out.
    pub fn take(&mut self, packet: &tb_packet) {
        match packet.kind {
            TB_PACKET_READ => self.read(packet),
            TB_PACKET_IN_SOCKET => {
                if let Some((_, of)) = self.receiving.get(&packet.cpu).filter(|(buffer, _)| *buffer == packet.buffer) {
                    self.hops.keep(hop(packet, *of, HopPlace::InSocket));
                    self.forget(packet.buffer);
                }
            }
            _ => self.passed(packet),
        }
    }

    fn read(&mut self, packet: &tb_packet) {
        if packet.namespace != self.sockets.namespace {
            return;
        }
        let (at_ns, thread, port) = (packet.at_ns as i64, packet.thread, u16::from_be(packet.to_port));
        self.reads.keep(SocketRead { at_ns, thread, port });
    }

    /// Adds a record of a packet at a device.
    fn passed(&mut self, packet: &tb_packet) {
        let place = match packet.kind {
            TB_PACKET_QUEUED => HopPlace::Queued,
            TB_PACKET_TRANSMITTED => HopPlace::Transmitted,
            TB_PACKET_BACKLOG => HopPlace::Backlog,
            TB_PACKET_RECEIVED => HopPlace::Received,
            TB_PACKET_DROPPED => HopPlace::Dropped,
            // A kind that this version does not know.
            _ => return,
        };
        let source = (packet.from, packet.from_port);
        if place == HopPlace::Queued && packet.namespace == self.sockets.namespace {
            self.sources.insert(source);
        }
        if !self.sources.contains(&source) {
            return;
        }
        // Each datagram is queued once in the network namespace of its sender.
        let is_sent = place == HopPlace::Queued && packet.namespace == self.sockets.namespace;
        let of = match self.message_of(packet, is_sent) {
            Ok(Some(of)) => of,
            Ok(None) => return,
            Err(reason) => {
                if is_sent {
                    *self.not_followed.entry(reason).or_default() += 1;
                }
                return;
            }
        };
        if place == HopPlace::Received {
            self.receiving.insert(packet.cpu, (packet.buffer, of));
        }
        if place == HopPlace::Dropped {
            self.forget(packet.buffer);
        }
        let device = self.device(packet);
        let reason = (place == HopPlace::Dropped).then_some(packet.number);
        let hop = PacketHop { device, reason, ..hop(packet, of, place) };
        match place {
            HopPlace::Dropped if self.drops.len() < MOST_DROPS => self.drops.push(hop),
            HopPlace::Dropped => {}
            _ => self.hops.keep(hop),
        }
    }

    /// The message that a packet belongs to; `None` if it contains no message. `is_sent`: whether the process sends the packet
    /// now.
    fn message_of(&mut self, packet: &tb_packet, is_sent: bool) -> Result<Option<OfMessage>, NotFollowed> {
        let datagram = (packet.from, packet.to, packet.id);
        if packet.offset != 0 {
            return self.fragmented.get(&datagram).copied().map(Some).ok_or(NotFollowed::NoFirstFragment);
        }
        let bytes = usize::from(packet.payload_bytes).min(TB_PACKET_PAYLOAD);
        // A datagram that is too short for a sequence number contains no message.
        const SHORTEST: u32 = 8 + 8;
        if packet.kind != TB_PACKET_DROPPED && packet.number < SHORTEST {
            return Ok(None);
        }
        let of = match content(&packet.payload[..bytes]) {
            Ok(None) => return Ok(None),
            Ok(Some(Content::Message(seq))) => OfMessage { seq, part: 0 },
            Ok(Some(Content::Part { of, part, seq: Some(seq) })) => {
                self.divided.insert(of, seq);
                OfMessage { seq, part }
            }
            Ok(Some(Content::Part { of, part, seq: None })) => match self.divided.get(&of) {
                Some(seq) => OfMessage { seq: *seq, part },
                // Nobody knows then whether another datagram of the same call is the whole message.
                None => {
                    if is_sent {
                        *self.not_followed.entry(NotFollowed::Divided).or_default() += 1;
                    }
                    return Ok(self.unread(packet, NotFollowed::Divided, is_sent));
                }
            },
            Err(reason) => match self.unread(packet, reason, is_sent) {
                Some(of) => of,
                None => return Ok(None),
            },
        };
        if !is_unread(of.seq) {
            self.forget(packet.buffer);
        }
        if packet.more != 0 {
            self.fragmented.insert(datagram, of);
        }
        Ok(Some(of))
    }

    /// What stands for the message of a datagram that cannot be read: the datagram itself, which keeps its packet buffer on its way
    /// through the kernel. `None` if the process did not send the buffer, or if a device copied it.
    fn unread(&mut self, packet: &tb_packet, reason: NotFollowed, is_sent: bool) -> Option<OfMessage> {
        let route = (packet.from, packet.to, packet.from_port, packet.to_port, packet.id);
        let known = self.unread.get(&packet.buffer).copied().flatten().filter(|unread| unread.route == route);
        // A device above another one (VLAN, bond) passes the datagram on in the same namespace.
        let is_new = is_sent && known.is_none_or(|unread| unread.device == packet.device);
        if !is_new {
            return known.map(|unread| unread.of);
        }
        let stream = if reason == NotFollowed::InPages { IN_PAGES } else { PROTECTED };
        let of = OfMessage { seq: stream << COUNTER_BITS | self.unread_sent, part: 0 };
        self.unread_sent += 1;
        self.unread.insert(packet.buffer, Some(Unread { of, route, device: packet.device }));
        Some(of)
    }

    /// The kernel uses this packet buffer for something else now, or may do so.
    fn forget(&mut self, buffer: u64) {
        if self.unread.get(&buffer).is_some() {
            self.unread.insert(buffer, None);
        }
    }

    /// Index of the device of a packet; `None` if it has none, or if there are too many devices.
    fn device(&mut self, packet: &tb_packet) -> Option<u16> {
        let name = text(&packet.device)?;
        let is_same = |d: &PacketDevice| d.namespace == packet.namespace && d.name == name;
        let at = self.devices.iter().position(is_same).or_else(|| {
            let new = PacketDevice { name, namespace: packet.namespace, discipline: None };
            (self.devices.len() < MOST_DEVICES).then(|| {
                self.devices.push(new);
                self.devices.len() - 1
            })
        })?;
        if packet.kind == TB_PACKET_QUEUED {
            // The discipline can be replaced during the trial: the last one counts that is none of the defaults.
            let kind = text(&packet.discipline).filter(|kind| kind != "noqueue");
            self.devices[at].discipline = kind.or(self.devices[at].discipline.take());
        }
        u16::try_from(at).ok()
    }

    /// The hops of the time spans `windows` (begin and end, monotonic ns; without overlap, the most important first).
    pub fn within(&self, windows: &[(i64, i64)]) -> Packets {
        let mut sorted = windows.to_vec();
        sorted.sort_unstable();
        let times: Vec<i64> = self.hops.within(&sorted).iter().map(|hop| hop.at_ns).collect();
        let kept = affordable(windows, &times, MOST_REPORTED);
        let hops = self.hops.within(&kept);
        let mut reads = self.reads.within(&kept);
        reads.truncate(MOST_READS);
        let discarded = self.hops.discarded().into_iter().chain(self.reads.discarded());
        let mut reasons: BTreeMap<u32, String> = BTreeMap::new();
        let used: BTreeSet<u32> = self.drops.iter().filter_map(|hop| hop.reason).collect();
        if !used.is_empty() {
            let names = Tracefs::open().and_then(|tracefs| tracefs.describe("skb/kfree_skb"));
            let names = names.map(|description| description.numbers()).unwrap_or_default();
            reasons.extend(names.into_iter().filter(|(number, _)| used.contains(number)));
        }
        Packets {
            windows: kept,
            gaps: discarded.chain(self.gaps.iter().copied()).collect(),
            devices: self.devices.clone(),
            hops,
            drops: self.drops.clone(),
            reads,
            reasons,
            not_followed: self.not_followed.clone(),
        }
    }
}

/// What the record says about a packet at one place in the kernel. The device at this place is left out.
fn hop(packet: &tb_packet, of: OfMessage, at: HopPlace) -> PacketHop {
    let tb_packet { at_ns, cpu, thread, offset, run, .. } = *packet;
    let OfMessage { seq, part } = of;
    // Packet buffers are aligned to 64 bytes.
    let buffer = (packet.buffer >> 6) as u32;
    PacketHop { at_ns: at_ns as i64, seq, at, cpu, thread, buffer, device: None, offset, part, run, reason: None }
}

/// A text that ends at a NUL byte; `None` if it is empty.
fn text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next().filter(|text| !text.is_empty())?;
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 7;
    const OTHER: u32 = 8;
    /// A datagram without fragments.
    const WHOLE: (u16, bool) = (0, false);

    /// A packet with the fragment of a datagram that begins at the offset in bytes; `more`: whether further fragments follow.
    fn packet(at_ns: u64, kind: u8, namespace: u32, (offset, more): (u16, bool), payload: &[u8]) -> tb_packet {
        let mut packet = tb_packet {
            at_ns,
            buffer: 99,
            cpu: 1,
            thread: 10,
            namespace,
            id: 5,
            from: [0, 0, 0xffff_0000, 1],
            to: [0, 0, 0xffff_0000, 2],
            from_port: 0x1234,
            to_port: 0x4321,
            offset,
            kind,
            payload_bytes: payload.len() as u8,
            number: 100,
            run: 0,
            more: u8::from(more),
            unused: [0; 7],
            device: *b"veth0\0\0\0\0\0\0\0\0\0\0\0",
            discipline: *b"tbf\0\0\0\0\0\0\0\0\0\0\0\0\0",
            payload: [0; TB_PACKET_PAYLOAD],
        };
        packet.payload[..payload.len()].copy_from_slice(payload);
        packet
    }

    fn follower() -> Follower {
        Follower::new(Sockets { ports: [1].into(), namespace: OWN })
    }

    fn found(follower: &Follower) -> Vec<(i64, u64, HopPlace, u16)> {
        let packets = follower.within(&[(0, 1_000)]);
        packets.hops.iter().map(|hop| (hop.at_ns, hop.seq, hop.at, hop.offset)).collect()
    }

    #[test]
    fn a_message_is_followed_to_the_socket() {
        let mut follower = follower();
        let number = 3u64.to_le_bytes();
        let places = [(TB_PACKET_QUEUED, OWN), (TB_PACKET_TRANSMITTED, OWN), (TB_PACKET_RECEIVED, OTHER)];
        for (at_ns, (kind, namespace)) in (1..).zip(places) {
            follower.take(&packet(at_ns, kind, namespace, WHOLE, &number));
        }
        follower.take(&packet(4, TB_PACKET_IN_SOCKET, OTHER, WHOLE, &[]));
        // The socket of another packet buffer.
        follower.take(&tb_packet { buffer: 100, ..packet(5, TB_PACKET_IN_SOCKET, OTHER, WHOLE, &[]) });
        let places = [HopPlace::Queued, HopPlace::Transmitted, HopPlace::Received, HopPlace::InSocket];
        let expected: Vec<_> = (1..).zip(places).map(|(at_ns, place)| (at_ns, 3, place, 0)).collect();
        assert_eq!(found(&follower), expected);
        let devices = follower.within(&[(0, 1_000)]).devices;
        assert_eq!((devices[0].discipline.as_deref(), devices.len()), (Some("tbf"), 2));
    }

    #[test]
    fn later_fragments_belong_to_the_message_of_the_first_one() {
        let mut follower = follower();
        follower.take(&packet(1, TB_PACKET_QUEUED, OWN, (0, true), &3u64.to_le_bytes()));
        follower.take(&packet(2, TB_PACKET_QUEUED, OWN, (1480, false), &[]));
        follower.take(&tb_packet { id: 6, ..packet(3, TB_PACKET_QUEUED, OWN, (1480, false), &[]) });
        assert_eq!(found(&follower), [(1, 3, HopPlace::Queued, 0), (2, 3, HopPlace::Queued, 1480)]);
        assert_eq!(follower.within(&[]).not_followed, [(NotFollowed::NoFirstFragment, 1)].into());
    }

    #[test]
    fn datagrams_that_cannot_be_read_are_followed_by_their_packet_buffers() {
        let mut follower = follower();
        let encrypted = [&b"RTPS\x02\x05\x01\x0fabcdefghijkl\x33\x01\x04\0"[..], &[0; 4]].concat();
        let buffer = |buffer, packet| tb_packet { buffer, ..packet };
        let device = |packet| tb_packet { device: *b"vlan5\0\0\0\0\0\0\0\0\0\0\0", ..packet };
        follower.take(&packet(1, TB_PACKET_QUEUED, OWN, WHOLE, &[]));
        follower.take(&buffer(100, packet(2, TB_PACKET_QUEUED, OWN, WHOLE, &encrypted)));
        follower.take(&packet(3, TB_PACKET_RECEIVED, OTHER, WHOLE, &[]));
        follower.take(&packet(4, TB_PACKET_IN_SOCKET, OTHER, WHOLE, &[]));
        // The kernel uses the buffer again; a device has copied the datagram; another program sends.
        follower.take(&packet(5, TB_PACKET_QUEUED, OWN, WHOLE, &[]));
        follower.take(&buffer(101, packet(6, TB_PACKET_RECEIVED, OTHER, WHOLE, &[])));
        follower.take(&buffer(102, packet(7, TB_PACKET_QUEUED, OTHER, WHOLE, &[])));
        // The device below a VLAN passes the datagram on; then a copy has its buffer, which the kernel has freed.
        follower.take(&device(buffer(103, packet(8, TB_PACKET_QUEUED, OWN, WHOLE, &[]))));
        follower.take(&buffer(103, packet(9, TB_PACKET_QUEUED, OWN, WHOLE, &[])));
        follower.take(&tb_packet { id: 6, ..buffer(103, packet(10, TB_PACKET_RECEIVED, OTHER, WHOLE, &[])) });
        follower.take(&buffer(103, packet(11, TB_PACKET_QUEUED, OWN, WHOLE, &7u64.to_le_bytes())));
        follower.take(&buffer(103, packet(12, TB_PACKET_RECEIVED, OTHER, WHOLE, &[])));
        let seq = |stream: u64, number| stream << COUNTER_BITS | number;
        let expected = [
            (1, seq(IN_PAGES, 0), HopPlace::Queued, 0),
            (2, seq(PROTECTED, 1), HopPlace::Queued, 0),
            (3, seq(IN_PAGES, 0), HopPlace::Received, 0),
            (4, seq(IN_PAGES, 0), HopPlace::InSocket, 0),
            (5, seq(IN_PAGES, 2), HopPlace::Queued, 0),
            (8, seq(IN_PAGES, 3), HopPlace::Queued, 0),
            (9, seq(IN_PAGES, 3), HopPlace::Queued, 0),
            (11, 7, HopPlace::Queued, 0),
        ];
        assert_eq!(found(&follower), expected);
        assert_eq!(follower.within(&[]).not_followed, [].into());
    }

    /// Test: the middleware divides a message between two datagrams, and the kernel divides the first one again.
    #[test]
    fn parts_of_a_message_belong_together() {
        let part = |part: u8, number: &[u8]| {
            let head = b"RTPS\x02\x05\x01\x0fabcdefghijkl\x16\x01\x2c\0";
            let first = [0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 9, 0, 0, 0, part, 0, 0, 0, 1, 0, 0x40, 5];
            [&head[..], &first, &2_000u32.to_le_bytes(), number].concat()
        };
        let mut follower = follower();
        let second = part(2, &[]);
        follower.take(&packet(1, TB_PACKET_QUEUED, OWN, WHOLE, &second));
        let number = [&[0, 1, 0, 0][..], &3u64.to_le_bytes()].concat();
        follower.take(&packet(2, TB_PACKET_QUEUED, OWN, (0, true), &part(1, &number)));
        follower.take(&packet(3, TB_PACKET_QUEUED, OWN, (1480, false), &[]));
        follower.take(&tb_packet { id: 6, ..packet(4, TB_PACKET_QUEUED, OWN, WHOLE, &second) });
        follower.take(&tb_packet { id: 6, ..packet(5, TB_PACKET_RECEIVED, OTHER, WHOLE, &second) });
        follower.take(&packet(6, TB_PACKET_IN_SOCKET, OTHER, WHOLE, &[]));
        let packets = follower.within(&[(0, 1_000)]);
        let hops: Vec<_> = packets.hops.iter().map(|hop| (hop.at_ns, hop.seq, hop.part, hop.offset)).collect();
        // Of the first datagram, the first part of the message was not seen before: it stands for itself.
        let alone = (1, PROTECTED << COUNTER_BITS, 0, 0);
        assert_eq!(hops, [alone, (2, 3, 1, 0), (3, 3, 1, 1480), (4, 3, 2, 0), (5, 3, 2, 0), (6, 3, 2, 0)]);
        assert_eq!(packets.not_followed, [(NotFollowed::Divided, 1)].into());
    }

    #[test]
    fn drops_of_the_whole_trial_are_kept_with_their_reason() {
        let mut follower = follower();
        follower.take(&packet(1, TB_PACKET_QUEUED, OWN, WHOLE, &3u64.to_le_bytes()));
        follower.take(&tb_packet { number: 6, ..packet(2, TB_PACKET_DROPPED, OTHER, WHOLE, &3u64.to_le_bytes()) });
        let packets = follower.within(&[]);
        let drops: Vec<_> = packets.drops.iter().map(|hop| (hop.at_ns, hop.seq, hop.reason)).collect();
        assert_eq!((drops, packets.hops.len()), (vec![(2, 3, Some(6))], 0));
    }

    #[test]
    fn packets_of_a_process_elsewhere_with_the_same_port_are_left_out() {
        let mut follower = follower();
        follower.take(&packet(1, TB_PACKET_QUEUED, OTHER, WHOLE, &3u64.to_le_bytes()));
        follower.take(&packet(2, TB_PACKET_RECEIVED, OWN, WHOLE, &3u64.to_le_bytes()));
        follower.take(&packet(3, TB_PACKET_READ, OTHER, WHOLE, &[]));
        assert_eq!((found(&follower), follower.within(&[(0, 9)]).reads), (vec![], vec![]));
        follower.take(&packet(4, TB_PACKET_READ, OWN, WHOLE, &[]));
        assert_eq!(follower.within(&[(0, 9)]).reads, [SocketRead { at_ns: 4, thread: 10, port: 0x2143 }]);
    }
}
